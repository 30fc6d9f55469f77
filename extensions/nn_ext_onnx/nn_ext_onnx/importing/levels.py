"""Values that were made of levels: products of them are computed in integers, and their results quantized at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Converter, Node
from nn_ext_onnx.importing.values import Array, Value

_BYTES: Final = frozenset({"int8", "uint8"})


@dataclass(frozen=True, slots=True)
class Origin:
    """The levels of which a value is a multiple.

    Attributes:
        levels: integers.
        scale: the distance of two of them, one number or those of `axis`.
        zero_point: the level of zero; None for 0.
        axis: counted from the start.
        operand: of sums of products, the dtype of their first operand.
    """

    levels: Value
    scale: Value
    zero_point: Value | None
    axis: int
    operand: np.dtype[Any] | None = None

    @property
    def is_of_bytes(self) -> bool:
        """Whether the levels have 8 bits."""
        return self.levels.dtype.name in _BYTES

    def is_along(self, axis: int | None) -> bool:
        """Return whether scale and zero point are single numbers, or those of this axis."""
        sizes = [value.size for value in (self.scale, self.zero_point) if value is not None]
        return max(sizes) == 1 or (axis is not None and self.axis == axis % self.levels.ndim)


def fixed(value: Value) -> Array | None:
    """Return the numbers of a scale or a zero point that the model holds, None where they are computed."""
    return value.array if value.is_known or value.is_parameter else None


def origin_of(node: Node) -> Origin | None:
    """Return the origin of what a dequantizer gives, None where its scales are computed, or those of blocks."""
    scale, zero_point = node[1], node.optional(2)
    if node.attr("block_size", 0) or fixed(scale) is None or (zero_point is not None and fixed(zero_point) is None):
        return None
    axis = node.axis_of(node.attr("axis", 1)) if scale.size > 1 else 0
    return Origin(node[0], scale, zero_point, axis)


#: By the operator: how products of levels are built, and whether they can be.
_PRODUCTS: Final[dict[str, tuple[Callable[[Node, Origin, Origin], bool], Converter]]] = {}


def product_of_levels(name: str, fits: Callable[[Node, Origin, Origin], bool]) -> Callable[[Converter], Converter]:
    """Register the decorated function for an operator of two values that were made of levels of 8 bits.

    Args:
        name: the operator, of ONNX's own domain.
        fits: whether the function can build a node.
    """

    def decorate(function: Converter) -> Converter:
        _PRODUCTS[name] = (fits, function)
        return function

    return decorate


def find_product(node: Node) -> Converter | None:
    """Return what builds a node in integers, None where it has to be built as it says."""
    if node.kind not in _PRODUCTS or node.proto.domain not in ("", "ai.onnx") or node.dtypes[0] != np.float32:
        return None
    left, right = (None if value is None else value.origin for value in (node.optional(0), node.optional(1)))
    if left is None or right is None:
        return None
    fits, convert = _PRODUCTS[node.kind]
    able = left.is_of_bytes and right.is_of_bytes and left.is_along(None) and fits(node, left, right)
    return convert if able else None


#: Operators that move the elements of their first input.
_MOVEMENTS: Final = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def find_movement(node: Node, convert: Converter | None) -> Converter | None:
    """Return what moves the levels of which the first input was made; None where it was not, or the node does more."""
    if convert is None or node.kind not in _MOVEMENTS or node.proto.domain not in ("", "ai.onnx"):
        return None
    origin = None if node.optional(0) is None else node[0].origin
    if origin is None or not origin.is_of_bytes or not origin.is_along(None) or fixed(node[0]) is not None:
        return None
    return partial(_moved, convert, origin)


def _moved(convert: Converter, origin: Origin, node: Node) -> nn.Variable:
    """Return the values of the levels that are moved."""
    levels = replace(node, inputs=[origin.levels, *node.inputs[1:]], dtypes=[origin.levels.dtype])
    made = convert(levels)
    assert isinstance(made, nn.Variable)
    node.origin = replace(origin, levels=Value("levels", origin.levels.dtype, variable=made), axis=0)
    scale = _number(origin.scale, made.ndim)
    if origin.zero_point is None:
        return made * scale
    return F.dequantize_linear(made, scale, _number(origin.zero_point, made.ndim))


def _number(value: Value, ndim: int) -> nn.Variable:
    return nn.Variable.from_numpy_array(value.array.reshape((1,) * ndim))


def same_levels(origin: Origin | None, scale: Value, zero_point: Value | None, dtype: np.dtype[Any]) -> bool:
    """Return whether a quantizer gives the levels of which a value was made, by the same scale and zero point."""
    if origin is None or not origin.is_of_bytes or origin.levels.dtype != dtype or not origin.is_along(None):
        return False
    pairs = [(origin.scale, scale), (origin.zero_point, zero_point)]
    numbers = [[0.0 if value is None else fixed(value) for value in pair] for pair in pairs]
    return all(a is not None and b is not None and np.size(a) == np.size(b) == 1 and np.all(a == b) for a, b in numbers)
