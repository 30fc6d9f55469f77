"""Train a small residual network on scikit-learn's handwritten digits, shifted at random, with a trainer.

A second run continues from the newest checkpoint in the folder -o, which also gets a log and curves; -c cudnn takes another
backend. Ends with an error when fewer than 98 % of the held-out images are recognised.
"""

import numpy as np
from command import require, start
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data import data_iterator
from nn_core.data.source import SimpleDataSource, TransformedDataSource
from nn_core.training import Accuracy, Checkpoint, Evaluator, Log, Plot, Progress, Schedule, Trainer, Updater, every
from nn_core.utils.learning_rate_scheduler import CosineScheduler

BATCH_SIZE, EPOCHS, REQUIRED_ACCURACY = 64, 25, 0.98


def unit(x, maps, stride, test):
    """Two convolutions and the input, which skips them."""

    def part(h, name, stride=(1, 1)):
        h = PF.convolution(h, maps, (3, 3), pad=(1, 1), stride=stride, with_bias=False, name=name)
        return PF.batch_normalization(h, batch_stat=not test, name=f"{name}_bn")

    h = part(F.relu(part(x, "first", stride)), "second")
    if x.shape != h.shape:
        x = PF.convolution(x, maps, (1, 1), stride=stride, with_bias=False, name="skip")
    return F.relu(h + x)


def network(x, test=False):
    """Scores of the ten digits: (B, 1, 8, 8) -> (B, 10)."""
    h = F.relu(PF.convolution(x, 16, (3, 3), pad=(1, 1), name="stem"))
    for number, (maps, stride) in enumerate([(16, 1), (32, 2), (64, 2)]):
        with nn.parameter_scope(f"unit{number}"):
            h = unit(h, maps, (stride, stride), test)
    return PF.affine(F.mean(h, axis=(2, 3)), 10, name="classifier")


def shifted(rng, image, label):
    """Return the image, shifted by up to one pixel."""
    return np.roll(image, rng.integers(-1, 2, size=2), axis=(1, 2)), label


def main():
    """Train, evaluate, and compare with what is expected."""
    out = start(__doc__)
    digits = load_digits()
    images, labels = (digits.images / 16.0).astype(np.float32)[:, None], digits.target[:, None]
    x_train, x_test, t_train, t_test = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)

    x, t = nn.Variable((BATCH_SIZE, 1, 8, 8)), nn.Variable((BATCH_SIZE, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    vx, vt = nn.Variable(x.shape), nn.Variable(t.shape)
    accuracy = Accuracy(network(vx, test=True), vt)
    solver = S.Momentum(0.1)
    solver.set_parameters(nn.get_parameters())
    source = SimpleDataSource(lambda index: (x_train[index], t_train[index]), len(x_train))
    with data_iterator(TransformedDataSource(source, shifted, shuffle=True), BATCH_SIZE, with_memory_cache=False) as data:
        trainer = Trainer(Updater(data, [x, t], loss, solver, weight_decay=1e-4), every(EPOCHS, "epoch"), out)
        evaluator = Evaluator((x_test, t_test), [vx, vt], {"accuracy": accuracy}, batch_size=BATCH_SIZE)
        schedule = Schedule(CosineScheduler(0.1, EPOCHS * len(x_train) // BATCH_SIZE + 1))
        trainer.extend(evaluator, schedule, Log(), Plot("loss", "validation/accuracy"), Progress(), Checkpoint())
        trainer.run(resume=True)
    require(evaluator.evaluate()["accuracy"], REQUIRED_ACCURACY, "the held-out images are recognised")


if __name__ == "__main__":
    main()
