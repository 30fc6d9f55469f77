"""Compute the gradients of a small network by the chain rule, in NumPy, and compare them with backward().

    python examples/tutorials/backpropagation_by_hand.py

The network has one hidden layer: h = tanh(x W1 + b1), y = h W2 + b2, and its loss is the mean of (y - t)^2. Backpropagation
is the chain rule, applied from the loss to the inputs: each step multiplies the gradient of a result by the derivative of
the function that has made it. nn_core does the same with one rule for each function.
"""

import numpy as np
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F


def forward(x, w1, b1, w2, b2):
    """Return the hidden values and the results."""
    h = np.tanh(x @ w1 + b1)
    return h, h @ w2 + b2


def by_hand(x, t, w1, b1, w2, b2):
    """Return the gradients of the loss with respect to w1, b1, w2 and b2."""
    h, y = forward(x, w1, b1, w2, b2)
    dy = 2 * (y - t) / y.size  # the derivative of the mean of squares
    dw2 = h.T @ dy  # y = h W2: each weight is multiplied by one hidden value of each sample
    db2 = dy.sum(axis=0)
    dh = dy @ w2.T
    dz = dh * (1 - h**2)  # the derivative of tanh is 1 - tanh^2
    dw1 = x.T @ dz
    db1 = dz.sum(axis=0)
    return dw1, db1, dw2, db2


def by_differences(x, t, parameters, step=1e-6):
    """Return the same gradients by changing one number after the other, which takes two passes for each."""

    def loss():
        return np.mean((forward(x, *parameters)[1] - t) ** 2)

    found = [np.zeros_like(values) for values in parameters]
    for values, gradient in zip(parameters, found, strict=True):
        for place in np.ndindex(values.shape):
            kept = values[place]
            values[place] = kept + step
            above = loss()
            values[place] = kept - step
            gradient[place] = (above - loss()) / (2 * step)
            values[place] = kept
    return found


def by_nn_core(x, t, parameters):
    """Return the same gradients from a graph."""
    w1, b1, w2, b2 = variables = [nn.Variable.from_numpy_array(values, need_grad=True) for values in parameters]
    y = F.affine(F.tanh(F.affine(nn.Variable.from_numpy_array(x), w1, b1)), w2, b2)
    loss = F.mean(F.squared_error(y, nn.Variable.from_numpy_array(t)))
    for variable in variables:
        variable.grad.zero()
    loss.forward()
    loss.backward()
    return [variable.g for variable in variables]


def main():
    """Compare three ways to the same gradients, and train with those that were made by hand."""
    start(__doc__)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (32, 2))
    t = x[:, :1] * x[:, 1:]  # the product of both numbers
    parameters = [rng.normal(0, 1, (2, 8)), np.zeros(8), rng.normal(0, 0.3, (8, 1)), np.zeros(1)]

    gradients = by_hand(x, t, *parameters)
    pairs = list(zip(gradients, by_nn_core(x, t, parameters), strict=True))
    expect("difference to backward()", max(np.abs(own - g).max() for own, g in pairs), high=1e-6)
    pairs = list(zip(gradients, by_differences(x, t, parameters), strict=True))
    expect("difference to quotients", max(np.abs(own - g).max() for own, g in pairs), high=1e-8)

    for _ in range(3000):  # gradient descent: what a solver's update() does
        for values, gradient in zip(parameters, by_hand(x, t, *parameters), strict=True):
            np.subtract(values, 0.3 * gradient, out=values)
    expect("loss after training by hand", np.mean((forward(x, *parameters)[1] - t) ** 2), high=0.002)


if __name__ == "__main__":
    main()
