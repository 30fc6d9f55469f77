"""Broadcasting of shapes, and its transpose: summing a gradient back to the shape of an operand."""

from typing import Any

from nn_core.errors import ShapeError
from nn_core.typing import Shape


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape that `shapes` have in common when axes are matched from the last and length 1 is stretched."""
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_common_length(lengths, shapes) for lengths in zip(*padded, strict=True))


def _common_length(lengths: tuple[int, ...], shapes: tuple[Shape, ...]) -> int:
    longer = {length for length in lengths if length != 1}
    if len(longer) > 1:
        given = " and ".join(map(str, map(tuple, shapes)))
        raise ShapeError(f"input shapes must be equal or 1 on each axis, counted from the last, got {given}")
    return longer.pop() if longer else 1


def unbroadcast(F: Any, dy: Any, shape: Shape) -> Any:
    """Sum the gradient `dy` of a broadcast operand over the axes that were stretched, back to its `shape`."""
    if tuple(dy.shape) == tuple(shape):
        return dy
    added = dy.ndim - len(shape)
    stretched = (axis + added for axis, length in enumerate(shape) if length == 1 and dy.shape[axis + added] != 1)
    axes = (*range(added), *stretched)
    summed = F.sum(dy, axes=axes, keep_dims=True) if any(dy.shape[axis] != 1 for axis in axes) else dy
    return summed if tuple(summed.shape) == tuple(shape) else F.reshape(summed, shape=tuple(shape))
