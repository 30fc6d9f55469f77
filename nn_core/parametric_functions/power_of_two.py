"""Layers whose weights and biases are powers of two."""

from collections.abc import Sequence

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.convolution import kernel_lengths
from nn_core.parametric_functions.initial import counted
from nn_core.parametric_functions.quantizer import QUANTIZED, Quantizer, quantized_affine, quantized_kernel_and_bias
from nn_core.parametric_functions.scope import Initializer, layer


@layer("pow2_quantized_affine", QUANTIZED)
def pow2_quantized_affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    base_axis: int = 1,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    quantize_w: bool = True,
    sign_w: bool = True,
    with_zero_w: bool = False,
    n_w: int = 8,
    m_w: int = 2,
    ste_fine_grained_w: bool = True,
    quantize_b: bool = True,
    sign_b: bool = True,
    with_zero_b: bool = False,
    n_b: int = 8,
    m_b: int = 2,
    ste_fine_grained_b: bool = True,
    name: str | None = None,
) -> Operand:
    """Return an affine layer whose weights and biases are powers of two.

    Args:
        inp: Input. Shape (N_1, ..., N_k, D_1, ..., D_m).
        quantize_w: Round the weight.
        sign_w: The weight has a sign bit.
        with_zero_w: A weight may be zero.
        n_w: Bits of a weight.
        m_w: 2**m_w is the largest weight.
        ste_fine_grained_w: No gradient where a weight is out of range.
        quantize_b: Round the bias.
        sign_b: The bias has a sign bit.
        with_zero_b: A bias may be zero.
        n_b: Bits of a bias.
        m_b: 2**m_b is the largest bias.
        ste_fine_grained_b: No gradient where a bias is out of range.

    Returns:
        Shape (N_1, ..., N_k, K).

    Example:
        >>> PF.pow2_quantized_affine(nn.Variable((8, 20)), 10).shape
        (8, 10)
    """
    quantize_weight = _power_of_two(sign_w, with_zero_w, n_w, m_w, ste_fine_grained_w) if quantize_w else None
    quantize_bias = _power_of_two(sign_b, with_zero_b, n_b, m_b, ste_fine_grained_b) if quantize_b else None
    return quantized_affine(
        inp, n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, quantize_weight, quantize_bias
    )


@layer("pow2_quantized_conv", QUANTIZED)
def pow2_quantized_convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    quantize_w: bool = True,
    with_zero_w: bool = False,
    sign_w: bool = True,
    n_w: int = 8,
    m_w: int = 2,
    ste_fine_grained_w: bool = True,
    quantize_b: bool = True,
    with_zero_b: bool = False,
    sign_b: bool = True,
    n_b: int = 8,
    m_b: int = 2,
    ste_fine_grained_b: bool = True,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer whose weights and biases are powers of two.

    Args:
        inp: Input. Shape (N, C, *spatial).
        quantize_w: Round the weight.
        with_zero_w: A weight may be zero.
        sign_w: The weight has a sign bit.
        n_w: Bits of a weight.
        m_w: 2**m_w is the largest weight.
        ste_fine_grained_w: No gradient where a weight is out of range.
        quantize_b: Round the bias.
        with_zero_b: A bias may be zero.
        sign_b: The bias has a sign bit.
        n_b: Bits of a bias.
        m_b: 2**m_b is the largest bias.
        ste_fine_grained_b: No gradient where a bias is out of range.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`.

    Example:
        >>> PF.pow2_quantized_convolution(nn.Variable((8, 3, 16, 16)), 4, 3, pad=1).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    quantize_weight = _power_of_two(sign_w, with_zero_w, n_w, m_w, ste_fine_grained_w) if quantize_w else None
    quantize_bias = _power_of_two(sign_b, with_zero_b, n_b, m_b, ste_fine_grained_b) if quantize_b else None
    w, b = quantized_kernel_and_bias(
        inp,
        outmaps,
        kernel,
        group,
        False,
        w_init,
        b_init,
        base_axis,
        fix_parameters,
        rng,
        with_bias,
        quantize_weight,
        quantize_bias,
    )
    return F.convolution(inp, w, b, base_axis, pad, stride, dilation, group)


def _power_of_two(sign: bool, with_zero: bool, n: int, m: int, ste_fine_grained: bool) -> Quantizer:
    return lambda x, outputs: F.pow2_quantize(x, sign, with_zero, n, m, ste_fine_grained=ste_fine_grained, outputs=outputs)
