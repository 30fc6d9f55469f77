"""Normalizations of weights, for `apply_w` of layers."""

from typing import Any

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.initializer import NormalInitializer, WeightNormalizationScaleInitializer
from nn_core.parametric_functions.initial import shape_for_parameters, trained
from nn_core.parametric_functions.normalization import checked_axes
from nn_core.parametric_functions.scope import Initializer, get_parameter_or_create, layer


@layer("wn", [("g", "Scale.", "(length of w along `dim`)", True)])
def weight_normalization(
    w: Operand,
    dim: int = 0,
    eps: float = 1e-12,
    g_init: Initializer | None = None,
    fix_parameters: bool = False,
    name: str | None = None,
) -> Operand:
    """Separate the length of a weight from its direction: g w / |w|.

    Args:
        w: Weight of any shape.
        dim: Axis of `w` along which each index has its own scale: that of the outputs.
        eps: Added to the squared norm.
        g_init: Initial scale. Default: the norms, so that the weight is unchanged at first.

    Returns:
        The shape of `w`.

    References:
        Salimans and Kingma (2016), Weight normalization.

    Example:
        >>> PF.affine(nn.Variable((8, 20)), 10, apply_w=lambda w: PF.weight_normalization(w, dim=1)).shape
        (8, 10)
    """
    (axis,) = checked_axes("weight_normalization", "dim", w, dim)
    g_init = WeightNormalizationScaleInitializer(w, axis, eps) if g_init is None else g_init
    return F.weight_normalization(w, trained("g", (shape_for_parameters(w)[axis],), g_init, fix_parameters), axis, eps)


@layer("spectral-norm", [("u", "Estimate of the first left singular vector.", "(length of w along `dim`)", False)])
def spectral_norm(
    w: Operand,
    dim: int = 0,
    itr: int = 1,
    eps: float = 1e-12,
    test: bool = False,
    u_init: Initializer | None = None,
    fix_parameters: bool = True,
    name: str | None = None,
) -> Operand:
    """Divide a weight by its largest singular value, estimated by power iteration.

    Args:
        w: Weight of any shape, taken as a matrix whose rows are the indices of `dim`.
        dim: Axis of the outputs.
        itr: Iterations each time the function runs.
        eps: Keeps divisors from zero.
        test: Use the estimate as it is, without iterating.
        u_init: Initial estimate. Default: normal.
        fix_parameters: Has no effect; the estimate is not trained.

    Returns:
        The shape of `w`.

    References:
        Miyato et al. (2018), Spectral normalization for generative adversarial networks.

    Example:
        >>> PF.affine(nn.Variable((8, 20)), 10, apply_w=lambda w: PF.spectral_norm(w, dim=1)).shape
        (8, 10)
    """
    (axis,) = checked_axes("spectral_norm", "dim", w, dim)
    u_init = NormalInitializer() if u_init is None else u_init
    u: Any = get_parameter_or_create("u", (shape_for_parameters(w)[axis],), u_init, False)
    normalized: Any = F.spectral_norm(w, u, axis, itr, eps, test)
    return normalized
