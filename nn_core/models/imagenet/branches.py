"""Modules of several branches whose channels are put together: the form of GoogLeNet and Inception."""

from collections.abc import Sequence
from typing import NamedTuple

from nn_core.functions import relu
from nn_core.models.layers import Layers, Size
from nn_core.variable import Variable


class Conv(NamedTuple):
    """A convolution with batch normalization and an activation.

    Attributes:
        name: In the module.
        maps: Number of channels.
        kernel: Length along both axes, or one for each.
        stride: Along both axes.
        pad: None: kernels of odd lengths keep the size.
    """

    name: str
    maps: int
    kernel: Size = 1
    stride: int = 1
    pad: int | None = None


def convolved(h: Variable, layers: Layers, name: str, convolutions: Sequence[Conv]) -> Variable:
    """Return the convolutions one after the other; `name` is that of the module."""
    for conv in convolutions:
        full = f"{name}/{conv.name}" if name else conv.name
        names = (f"{full}/conv", f"{full}/bn")
        h = relu(layers.conv_norm(h, names, conv.maps, conv.kernel, conv.stride, pad=conv.pad))
    return h
