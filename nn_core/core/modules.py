"""Modules that many networks use: a convolution with normalization, and the bottleneck of residual networks."""

from collections.abc import Callable, Sequence

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.core.module import Module
from nn_core.variable import Variable


def complete_dims(s: int | Sequence[int], dims: int) -> tuple[int, ...]:
    """`s` for each of `dims` axes, if it is one number; a sequence is returned as it is."""
    return (s,) * dims if isinstance(s, int) else tuple(s)


def get_conv_same_pad(k: Sequence[int]) -> tuple[int, ...]:
    """Return the padding with which a convolution by a kernel of odd lengths `k` keeps the size."""
    return tuple(length // 2 for length in k)


class ConvBn(Module):
    """A convolution without bias that keeps the size, batch normalization, and an activation.

    Args:
        outmaps: Number of output channels.
        kernel: Length of the kernel along both axes, or one for each.
        stride: Stride along both axes, or one for each.
        act: Function of the result; None: none.

    Example:
        >>> block = ConvBn(8, 3, act=F.relu)
        >>> block(Variable((2, 3, 16, 16))).shape
        (2, 8, 16, 16)
    """

    def __init__(
        self,
        outmaps: int,
        kernel: int | Sequence[int] = 1,
        stride: int | Sequence[int] = 1,
        act: Callable[[Variable], Variable] | None = None,
    ) -> None:
        self.outmaps = outmaps
        self.kernel = complete_dims(kernel, 2)
        self.stride = complete_dims(stride, 2)
        self.act = act

    def call(self, x: Variable, training: bool | None = None) -> Variable:
        """(N, C, H, W) to (N, outmaps, H / stride, W / stride); `training`: normalize by the batch; None: if it trains."""
        h = PF.convolution(x, self.outmaps, self.kernel, get_conv_same_pad(self.kernel), self.stride, with_bias=False)
        h = PF.batch_normalization(h, batch_stat=self.training if training is None else training)
        return h if self.act is None else self.act(h)


class ResUnit(Module):
    """A residual unit of three convolutions, the middle one with a quarter of the channels (a bottleneck).

    Args:
        channels: Number of output channels, at least 4.
        stride: Stride of the middle convolution.
        skip_by_conv: Bring the input to the shape of the output by a convolution; if not, it has that shape.

    References:
        He et al. (2016), Deep residual learning for image recognition, figure 5.
    """

    def __init__(self, channels: int, stride: int | Sequence[int] = 1, skip_by_conv: bool = True) -> None:
        self.conv1 = ConvBn(channels // 4, 1, 1, F.relu)
        self.conv2 = ConvBn(channels // 4, 3, stride, F.relu)
        self.conv3 = ConvBn(channels)
        self.skip_by_conv = skip_by_conv
        if skip_by_conv:
            self.skip = ConvBn(channels, 1, stride)

    def call(self, x: Variable, training: bool | None = None) -> Variable:
        """Shape (N, C, H, W) to (N, channels, H / stride, W / stride); `training`: as in `ConvBn`."""
        h = self.conv3(self.conv2(self.conv1(x, training), training), training)
        return F.relu(h + (self.skip(x, training) if self.skip_by_conv else x))
