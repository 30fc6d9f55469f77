"""Weights and biases of layers with their usual initial values."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Final, TypeAlias

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.whole import fraction_hint, whole
from nn_core.errors import ArgumentError
from nn_core.initializer import ConstantInitializer, FloatArray, Rng, UniformInitializer, calc_uniform_lim_glorot
from nn_core.parametric_functions.scope import Initializer
from nn_core.parametric_functions.scope import trained as trained
from nn_core.typing import Shape
from nn_core.variable import Variable

#: ``apply_w`` and ``apply_b``: what is done to a parameter before it is used.
Applied: TypeAlias = Callable[[Variable], Variable]

ZEROS: Final = ConstantInitializer(0)
ONES: Final = ConstantInitializer(1)


def glorot(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1), rng: Rng | None = None) -> Callable[[Shape], FloatArray]:
    """Return the usual initializer of weights; works out its limits when it is called, as most weights are there already."""
    return partial(_glorot, inmaps, outmaps, kernel, rng)


def _glorot(inmaps: int, outmaps: int, kernel: Sequence[int], rng: Rng | None, shape: Shape) -> FloatArray:
    return UniformInitializer(calc_uniform_lim_glorot(inmaps, outmaps, kernel), rng)(shape)


def glorot_matrix(rng: Rng | None) -> Callable[[Shape], FloatArray]:
    """As `glorot`, for a weight whose first axis is that of the inputs and whose others are those of the outputs."""
    return _GLOROT_MATRIX if rng is None else partial(_glorot_matrix, rng)


def _glorot_matrix(rng: Rng | None, shape: Shape) -> FloatArray:
    return _glorot(shape[0], prod(shape[1:]), (), rng, shape)


_GLOROT_MATRIX: Final = partial(_glorot_matrix, None)  # once: each call of a layer asks for it


def bias(
    shape: Sequence[int],
    b_init: Initializer | None,
    fix_parameters: bool,
    with_bias: bool = True,
    apply: Applied | None = None,
) -> Variable | None:
    """Return the bias of a layer, zero at first; None when there is none."""
    if not with_bias:
        return None
    return trained("b", shape, ZEROS if b_init is None else b_init, fix_parameters, apply)


def counted(name: str, value: Any, layer: str = "affine") -> int:
    """Return a number of outputs, or a length of a kernel.

    Raises:
        ArgumentError: when it is no integer, or not positive.
    """
    try:
        number = 0 if isinstance(value, bool) else whole(value)
    except TypeError:
        number = 0
    if number <= 0:
        raise ArgumentError(f"{layer}: {name} must be a positive integer, got {value!r}{fraction_hint(value)}")
    return number


def shape_for_parameters(inp: Variable | NdArray) -> Shape:
    """Return the shape of an input in plain numbers, for parameters, which follow no other shape."""
    return inp.plain_shape if isinstance(inp, Variable) else inp.shape


def affine_sizes(inp: Variable | NdArray, n_outmaps: int | Sequence[int], base_axis: int) -> tuple[int, Shape]:
    """Return number of input features and shape of the output features of an affine layer."""
    shape = shape_for_parameters(inp)[base_axis:]
    n_features = shape[0] if len(shape) == 1 else prod(shape)
    if type(n_outmaps) is int and n_outmaps > 0:  # before isinstance, which takes ten times as long for an abstract class
        return n_features, (n_outmaps,)
    several = isinstance(n_outmaps, Sequence) and not isinstance(n_outmaps, str)
    lengths: Any = n_outmaps if several else (n_outmaps,)
    return n_features, tuple(counted("n_outmaps", n) for n in lengths)
