"""Embed digits in the plane with a siamese net, on top of a convolutional net that was trained before.

    python examples/tutorials/siamese_network.py --pictures .

Two images go through the same net, so the two streams share their parameters. The contrastive loss (R. Hadsell,
S. Chopra, Y. LeCun, 2006) pulls images of one digit together and pushes others at least a margin apart. The layers
of the trained net are loaded from a file and stay as they are; only two new layers are trained.
"""

import tempfile
from pathlib import Path

import numpy as np
from convolutional_network import cnn, train_cnn
from pictures import plot_points
from tiny_digits import data_iterator_tiny_digits, load_digits
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S


def embed(x):
    """Points in the plane: (B, 1, 8, 8) -> (B, 2)."""
    # The scopes are those of cnn(), so its parameters are found under their names.
    _, (_, c2, _) = cnn(x, test=True)
    with nn.parameter_scope("embed2d"):
        return PF.affine(F.relu(PF.affine(c2, 64, name="hidden")), 2, name="point")


def siamese_loss(e0, e1, t, margin=1.0, eps=1e-4):
    """Contrastive loss of points (B, 2) and (B, 2) that belong together (t = 1) or not (t = 0)."""
    squared = F.sum(F.squared_error(e0, e1), axis=1)
    # eps keeps the gradient of the square root finite where two points coincide.
    gap = F.maximum_scalar(margin - (squared + eps) ** 0.5, 0)
    return F.mean(t * squared + (1 - t) * gap**2)


def train_embedding(data, steps=1000):
    """Train the new layers alone; returns the losses."""
    x0, x1 = nn.Variable((64, 1, 8, 8)), nn.Variable((64, 1, 8, 8))
    t = nn.Variable((64,))
    loss = siamese_loss(embed(x0), embed(x1), t)
    solver = S.Adam(3e-3)
    # Inside a scope get_parameters() gives the parameters of that scope only.
    with nn.parameter_scope("embed2d"):
        solver.set_parameters(nn.get_parameters())
    losses = []
    for step in range(2 * steps):
        if step == steps:
            solver.set_learning_rate(solver.learning_rate() * 0.1)
        x0.d, label0 = data.next()
        x1.d, label1 = data.next()
        t.d = (label0 == label1)[:, 0]
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
        if step % 200 == 0:
            print(step, losses[-1])
    return losses


def nearest_centre(points, labels):
    """Share of the points (N, 2) that are nearer to the centre of their own digit than to any other."""
    centres = np.stack([points[labels == digit].mean(axis=0) for digit in range(10)])
    distances = np.linalg.norm(points[:, None] - centres, axis=2)
    return float(np.mean(np.argmin(distances, axis=1) == labels))


def main():
    """Train a classifier, save it, start anew from its layers, and train the embedding."""
    pictures = start(__doc__)
    digits = load_digits()
    data = data_iterator_tiny_digits(digits, batch_size=64, shuffle=True, rng=np.random.RandomState(0))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "cnn.h5")
        train_cnn(data)
        nn.save_parameters(path)
        nn.clear_parameters()
        nn.load_parameters(path)
    trained = {name: parameter.d.copy() for name, parameter in nn.get_parameters().items()}

    losses = train_embedding(data)
    x = nn.Variable.from_numpy_array(digits.images[:512, None])
    with nn.auto_forward():
        points = embed(x).d
    labels = digits.target[:512]
    if pictures is not None:
        plot_points(points, labels, pictures / "embedding.png")
    change = max(np.abs(nn.get_parameters()[name].d - values).max() for name, values in trained.items())
    expect("largest change of the layers that were loaded", change, high=0)
    expect("mean loss of the last 400 steps", np.mean(losses[-400:]), high=0.06)
    expect("share of digits nearest to their own centre", nearest_centre(points, labels), low=0.9)


if __name__ == "__main__":
    main()
