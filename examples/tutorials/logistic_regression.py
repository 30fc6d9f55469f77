"""Logistic regression on handwritten digits: one affine layer, trained by gradient descent.

    python examples/tutorials/logistic_regression.py

The classifier is y = softmax(x W + b). Training looks for the W and b that make the labels of the training images most
probable, which is the same as making the mean cross entropy between y and the labels small.
"""

import numpy as np
from pictures import plot_images, plot_stats
from tiny_digits import accuracy, data_iterator_tiny_digits, load_digits
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S


def logreg_forward(x):
    """Scores of the ten digits: (B, 1, 8, 8) -> (B, 10)."""
    # PF.affine makes its weight and bias when it is first called, and registers them under the name of the scope.
    with nn.parameter_scope("affine1"):
        return PF.affine(x, 10)


def logreg_loss(y, t):
    """Mean cross entropy of scores (B, 10) and labels (B, 1)."""
    return F.mean(F.softmax_cross_entropy(y, t))


def main():
    """Build the graph, look into it, train it, and do the same once more with a dynamic graph."""
    pictures = start(__doc__)
    digits = load_digits(n_class=10)
    data = data_iterator_tiny_digits(digits, batch_size=64, shuffle=True, rng=np.random.RandomState(0))
    image, label = data.next()

    # Building a graph computes nothing, but all shapes are known at once.
    x = nn.Variable(image.shape)
    t = nn.Variable(label.shape)
    y = logreg_forward(x)
    loss = logreg_loss(y, t)
    print("shapes:", x.shape, y.shape, t.shape, loss.shape)
    print("parameters:", {name: parameter.shape for name, parameter in nn.get_parameters().items()})

    # forward() computes a variable and everything it depends on. The first scores are random.
    x.d, t.d = image, label
    loss.forward()
    print("scores of the first image:", y.d[0])
    print("loss before training:", loss.d)

    # backward() adds to the gradients of parameters, so they are set to zero first. The pixels in the corners are
    # always 0, and with them the gradients of their weights.
    for parameter in nn.get_parameters().values():
        parameter.grad.zero()
    loss.backward()
    for name, parameter in nn.get_parameters().items():
        print("gradient of", name, parameter.g.flat[:12])

    # A solver changes the parameters along their gradients, here w <- w - 0.001 g.
    solver = S.Sgd(lr=1e-3)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for step in range(1000):
        x.d, t.d = data.next()
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.weight_decay(1e-5)
        solver.update()
        losses.append(float(loss.d))
        if step % 100 == 0:
            print(step, losses[-1])

    # A variable in the middle of a graph can be computed alone.
    x.d, t.d = data.next()
    y.forward()
    print("predictions:")
    print(np.argmax(y.d, axis=1).reshape(8, 8))
    static_scores = y.d.copy()

    # Inside auto_forward() every function computes at once, and the graph that is built on the way is good for
    # backward(): this is a dynamic graph.
    with nn.auto_forward():
        y = logreg_forward(x)
        loss = logreg_loss(y, t)
    solver.zero_grad()
    loss.backward()
    print("loss of the dynamic graph:", loss.d)

    if pictures is not None:
        plot_stats(digits, pictures / "digits.png")
        plot_images(x.d, pictures / "batch.png", "one batch of images", "ink, from 0 for none to 16 for black", cmap="gray_r")
    expect("mean loss of the last 100 steps", np.mean(losses[-100:]), high=0.6)
    expect("accuracy on the last batch", accuracy(y.d, t.d), low=0.8)
    expect("difference of static and dynamic scores", np.abs(y.d - static_scores).max(), high=1e-4)


if __name__ == "__main__":
    main()
