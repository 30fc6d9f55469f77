"""Train an LSTM to say which of two words occurred first in a sequence of symbols, with a trainer.

A second run continues from the newest checkpoint in the folder -o, which also gets a log and curves; -c cudnn takes another
backend. Ends with an error when fewer than 97 % of the held-out sequences are told apart.
"""

import numpy as np
from command import require, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data import data_iterator_simple
from nn_core.training import Accuracy, Checkpoint, Evaluator, Log, Plot, Progress, Trainer, Updater, early_stop, every

BATCH_SIZE, LENGTH, SYMBOLS, REQUIRED_ACCURACY = 50, 16, 8, 0.97


def sequences(count, seed):
    """Symbols (count, LENGTH) with a 0 and a 1 at random places, and whether the 0 comes first (count, 1)."""
    rng = np.random.RandomState(seed)
    symbols = rng.randint(2, SYMBOLS, (count, LENGTH))
    places = np.stack([rng.permutation(LENGTH)[:2] for _ in range(count)])
    rows = np.arange(count)
    symbols[rows, places[:, 0]], symbols[rows, places[:, 1]] = 0, 1
    return symbols, (places[:, :1] < places[:, 1:]).astype(int)


def network(x):
    """Scores of the two orders: (B, LENGTH) -> (B, 2)."""
    h = F.transpose(PF.embed(x, SYMBOLS, 16, name="embed"), (1, 0, 2))
    start = F.constant(0, (1, 1, x.shape[0], 32))
    _, last, _ = PF.lstm(h, start, start, training=True, name="lstm")
    return PF.affine(F.reshape(last, (-1, 32)), 2, name="classifier")


def main():
    """Train, evaluate, and compare with what is expected."""
    out = start(__doc__)
    (symbols, orders), held_out = sequences(2000, 0), sequences(500, 1)
    x, t = nn.Variable((BATCH_SIZE, LENGTH)), nn.Variable((BATCH_SIZE, 1))
    y = network(x)
    solver = S.Adam(0.005)
    solver.set_parameters(nn.get_parameters())
    with data_iterator_simple(lambda index: (symbols[index], orders[index]), 2000, BATCH_SIZE, shuffle=True) as data:
        updater = Updater(data, [x, t], F.mean(F.softmax_cross_entropy(y, t)), solver, clip_norm=1.0)
        until = every(30, "epoch") | early_stop("validation/accuracy", patience=6, mode="max")
        trainer = Trainer(updater, until, out)
        evaluator = Evaluator(held_out, [x, t], {"accuracy": Accuracy(y, t)}, batch_size=BATCH_SIZE)
        trainer.extend(evaluator, Log(), Plot("loss", "validation/accuracy"), Progress(), Checkpoint())
        trainer.run(resume=True)
    print(trainer.stop_reason)
    require(evaluator.evaluate()["accuracy"], REQUIRED_ACCURACY, "the held-out sequences are told apart")


if __name__ == "__main__":
    main()
