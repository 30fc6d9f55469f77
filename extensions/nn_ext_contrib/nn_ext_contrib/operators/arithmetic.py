"""Element-wise functions."""

from typing import Any

from nn_core.ext import Array, GradientCall, Namespace, gradient, kernel
from nn_ext_contrib.operators.sequences import widen


@kernel("contrib.Log1p")
def log1p(xp: Namespace, x: Array) -> Array:
    """Return the logarithm of 1 + x, exact for small x."""
    x = widen(xp, x)
    y = 1 + x
    # what rounding adds to y, it adds to the divisor as well (Higham, 2002, section 1.14.1)
    small = xp.where(y == 1, x, xp.log(y) * (x / (y - 1)))
    return xp.where(xp.abs(x) < 1, small, xp.log(y))


@gradient("contrib.Log1p")
def log1p_gradient(F: Any, g: GradientCall) -> Any:
    """1 / (1 + x)."""
    return g.grad / (1 + g.x)
