"""Train a convolutional network on scikit-learn's handwritten digits in half precision, beside the same run in float32.

Activations and gradients are float16; parameters and solver states stay float32, and the loss is scaled. A second
run continues from the newest checkpoints in the folder -o. Ends with an error when fewer than 97 % of the held-out images are
recognised in half precision, or the two runs differ by more than one percentage point.
"""

import numpy as np
from command import require, start
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data import data_iterator_simple
from nn_core.training import Accuracy, Checkpoint, Evaluator, Log, LossScale, Plot, Progress, Trainer, Updater, every

BATCH_SIZE, EPOCHS = 64, 12


def network(x, test=False):
    """Scores of the ten digits: (B, 1, 8, 8) -> (B, 10)."""
    h = x
    for number, maps in enumerate([16, 32, 64]):
        with nn.parameter_scope(f"part{number}"):
            h = PF.convolution(h, maps, (3, 3), pad=(1, 1), with_bias=False)
            h = F.relu(PF.batch_normalization(h, batch_stat=not test))
            h = F.max_pooling(h, (2, 2)) if number else h
    return PF.affine(h, 10, name="classifier")


def trained(arrays, out, loss_scale=None):
    """Accuracy on held-out images after training in the present context, and the updater."""
    x_train, x_test, t_train, t_test = arrays
    nn.clear_parameters()
    nn.seed(1)
    x, t = nn.Variable((BATCH_SIZE, 1, 8, 8)), nn.Variable((BATCH_SIZE, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    vx, vt = nn.Variable(x.shape), nn.Variable(t.shape)
    accuracy = Accuracy(network(vx, test=True), vt)
    solver = S.Adam(0.002)
    solver.set_parameters(nn.get_parameters())
    with data_iterator_simple(lambda i: (x_train[i], t_train[i]), len(x_train), BATCH_SIZE, shuffle=True) as data:
        trainer = Trainer(Updater(data, [x, t], loss, solver, loss_scale=loss_scale), every(EPOCHS, "epoch"), out)
        evaluator = Evaluator((x_test, t_test), [vx, vt], {"accuracy": accuracy}, batch_size=BATCH_SIZE)
        trainer.extend(evaluator, Log(), Plot("loss", "validation/accuracy"), Progress(), Checkpoint())
        trainer.run(resume=True)
    assert all(parameter.d.dtype == np.float32 for parameter in nn.get_parameters().values())
    return evaluator.evaluate()["accuracy"]


def main():
    """Train in both precisions, and compare with what is expected."""
    out = start(__doc__)
    digits = load_digits()
    images, labels = (digits.images / 16.0).astype(np.float32)[:, None], digits.target[:, None]
    arrays = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
    full = trained(arrays, out / "float")
    scale = LossScale(interval=50)
    with nn.context_scope(half_of(nn.get_current_context())):
        half = trained(arrays, out, scale)
    print(f"loss scale {scale.scale:.0f}, {scale.skipped} steps skipped, {full:.2%} in float32")
    require(half, 0.97, "the held-out images are recognised in half precision")
    require(1 - abs(half - full), 0.99, "the images are judged alike by the share of right answers")


def half_of(context):
    """Return the same backends in half precision."""
    return nn.Context([f"{name.split(':')[0]}:half" for name in context.backend], context.array_class, context.device_id)


if __name__ == "__main__":
    main()
