"""Differentiate a function ten times, and once more.

    python examples/tutorials/higher_order_gradients.py

What nn.grad() returns is a variable like any other, so it can be differentiated again. The tenth derivative of the sine
is -sin, and backward() on it gives the eleventh, which is -cos.
"""

import numpy as np
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F


def derivative(y, x, order):
    """Return the derivative of `y` with respect to `x` of the given order."""
    for _ in range(order):
        (y,) = nn.grad([y], [x])
    return y


def main():
    """Return derivatives of the sine, and of a function of two variables."""
    start(__doc__)
    x = nn.Variable.from_numpy_array(np.random.randn(2, 2).astype(np.float32)).apply(need_grad=True)
    tenth = derivative(F.sin(x), x, 10)
    tenth.forward()
    expect("error of the tenth derivative of sin", np.abs(tenth.d + np.sin(x.d)).max(), high=1e-5)
    x.grad.zero()
    tenth.backward()
    expect("error of the eleventh", np.abs(x.g + np.cos(x.d)).max(), high=1e-5)

    # Mixed derivatives follow from two calls: the derivative of x^2 y^3 by x and then by y is 6 x y^2.
    y = nn.Variable.from_numpy_array(np.random.randn(2, 2).astype(np.float32)).apply(need_grad=True)
    (by_x,) = nn.grad(x**2 * y**3, x)
    (by_x_and_y,) = nn.grad(by_x, y)
    by_x_and_y.forward()
    expect("error of the mixed derivative", np.abs(by_x_and_y.d - 6 * x.d * y.d**2).max(), high=1e-4)


if __name__ == "__main__":
    main()
