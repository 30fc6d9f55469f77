"""Element-wise functions."""

from typing import Any

from nn_core.ext import Array, GradientCall, Namespace, gradient, kernel
from nn_ext_contrib.operators.sequences import widen


@kernel("contrib.Log1p")
def log1p(xp: Namespace, x: Array) -> Array:
    """The logarithm of 1 + x, exact for small x."""
    return xp.log1p(widen(xp, x))


@gradient("contrib.Log1p")
def log1p_gradient(F: Any, g: GradientCall) -> Any:
    """1 / (1 + x)."""
    return g.grad / (1 + g.x)
