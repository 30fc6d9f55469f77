"""Rounding to evenly spaced values of a range, and layers with parameters that are rounded so."""

from collections.abc import Sequence

import numpy as np

import nn_core.functions as F
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand
from nn_core.initializer import ConstantInitializer, Rng
from nn_core.parametric_functions.convolution import kernel_lengths
from nn_core.parametric_functions.initial import counted
from nn_core.parametric_functions.quantizer import QUANTIZED, Quantizer, quantized_affine, quantized_kernel_and_bias
from nn_core.parametric_functions.scope import Initializer, get_parameter_or_create, layer


@layer(
    "min_max_quantize",
    [
        ("ql_min", "Lowest integer.", "1 along all axes", False),
        ("ql_max", "Highest integer.", "1 along all axes", False),
        ("qr_min", "Lower end of the range; not trained if `ema`.", "1 along all axes", True),
        ("qr_max", "Upper end of the range; not trained if `ema`.", "1 along all axes", True),
    ],
)
def min_max_quantize(
    x: Operand,
    ql_min: int = 0,
    ql_max: int = 255,
    decay: float = 0.999,
    x_min_max: bool = False,
    ema: bool = False,
    ste_fine_grained: bool = True,
    eps: float = 0.01,
    qr_min_init: Initializer | None = None,
    qr_max_init: Initializer | None = None,
    fix_parameters: bool = False,
    outputs: Sequence[NdArray] | None = None,
    name: str | None = None,
) -> Operand:
    """Round to evenly spaced values of a range whose ends are trained, or follow the input.

    Args:
        x: Input of any shape.
        ql_min: Lowest integer that stands for a value.
        ql_max: Highest integer that stands for a value.
        decay: Part of the moving ends that is kept at each step.
        x_min_max: Take the ends from the input.
        ema: Let the ends be moving means of those of the input; needs `x_min_max`.
        ste_fine_grained: No gradient where the input is out of range.
        eps: Least length of the range.
        qr_min_init: Initial lower end. Default: -6.
        qr_max_init: Initial upper end. Default: 6.
        outputs: An NdArray that gets the results.

    Returns:
        The shape of `x`.

    References:
        Jacob et al. (2018), Quantization and training of neural networks for efficient integer-arithmetic-only
        inference.

    Example:
        >>> PF.min_max_quantize(nn.Variable((8, 20))).shape
        (8, 20)
    """
    shape = (1,) * x.ndim
    lowest = get_parameter_or_create("ql_min", shape, np.full(shape, ql_min), False)
    highest = get_parameter_or_create("ql_max", shape, np.full(shape, ql_max), False)
    is_trained = not ema
    low_init = ConstantInitializer(-6.0) if qr_min_init is None else qr_min_init
    high_init = ConstantInitializer(6.0) if qr_max_init is None else qr_max_init
    wanted = is_trained and not fix_parameters
    low = get_parameter_or_create("qr_min", shape, low_init, is_trained, wanted)
    high = get_parameter_or_create("qr_max", shape, high_init, is_trained, wanted)
    return F.min_max_quantize(x, low, high, lowest, highest, decay, x_min_max, ema, ste_fine_grained, eps, outputs=outputs)


@layer("min_max_quantized_affine", QUANTIZED)
def min_max_quantized_affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    base_axis: int = 1,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    quantize_w: bool = True,
    ql_min_w: int = 0,
    ql_max_w: int = 255,
    w_min_max: bool = False,
    qr_min_w_init: Initializer | None = None,
    qr_max_w_init: Initializer | None = None,
    ste_fine_grained_w: bool = True,
    quantize_b: bool = True,
    ql_min_b: int = 0,
    ql_max_b: int = 255,
    b_min_max: bool = False,
    qr_min_b_init: Initializer | None = None,
    qr_max_b_init: Initializer | None = None,
    ste_fine_grained_b: bool = True,
    eps: float = 0.01,
    name: str | None = None,
) -> Operand:
    """Return an affine layer whose weights and biases are rounded to evenly spaced values of a trained range.

    Args:
        inp: Input. Shape (N_1, ..., N_k, D_1, ..., D_m).
        quantize_w: Round the weight.
        ql_min_w: Lowest integer that stands for a weight.
        ql_max_w: Highest integer that stands for a weight.
        w_min_max: Take the range from the weight.
        qr_min_w_init: Initial lower end of the range of the weight. Default: -2.
        qr_max_w_init: Initial upper end of the range of the weight. Default: 2.
        ste_fine_grained_w: No gradient where a weight is out of range.
        quantize_b: Round the bias.
        ql_min_b: Lowest integer that stands for a bias.
        ql_max_b: Highest integer that stands for a bias.
        b_min_max: Take the range from the bias.
        qr_min_b_init: Initial lower end of the range of the bias. Default: -6.
        qr_max_b_init: Initial upper end of the range of the bias. Default: 6.
        ste_fine_grained_b: No gradient where a bias is out of range.
        eps: Least length of a range.

    Returns:
        Shape (N_1, ..., N_k, K).

    Example:
        >>> PF.min_max_quantized_affine(nn.Variable((8, 20)), 10).shape
        (8, 10)
    """
    w_ends, b_ends = (qr_min_w_init, qr_max_w_init), (qr_min_b_init, qr_max_b_init)
    return quantized_affine(
        inp,
        n_outmaps,
        base_axis,
        w_init,
        b_init,
        fix_parameters,
        rng,
        with_bias,
        _range("w", (ql_min_w, ql_max_w), w_min_max, w_ends, 2.0, ste_fine_grained_w, eps, fix_parameters)
        if quantize_w
        else None,
        _range("b", (ql_min_b, ql_max_b), b_min_max, b_ends, 6.0, ste_fine_grained_b, eps, fix_parameters)
        if quantize_b
        else None,
    )


@layer("min_max_quantized_conv", QUANTIZED)
def min_max_quantized_convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    channel_last: bool = False,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    quantize_w: bool = True,
    ql_min_w: int = 0,
    ql_max_w: int = 255,
    w_min_max: bool = False,
    qr_min_w_init: Initializer | None = None,
    qr_max_w_init: Initializer | None = None,
    ste_fine_grained_w: bool = True,
    quantize_b: bool = True,
    ql_min_b: int = 0,
    ql_max_b: int = 255,
    b_min_max: bool = False,
    qr_min_b_init: Initializer | None = None,
    qr_max_b_init: Initializer | None = None,
    ste_fine_grained_b: bool = True,
    eps: float = 0.01,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer whose weights and biases are rounded to evenly spaced values of a trained range.

    Args:
        inp: Input. Shape (N, C, *spatial).
        quantize_w: Round the weight.
        ql_min_w: Lowest integer that stands for a weight.
        ql_max_w: Highest integer that stands for a weight.
        w_min_max: Take the range from the weight.
        qr_min_w_init: Initial lower end of the range of the weight. Default: -2.
        qr_max_w_init: Initial upper end of the range of the weight. Default: 2.
        ste_fine_grained_w: No gradient where a weight is out of range.
        quantize_b: Round the bias.
        ql_min_b: Lowest integer that stands for a bias.
        ql_max_b: Highest integer that stands for a bias.
        b_min_max: Take the range from the bias.
        qr_min_b_init: Initial lower end of the range of the bias. Default: -6.
        qr_max_b_init: Initial upper end of the range of the bias. Default: 6.
        ste_fine_grained_b: No gradient where a bias is out of range.
        eps: Least length of a range.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`.

    Example:
        >>> PF.min_max_quantized_convolution(nn.Variable((8, 3, 16, 16)), 4, 3, pad=1).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    w_ends, b_ends = (qr_min_w_init, qr_max_w_init), (qr_min_b_init, qr_max_b_init)
    w, b = quantized_kernel_and_bias(
        inp,
        outmaps,
        kernel,
        group,
        channel_last,
        w_init,
        b_init,
        base_axis,
        fix_parameters,
        rng,
        with_bias,
        _range("w", (ql_min_w, ql_max_w), w_min_max, w_ends, 2.0, ste_fine_grained_w, eps, fix_parameters)
        if quantize_w
        else None,
        _range("b", (ql_min_b, ql_max_b), b_min_max, b_ends, 6.0, ste_fine_grained_b, eps, fix_parameters)
        if quantize_b
        else None,
    )
    return F.convolution(inp, w, b, base_axis, pad, stride, dilation, group, channel_last)


def _range(
    suffix: str,
    integers: tuple[int, int],
    x_min_max: bool,
    ends: tuple[Initializer | None, Initializer | None],
    limit: float,
    ste_fine_grained: bool,
    eps: float,
    fix_parameters: bool,
) -> Quantizer:
    low, high = (
        ConstantInitializer(default) if init is None else init for init, default in zip(ends, (-limit, limit), strict=True)
    )
    return lambda x, outputs: min_max_quantize(
        x,
        ql_min=integers[0],
        ql_max=integers[1],
        x_min_max=x_min_max,
        ste_fine_grained=ste_fine_grained,
        eps=eps,
        qr_min_init=low,
        qr_max_init=high,
        fix_parameters=fix_parameters,
        outputs=outputs,
        name=f"min_max_quantize_{suffix}",
    )
