"""Layers whose smallest weights and biases are set to zero."""

from collections.abc import Sequence

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.convolution import kernel_lengths
from nn_core.parametric_functions.initial import counted
from nn_core.parametric_functions.quantizer import QUANTIZED, Quantizer, quantized_affine, quantized_kernel_and_bias
from nn_core.parametric_functions.scope import Initializer, layer


@layer("pruned_affine", QUANTIZED)
def pruned_affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    base_axis: int = 1,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    prune_w: bool = True,
    rate_w: float = 0.9,
    prune_b: bool = True,
    rate_b: float = 0.9,
    name: str | None = None,
) -> Operand:
    """Return an affine layer whose smallest weights and biases are set to zero.

    Args:
        inp: Input. Shape (N_1, ..., N_k, D_1, ..., D_m).
        prune_w: Prune the weight.
        rate_w: Part of the weights that is set to zero.
        prune_b: Prune the bias.
        rate_b: Part of the biases that is set to zero.

    Returns:
        Shape (N_1, ..., N_k, K).

    Example:
        >>> PF.pruned_affine(nn.Variable((8, 20)), 10).shape
        (8, 10)
    """
    prune_weight = _pruned(rate_w) if prune_w else None
    prune_bias = _pruned(rate_b) if prune_b else None
    return quantized_affine(
        inp, n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, prune_weight, prune_bias
    )


@layer("pruned_conv", QUANTIZED)
def pruned_convolution(
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
    prune_w: bool = True,
    rate_w: float = 0.9,
    prune_b: bool = True,
    rate_b: float = 0.9,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer whose smallest weights and biases are set to zero.

    Args:
        inp: Input. Shape (N, C, *spatial).
        prune_w: Prune the weight.
        rate_w: Part of the weights that is set to zero.
        prune_b: Prune the bias.
        rate_b: Part of the biases that is set to zero.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`.

    Example:
        >>> PF.pruned_convolution(nn.Variable((8, 3, 16, 16)), 4, 3, pad=1).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
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
        _pruned(rate_w) if prune_w else None,
        _pruned(rate_b) if prune_b else None,
    )
    return F.convolution(inp, w, b, base_axis, pad, stride, dilation, group, channel_last)


def _pruned(rate: float) -> Quantizer:
    return lambda x, outputs: F.prune(x, rate, outputs=outputs)
