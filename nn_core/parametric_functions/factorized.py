"""Layers whose weight is a product of smaller ones, with initial values from the decomposition of a full weight."""

from collections.abc import Sequence
from math import prod

import numpy as np

import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.convolution import channels_of, kernel_lengths
from nn_core.parametric_functions.decomposition import ALS
from nn_core.parametric_functions.initial import affine_sizes, bias, counted, glorot, trained
from nn_core.parametric_functions.scope import Initializer, get_parameter, layer
from nn_core.typing import Array, Shape


@layer(
    "svd_affine",
    [("U", "First factor.", "(D, r)", True), ("V", "Second factor.", "(r, K)", True), ("b", "Bias.", "(K)", True)],
)
def svd_affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    r: int,
    base_axis: int = 1,
    uv_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return an affine layer whose weight has rank r: y = (x U) V + b.

    Args:
        inp: Input. Shape (N_1, ..., N_k, D_1, ..., D_m).
        r: Rank of the weight.
        uv_init: Initial full weight, which is replaced by the nearest one of rank r. Default: uniform within Glorot's
            limits.

    Returns:
        Shape (N_1, ..., N_k, K).

    Example:
        >>> PF.svd_affine(nn.Variable((8, 20)), 10, r=4).shape
        (8, 10)
    """
    n_features, out_shape = affine_sizes(inp, n_outmaps, base_axis)
    n_outputs = prod(out_shape)
    if not 1 <= r <= min(n_features, n_outputs):
        raise ArgumentError(f"svd_affine: r must be from 1 to {min(n_features, n_outputs)}, got {r}")
    u_init, v_init = np.empty(0), np.empty(0)
    if get_parameter("U") is None or get_parameter("V") is None:
        uv = _full_weight("svd_affine", (n_features, n_outputs), uv_init, glorot(n_features, n_outputs, rng=rng))
        u_init, v_init = _low_rank(uv, r)
    u = trained("U", (n_features, r), u_init, fix_parameters)
    v = trained("V", (r, *out_shape), v_init.reshape(r, *out_shape) if v_init.size else v_init, fix_parameters)
    b = bias(out_shape, b_init, fix_parameters, with_bias)
    return F.affine(F.affine(inp, u, base_axis=base_axis), v, b, base_axis)


@layer(
    "svd_conv",
    [
        ("U", "Kernels of each input channel.", "(C * r, *kernel)", True),
        ("V", "Weight that combines them.", "(K, C * r, 1, ...)", True),
        ("b", "Bias.", "(K)", True),
    ],
)
def svd_convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    r: int,
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    uv_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer as r kernels for each input channel, and a convolution of size 1 that combines them.

    Args:
        inp: Input. Shape (N, C, *spatial).
        r: Kernels of each input channel: the rank of its part of the full weight.
        uv_init: Initial full weight, shape (K, C, *kernel); for each input channel it is replaced by the nearest one
            of rank r. Default: uniform within Glorot's limits.
        base_axis: Axis of the channels.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`.

    Example:
        >>> PF.svd_convolution(nn.Variable((8, 3, 16, 16)), 4, 3, r=3, pad=1).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    channels, size = channels_of(inp, base_axis), prod(kernel)
    if not 1 <= r <= min(size, outmaps):
        raise ArgumentError(f"svd_convolution: r must be from 1 to {min(size, outmaps)}, got {r}")
    u_shape, v_shape = (channels * r, *kernel), (outmaps, channels * r, *(1,) * len(kernel))
    u_init, v_init = np.empty(0), np.empty(0)
    if get_parameter("U") is None or get_parameter("V") is None:
        default = glorot(channels, outmaps, kernel, rng)
        uv = _full_weight("svd_convolution", (outmaps, channels, *kernel), uv_init, default)
        # one matrix (kernel size, K) for each input channel
        u, v = _low_rank(uv.reshape(outmaps, channels, size).transpose(1, 2, 0), r)
        u_init = u.transpose(0, 2, 1).reshape(u_shape)
        v_init = v.reshape(channels * r, outmaps).T.reshape(v_shape)
    y = F.depthwise_convolution(inp, trained("U", u_shape, u_init, fix_parameters), None, base_axis, pad, stride, dilation, r)
    v_parameter = trained("V", v_shape, v_init, fix_parameters)
    return F.convolution(y, v_parameter, bias((outmaps,), b_init, fix_parameters, with_bias), base_axis)


@layer(
    "cpd3_conv",
    [
        ("I", "Weight on the input channels.", "(r, C, 1, ...)", True),
        ("O", "Weight on the output channels.", "(K, r, 1, ...)", True),
        ("K", "Kernels.", "(r, *kernel)", True),
        ("b", "Bias.", "(K)", True),
    ],
)
def cpd3_convolution(
    inp: Operand,
    outmaps: int,
    kernel: int | Sequence[int],
    r: int,
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    oik_init: Initializer | None = None,
    b_init: Initializer | None = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    max_iter: int = 500,
    stopping_criterion: float = 1e-05,
    lambda_reg: float = 0.0,
    name: str | None = None,
) -> Operand:
    """Return a convolution layer whose weight is a sum of r outer products of output, input and kernel vectors.

    Args:
        inp: Input. Shape (N, C, *spatial).
        r: Number of outer products.
        oik_init: Initial full weight, shape (K, C, *kernel), which is decomposed. Default: uniform within Glorot's
            limits.
        base_axis: Axis of the channels.
        max_iter: Most rounds of the decomposition.
        stopping_criterion: The decomposition stops when its relative error changes less than this.
        lambda_reg: Penalty on the squares of the factors.

    Returns:
        Shape (N, K, *spatial), where K is `outmaps`.

    References:
        Lebedev et al. (2015), Speeding-up convolutional neural networks using fine-tuned CP-decomposition.

    Example:
        >>> PF.cpd3_convolution(nn.Variable((8, 3, 16, 16)), 4, 3, r=2, pad=1, max_iter=5).shape
        (8, 4, 16, 16)
    """
    outmaps = counted("outmaps", outmaps, "convolution")
    kernel = kernel_lengths(inp, kernel, base_axis)
    if r < 1:
        raise ArgumentError(f"cpd3_convolution: r must be at least 1, got {r}")
    channels = channels_of(inp, base_axis)
    ones = (1,) * len(kernel)
    shapes: dict[str, Shape] = {"I": (r, channels, *ones), "O": (outmaps, r, *ones), "K": (r, *kernel)}
    inits: dict[str, Array] = dict.fromkeys(shapes, np.empty(0))
    if any(get_parameter(name) is None for name in shapes):
        default = glorot(channels, outmaps, kernel, rng)
        oik = _full_weight("cpd3_convolution", (outmaps, channels, *kernel), oik_init, default)
        (o, i, k), weights = ALS().solve(
            oik.reshape(outmaps, channels, -1), r, max_iter, stopping_criterion, lambda_reg, oik.dtype, rng
        )
        inits = {"I": i.T, "O": o, "K": (weights * k).T}
        inits = {name: values.reshape(shapes[name]) for name, values in inits.items()}
    w = {name: trained(name, shape, inits[name], fix_parameters) for name, shape in shapes.items()}
    y = F.convolution(inp, w["I"], None, base_axis)
    y = F.depthwise_convolution(y, w["K"], None, base_axis, pad, stride, dilation)
    return F.convolution(y, w["O"], bias((outmaps,), b_init, fix_parameters, with_bias), base_axis)


def _full_weight(function: str, shape: Shape, init: Initializer | None, default: Initializer) -> Array:
    if init is None:
        init = default
    values = init if isinstance(init, np.ndarray) else np.asarray(init(shape))
    if values.size != prod(shape):
        raise ArgumentError(f"{function}: the initial weight must have the shape {shape}, got {values.shape}")
    return values.reshape(shape)


def _low_rank(matrices: Array, r: int) -> tuple[Array, Array]:
    """Return the factors, (..., m, r) and (..., r, n), of the nearest matrices of rank r."""
    u, s, v = np.linalg.svd(matrices, full_matrices=False)
    return u[..., :r] * s[..., None, :r], v[..., :r, :]
