"""Fully connected layers and embeddings as modules."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import nn_core.parametric_functions as PF
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.layers.layer import Layer, checked
from nn_core.parametric_functions.initial import Applied, counted
from nn_core.parametric_functions.scope import Initializer


@checked
@dataclass(eq=False, repr=False)
class Affine(Layer):
    """A fully connected layer: y = x W + b. The first input decides how many features the weight has.

    Args:
        n_outmaps: Number of features of an output, K, or several lengths.
        base_axis: First axis of the features of an input.
        w_init: Initial values of ``affine/W``, shape (D, K): an initializer, or an array. Default: uniform within Glorot's
            limits.
        b_init: Initial values of ``affine/b``, shape (K). Default: zeros.
        fix_parameters: Do not train the parameters.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.
        apply_w: Function of the weight before it is used.
        apply_b: Function of the bias before it is used.

    Raises:
        ArgumentError: when `n_outmaps` is not positive.

    Example:
        >>> layer = nn.layers.Affine(10)
        >>> layer(nn.Variable((8, 20))).shape
        (8, 10)
        >>> list(layer.get_parameters())
        ['affine/W', 'affine/b']
    """

    n_outmaps: int | Sequence[int]
    _: KW_ONLY
    base_axis: int = 1
    w_init: Initializer | None = None
    b_init: Initializer | None = None
    fix_parameters: bool = False
    rng: Rng | None = None
    with_bias: bool = True
    apply_w: Applied | None = None
    apply_b: Applied | None = None

    def __post_init__(self) -> None:
        lengths = self.n_outmaps
        for length in lengths if isinstance(lengths, Sequence) and not isinstance(lengths, str) else (lengths,):
            counted("n_outmaps", length, "Affine")

    def call(self, x: Operand) -> Operand:
        """Map shape (N, D_1, ..., D_m) to (N, K); the axes in front of `base_axis` stay."""
        return PF.affine(x, **self.settings())


#: The name that other libraries have for `Affine`.
Linear = Affine


@checked
@dataclass(eq=False, repr=False)
class Embed(Layer):
    """A trained table whose rows replace indices.

    Args:
        n_inputs: Number of different indices.
        n_features: Length of a row.
        initializer: Initial table ``embed/W``, shape (n_inputs, n_features): an initializer, or an array. Default: uniform
            with variance 1.
        fix_parameters: Do not train the table.
        apply_w: Function of the table before it is used.

    Raises:
        ArgumentError: when a number is not positive.

    Example:
        >>> nn.layers.Embed(1000, 64)(nn.Variable((8, 12))).shape
        (8, 12, 64)
    """

    n_inputs: int
    n_features: int
    initializer: Initializer | None = None
    fix_parameters: bool = False
    apply_w: Applied | None = None

    def __post_init__(self) -> None:
        counted("n_inputs", self.n_inputs, "Embed")
        counted("n_features", self.n_features, "Embed")

    def call(self, x: Operand) -> Operand:
        """Return indices of shape (N_1, ..., N_k) to (N_1, ..., N_k, n_features)."""
        return PF.embed(x, **self.settings())
