"""Pooling as modules, in as many dimensions as the kernel has lengths."""

from dataclasses import KW_ONLY, dataclass

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.layers.convolution import Lengths
from nn_core.layers.layer import Layer, checked


@dataclass(eq=False, repr=False)
class _Pool(Layer):
    """The fields that pools of windows share."""

    kernel: Lengths
    stride: Lengths | None = None
    _: KW_ONLY
    ignore_border: bool = True
    pad: Lengths | None = None
    channel_last: bool = False


@checked
@dataclass(eq=False, repr=False)
class MaxPool(_Pool):
    """Maxima of windows.

    Args:
        kernel: Length of a window along each spatial axis.
        stride: Distance of the windows. Default: `kernel`.
        ignore_border: Leave out windows that reach beyond the border.
        pad: Elements on both sides of each spatial axis, which never are the maximum. Default: 0.
        channel_last: The channels are the last axis.

    Example:
        >>> nn.layers.MaxPool(2)(nn.Variable((8, 3, 16, 16))).shape
        (8, 3, 8, 8)
    """

    def call(self, x: Operand) -> Operand:
        """Map shape (N, C, *spatial) to (N, C, *spatial)."""
        return F.max_pooling(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class AveragePool(_Pool):
    """Means of windows.

    Args:
        kernel: Length of a window along each spatial axis.
        stride: Distance of the windows. Default: `kernel`.
        ignore_border: Leave out windows that reach beyond the border.
        pad: Zeros on both sides of each spatial axis. Default: 0.
        channel_last: The channels are the last axis.
        including_pad: Count the zeros of the padding in the means.

    Example:
        >>> nn.layers.AveragePool(2)(nn.Variable((8, 3, 16, 16))).shape
        (8, 3, 8, 8)
    """

    _: KW_ONLY
    including_pad: bool = True

    def call(self, x: Operand) -> Operand:
        """Map shape (N, C, *spatial) to (N, C, *spatial)."""
        return F.average_pooling(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class SumPool(_Pool):
    """Sums of windows.

    Args:
        kernel: Length of a window along each spatial axis.
        stride: Distance of the windows. Default: `kernel`.
        ignore_border: Leave out windows that reach beyond the border.
        pad: Zeros on both sides of each spatial axis. Default: 0.
        channel_last: The channels are the last axis.

    Example:
        >>> nn.layers.SumPool(2)(nn.Variable((8, 3, 16, 16))).shape
        (8, 3, 8, 8)
    """

    def call(self, x: Operand) -> Operand:
        """Map shape (N, C, *spatial) to (N, C, *spatial)."""
        return F.sum_pooling(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class GlobalAveragePool(Layer):
    """Means over all spatial axes.

    Example:
        >>> nn.layers.GlobalAveragePool()(nn.Variable((8, 3, 16, 16))).shape
        (8, 3, 1, 1)
    """

    def call(self, x: Operand) -> Operand:
        """Map shape (N, C, *spatial) to (N, C, 1, ..., 1)."""
        return F.mean(x, tuple(range(2, x.ndim)), keepdims=True)


@checked
@dataclass(eq=False, repr=False)
class GlobalMaxPool(Layer):
    """Maxima over all spatial axes.

    Example:
        >>> nn.layers.GlobalMaxPool()(nn.Variable((8, 3, 16, 16))).shape
        (8, 3, 1, 1)
    """

    def call(self, x: Operand) -> Operand:
        """Map shape (N, C, *spatial) to (N, C, 1, ..., 1)."""
        return F.max(x, tuple(range(2, x.ndim)), keepdims=True)
