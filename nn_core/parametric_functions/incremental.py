"""Layers for incremental network quantization."""

from collections.abc import Sequence

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.convolution import channels_of, kernel_lengths, kernel_shape
from nn_core.parametric_functions.initial import ZEROS, affine_sizes, bias, counted, glorot, glorot_matrix, trained
from nn_core.parametric_functions.scope import Initializer, get_parameter_or_create, layer

_INCREMENTAL = [
    ("W", "Exact weight.", "that of the weight", True),
    ("I", "1 where a weight is fixed.", "that of the weight", False),
    ("b", "Bias.", "(K)", True),
]


@layer("inq_affine", _INCREMENTAL)
def inq_affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    base_axis: int = 1,
    num_bits: int = 4,
    inq_iterations: Sequence[int] = (),
    selection_algorithm: str = "random",
    seed: int = -1,
    w_init: Initializer | None = None,
    i_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return an affine layer whose weights become powers of two, half of the rest at a time, while the others train on.

    Args:
        inp: Input. Shape (N_1, ..., N_k, D_1, ..., D_m).
        num_bits: Bits of a weight; one stands for zero.
        inq_iterations: Iterations after which half of the free weights are fixed; all of them after the last.
        selection_algorithm: Choice of the weights to fix next: "largest_abs" or "random".
        seed: Seed of the random selection; -1: the one that `nn_core.seed` sets.
        i_init: Initial marks of fixed weights. Default: zeros.

    Returns:
        Shape (N_1, ..., N_k, K).

    References:
        Zhou et al. (2017), Incremental network quantization.

    Example:
        >>> PF.inq_affine(nn.Variable((8, 20)), 10).shape
        (8, 10)
    """
    n_features, out_shape = affine_sizes(inp, n_outmaps, base_axis)
    shape = (n_features, *out_shape)
    w_init = glorot_matrix(rng) if w_init is None else w_init
    w = trained("W", shape, w_init, fix_parameters)
    fixed = get_parameter_or_create("I", shape, ZEROS if i_init is None else i_init, False)
    b = bias(out_shape, b_init, fix_parameters, with_bias)
    return F.inq_affine(inp, w, fixed, b, base_axis, num_bits, inq_iterations, selection_algorithm, seed)


@layer("inq_conv", _INCREMENTAL)
def inq_convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    num_bits: int = 4,
    inq_iterations: Sequence[int] = (),
    selection_algorithm: str = "random",
    seed: int = -1,
    w_init: Initializer | None = None,
    i_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer whose weights become powers of two, half of the rest at a time, while the others train on.

    Args:
        inp: Input. Shape (N, C, *spatial).
        num_bits: Bits of a weight; one stands for zero.
        inq_iterations: Iterations after which half of the free weights are fixed; all of them after the last.
        selection_algorithm: Choice of the weights to fix next: "largest_abs" or "random".
        seed: Seed of the random selection; -1: the one that `nn_core.seed` sets.
        i_init: Initial marks of fixed weights. Default: zeros.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`.

    References:
        Zhou et al. (2017), Incremental network quantization.

    Example:
        >>> PF.inq_convolution(nn.Variable((8, 3, 16, 16)), 4, 3, pad=1).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels = channels_of(inp, base_axis)
    shape = kernel_shape(outmaps, channels // group, kernel)
    w_init = glorot(channels, outmaps, kernel, rng) if w_init is None else w_init
    w = trained("W", shape, w_init, fix_parameters)
    fixed = get_parameter_or_create("I", shape, ZEROS if i_init is None else i_init, False)
    b = bias((outmaps,), b_init, fix_parameters, with_bias)
    return F.inq_convolution(
        inp, w, fixed, b, base_axis, pad, stride, dilation, group, num_bits, inq_iterations, selection_algorithm, seed
    )
