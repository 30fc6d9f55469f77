"""Convolutions as modules, in any number of dimensions."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import nn_core.parametric_functions as PF
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.layers.layer import Layer, checked
from nn_core.parametric_functions.initial import Applied, counted
from nn_core.parametric_functions.scope import Initializer

#: One number for all spatial axes, or one for each.
Lengths = int | Sequence[int]


@checked
@dataclass(eq=False, repr=False)
class Conv(Layer):
    """A convolution in as many dimensions as the input has spatial axes. The first input decides on the channels.

    Args:
        outmaps: Number of output channels, K.
        kernel: Length of the kernel along each spatial axis.
        pad: Zeros on both sides of each spatial axis. Default: 0.
        stride: Distance of the windows along each spatial axis. Default: 1.
        dilation: Distance of the elements of the kernel. Default: 1.
        group: Number of groups of channels; it divides the channels of inputs and outputs.
        channel_last: The channels are the last axis.
        w_init: Initial values of ``conv/W``, shape (K, C / group, *kernel). Default: uniform within Glorot's limits.
        b_init: Initial values of ``conv/b``, shape (K). Default: zeros.
        base_axis: Axis of the channels, or of the first spatial axis if `channel_last`.
        fix_parameters: Do not train the parameters.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.
        apply_w: Function of the weight before it is used.
        apply_b: Function of the bias before it is used.

    Raises:
        ArgumentError: when `outmaps` or `group` is not positive.

    Example:
        >>> nn.layers.Conv(4, 3, pad=1, stride=2)(nn.Variable((8, 3, 16, 16))).shape
        (8, 4, 8, 8)
    """

    outmaps: int
    kernel: Lengths
    _: KW_ONLY
    pad: Lengths | None = None
    stride: Lengths | None = None
    dilation: Lengths | None = None
    group: int = 1
    channel_last: bool = False
    w_init: Initializer | None = None
    b_init: Initializer | None = None
    base_axis: int = 1
    fix_parameters: bool = False
    rng: Rng | None = None
    with_bias: bool = True
    apply_w: Applied | None = None
    apply_b: Applied | None = None

    def __post_init__(self) -> None:
        counted("outmaps", self.outmaps, "Conv")
        counted("group", self.group, "Conv")

    def call(self, x: Operand) -> Operand:
        """Map shape (N, C, *spatial) to (N, K, *spatial)."""
        return PF.convolution(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class Deconv(Layer):
    """The transpose of a convolution, which spreads its input by trained kernels.

    Args:
        outmaps: Number of output channels, K.
        kernel: Length of the kernel along each spatial axis.
        pad: Elements cut off on both sides of each spatial axis. Default: 0.
        stride: Distance in the output of neighbouring inputs. Default: 1.
        dilation: Distance of the elements of the kernel. Default: 1.
        group: Number of groups of channels; it divides the channels of inputs and outputs.
        channel_last: The channels are the last axis.
        output_padding: Elements added at the end of each spatial axis. Default: 0.
        w_init: Initial values of ``deconv/W``, shape (C, K / group, *kernel). Default: uniform within Glorot's limits.
        b_init: Initial values of ``deconv/b``, shape (K). Default: zeros.
        base_axis: Axis of the channels, or of the first spatial axis if `channel_last`.
        fix_parameters: Do not train the parameters.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.
        apply_w: Function of the weight before it is used.
        apply_b: Function of the bias before it is used.

    Raises:
        ArgumentError: when `outmaps` or `group` is not positive.

    Example:
        >>> nn.layers.Deconv(4, 2, stride=2)(nn.Variable((8, 3, 16, 16))).shape
        (8, 4, 32, 32)
    """

    outmaps: int
    kernel: Lengths
    _: KW_ONLY
    pad: Lengths | None = None
    stride: Lengths | None = None
    dilation: Lengths | None = None
    group: int = 1
    channel_last: bool = False
    output_padding: Lengths | None = None
    w_init: Initializer | None = None
    b_init: Initializer | None = None
    base_axis: int = 1
    fix_parameters: bool = False
    rng: Rng | None = None
    with_bias: bool = True
    apply_w: Applied | None = None
    apply_b: Applied | None = None

    def __post_init__(self) -> None:
        counted("outmaps", self.outmaps, "Deconv")
        counted("group", self.group, "Deconv")

    def call(self, x: Operand) -> Operand:
        """Map shape (N, C, *spatial) to (N, K, *spatial)."""
        return PF.deconvolution(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class DepthwiseConv(Layer):
    """A convolution whose outputs see one input channel each.

    Args:
        kernel: Length of the kernel along each spatial axis.
        pad: Zeros on both sides of each spatial axis. Default: 0.
        stride: Distance of the windows along each spatial axis. Default: 1.
        dilation: Distance of the elements of the kernel. Default: 1.
        multiplier: Number of outputs of each input channel.
        w_init: Initial values of ``depthwise_conv/W``, shape (C * multiplier, *kernel). Default: uniform within Glorot's
            limits.
        b_init: Initial values of ``depthwise_conv/b``, shape (C * multiplier). Default: zeros.
        base_axis: Axis of the channels.
        fix_parameters: Do not train the parameters.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.

    Raises:
        ArgumentError: when `multiplier` is not positive.

    Example:
        >>> nn.layers.DepthwiseConv(3, pad=1, multiplier=2)(nn.Variable((8, 3, 16, 16))).shape
        (8, 6, 16, 16)
    """

    kernel: Lengths
    _: KW_ONLY
    pad: Lengths | None = None
    stride: Lengths | None = None
    dilation: Lengths | None = None
    multiplier: int = 1
    w_init: Initializer | None = None
    b_init: Initializer | None = None
    base_axis: int = 1
    fix_parameters: bool = False
    rng: Rng | None = None
    with_bias: bool = True

    def __post_init__(self) -> None:
        counted("multiplier", self.multiplier, "DepthwiseConv")

    def call(self, x: Operand) -> Operand:
        """Map shape (N, C, *spatial) to (N, C * multiplier, *spatial)."""
        return PF.depthwise_convolution(x, **self.settings())
