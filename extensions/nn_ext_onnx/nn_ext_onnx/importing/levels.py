"""Values that were made of levels: products of them are computed in integers, and their results quantized at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

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
