"""Fully connected layers and embeddings."""

from collections.abc import Sequence
from typing import Final

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng, UniformInitializer
from nn_core.parametric_functions.initial import Applied, affine_sizes, bias, counted, glorot_matrix, trained
from nn_core.parametric_functions.scope import Initializer, layer

_UNIT_VARIANCE: Final = UniformInitializer((-(3**0.5), 3**0.5))


@layer("affine", [("W", "Weight.", "(D, K)", True), ("b", "Bias.", "(K)", True)])
def affine(
    inp: Operand,
    n_outmaps: int | Sequence[int],
    base_axis: int = 1,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: Rng | None = None,
    with_bias: bool = True,
    apply_w: Applied | None = None,
    apply_b: Applied | None = None,
    name: str | None = None,
) -> Operand:
    """Multiply the flattened input by a weight and add a bias (a fully connected layer): y = x W + b.

    Args:
        inp: Input. Shape (N_1, ..., N_k, D_1, ..., D_m); D is the product of the latter.

    Returns:
        Shape (N_1, ..., N_k, K), or with several lengths in place of K.

    Example:
        >>> PF.affine(nn.Variable((8, 20)), 10, name="output").shape
        (8, 10)
        >>> list(nn.get_parameters())
        ['output/affine/W', 'output/affine/b']
    """
    n_features, out_shape = affine_sizes(inp, n_outmaps, base_axis)
    w_init = glorot_matrix(rng) if w_init is None else w_init
    w = trained("W", (n_features, *out_shape), w_init, fix_parameters, apply_w)
    b = bias(out_shape, b_init, fix_parameters, with_bias, apply_b)
    return F.affine(inp, w, b, base_axis)


@layer("embed", [("W", "One row for each index.", "(n_inputs, n_features)", True)])
def embed(
    inp: Operand,
    n_inputs: int,
    n_features: int,
    initializer: Initializer | None = None,
    fix_parameters: bool = False,
    apply_w: Applied | None = None,
    name: str | None = None,
) -> Operand:
    """Replace each index by a row of a trained table.

    Args:
        inp: Indices from 0 to n_inputs - 1. Shape (N_1, ..., N_k).
        n_inputs: Number of different indices.
        n_features: Length of a row.
        initializer: Initial table: an initializer, or an array. Default: uniform with variance 1.

    Returns:
        Shape (N_1, ..., N_k, n_features).

    Example:
        >>> PF.embed(nn.Variable((8, 12)), n_inputs=1000, n_features=64).shape
        (8, 12, 64)
    """
    n_inputs, n_features = counted("n_inputs", n_inputs, "embed"), counted("n_features", n_features, "embed")
    initializer = _UNIT_VARIANCE if initializer is None else initializer
    return F.embed(inp, trained("W", (n_inputs, n_features), initializer, fix_parameters, apply_w))
