"""A layer and an initializer."""

import numpy as np

import nn_core as nn
from nn_core.parameter import get_parameter_or_create


class CheckerInitializer:
    """Alternate between a value and its negative."""

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def __call__(self, shape: tuple[int, ...]) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        signs = (-1.0) ** np.arange(np.prod(shape, dtype=int))
        return (self.value * signs).reshape(shape).astype(np.float32)


def scale(x: nn.Variable, name: str = "scale") -> nn.Variable:
    """Multiply each feature by a number of its own: y[n, i] = w[i] x[n, i]."""
    with nn.parameter_scope(name):
        w = get_parameter_or_create("w", (1, *x.shape[1:]), CheckerInitializer(), need_grad=True)
    return x * w
