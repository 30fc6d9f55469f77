"""Layers whose weights are the signs of trained ones."""

from collections.abc import Sequence

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.convolution import channels_of, kernel_lengths, kernel_shape
from nn_core.parametric_functions.initial import ZEROS, affine_sizes, bias, counted, glorot, glorot_matrix
from nn_core.parametric_functions.quantizer import weight_and_copy
from nn_core.parametric_functions.scope import Initializer, get_parameter_or_create, layer

_BINARY = [
    ("W", "Exact weight.", "that of the weight", True),
    ("Wb", "Binary weight.", "that of the weight", False),
    ("b", "Bias.", "(K)", True),
]
_SCALED_BINARY = [*_BINARY[:2], ("alpha", "Scale of the binary weight.", "(K)", False), _BINARY[2]]


@layer("bicon_affine", _BINARY)
def binary_connect_affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    base_axis: int = 1,
    quantize_zero_to: float = 1.0,
    w_init: Initializer | None = None,
    wb_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return an affine layer whose weights are -1 or 1, the signs of trained ones.

    Args:
        inp: Input. Shape (N_1, ..., N_k, D_1, ..., D_m).
        quantize_zero_to: Result for a weight of zero.
        wb_init: Initial binary weight. Default: as the weight.

    Returns:
        Shape (N_1, ..., N_k, K).

    References:
        Courbariaux, Bengio and David (2015), BinaryConnect.

    Example:
        >>> PF.binary_connect_affine(nn.Variable((8, 20)), 10).shape
        (8, 10)
    """
    n_features, out_shape = affine_sizes(inp, n_outmaps, base_axis)
    default = glorot_matrix(rng)
    w, wb = weight_and_copy((n_features, *out_shape), w_init, wb_init, default, fix_parameters, "Wb")
    b = bias(out_shape, b_init, fix_parameters, with_bias)
    return F.binary_connect_affine(inp, w, wb, b, base_axis, quantize_zero_to)


@layer("bicon_conv", _BINARY)
def binary_connect_convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    quantize_zero_to: float = 1.0,
    w_init: Initializer | None = None,
    wb_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer whose weights are -1 or 1, the signs of trained ones.

    Args:
        inp: Input. Shape (N, C, *spatial).
        quantize_zero_to: Result for a weight of zero.
        wb_init: Initial binary weight. Default: as the weight.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`.

    References:
        Courbariaux, Bengio and David (2015), BinaryConnect.

    Example:
        >>> PF.binary_connect_convolution(nn.Variable((8, 3, 16, 16)), 4, 3, pad=1).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels = channels_of(inp, base_axis)
    shape = kernel_shape(outmaps, channels // group, kernel)
    default = glorot(channels, outmaps, kernel, rng)
    w, wb = weight_and_copy(shape, w_init, wb_init, default, fix_parameters, "Wb")
    b = bias((outmaps,), b_init, fix_parameters, with_bias)
    return F.binary_connect_convolution(inp, w, wb, b, base_axis, pad, stride, dilation, group, quantize_zero_to)


@layer("bwn_affine", _SCALED_BINARY)
def binary_weight_affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    base_axis: int = 1,
    quantize_zero_to: float = 1.0,
    w_init: Initializer | None = None,
    wb_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return an affine layer whose weights are the signs of trained ones, times a scale for each output.

    Args:
        inp: Input. Shape (N_1, ..., N_k, D_1, ..., D_m).
        quantize_zero_to: Result for a weight of zero.
        wb_init: Initial binary weight. Default: as the weight.

    Returns:
        Shape (N_1, ..., N_k, K).

    References:
        Rastegari et al. (2016), XNOR-Net, section 3.1.

    Example:
        >>> PF.binary_weight_affine(nn.Variable((8, 20)), 10).shape
        (8, 10)
    """
    n_features, out_shape = affine_sizes(inp, n_outmaps, base_axis)
    default = glorot_matrix(rng)
    w, wb = weight_and_copy((n_features, *out_shape), w_init, wb_init, default, fix_parameters, "Wb")
    alpha = get_parameter_or_create("alpha", out_shape, ZEROS, False)
    b = bias(out_shape, b_init, fix_parameters, with_bias)
    return F.binary_weight_affine(inp, w, wb, alpha, b, base_axis, quantize_zero_to)


@layer("bwn_conv", _SCALED_BINARY)
def binary_weight_convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    quantize_zero_to: float = 1.0,
    w_init: Initializer | None = None,
    wb_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer whose weights are the signs of trained ones, times a scale for each output channel.

    Args:
        inp: Input. Shape (N, C, *spatial).
        quantize_zero_to: Result for a weight of zero.
        wb_init: Initial binary weight. Default: as the weight.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`.

    References:
        Rastegari et al. (2016), XNOR-Net, section 3.1.

    Example:
        >>> PF.binary_weight_convolution(nn.Variable((8, 3, 16, 16)), 4, 3, pad=1).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels = channels_of(inp, base_axis)
    shape = kernel_shape(outmaps, channels // group, kernel)
    default = glorot(channels, outmaps, kernel, rng)
    w, wb = weight_and_copy(shape, w_init, wb_init, default, fix_parameters, "Wb")
    alpha = get_parameter_or_create("alpha", (outmaps,), ZEROS, False)
    b = bias((outmaps,), b_init, fix_parameters, with_bias)
    return F.binary_weight_convolution(inp, w, wb, alpha, b, base_axis, pad, stride, dilation, group, quantize_zero_to)
