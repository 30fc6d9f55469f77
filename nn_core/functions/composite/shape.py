"""Axes that are added, dropped or joined; slicing and tiling with the freedoms of NumPy: None as a bound, one number for the last axis."""

import builtins
from collections.abc import Sequence
from math import prod

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import door
from nn_core.engine.error_messages.whole import fraction_hint, whole
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.errors import ArgumentError, ArgumentTypeError, ShapeError
from nn_core.functions.composite.axes import Axes, listed
from nn_core.functions.operand import Operand
from nn_core.functions.shape import reshape
from nn_core.functions.shape import slice as slice_operator
from nn_core.functions.shape import tile as tile_operator
from nn_core.operators.rules.shape import bounds_of

__all__ = ["expand_dims", "flatten", "slice", "squeeze", "tile"]


@door
@follows_shapes
def flatten(x: Operand, start_axis: int = 0, end_axis: int = -1) -> Operand:
    """Join neighbouring axes to one.

    Args:
        x: Array of any shape.
        start_axis: First axis to join; 1 keeps the batch.
        end_axis: Last axis to join.

    Returns:
        An array with the same elements; one axis for an array without axes.

    Example:
        >>> F.flatten(nn.Variable((8, 3, 4, 4)), 1).shape
        (8, 48)
    """
    start, end = (
        _axis("flatten", "start_axis", start_axis, max(x.ndim, 1)),
        _axis("flatten", "end_axis", end_axis, max(x.ndim, 1)),
    )
    if start > end:
        raise ArgumentError(f"flatten: start_axis must not come after end_axis, got {start_axis} and {end_axis} for {x.shape}")
    return reshape(x, (*x.shape[:start], prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


@door
@follows_shapes
def squeeze(x: Operand, axis: Axes | None = None) -> Operand:
    """Drop axes of length 1.

    Args:
        x: Array of any shape.
        axis: Axis or axes to drop; None: all of length 1.

    Returns:
        An array with the same elements.

    Raises:
        ShapeError: when an axis to drop has another length.

    Example:
        >>> F.squeeze(nn.Variable((1, 3, 1))).shape
        (3,)
    """
    given = [i for i, length in enumerate(x.shape) if length == 1] if axis is None else listed(axis)
    dropped = {_axis("squeeze", "axis", place, x.ndim) for place in given}
    if any(x.shape[place] != 1 for place in dropped):
        raise ShapeError(f"squeeze: axis must name axes of length 1, got {axis!r} for {x.shape}")
    return reshape(x, tuple([length for place, length in enumerate(x.shape) if place not in dropped]))


@door
@follows_shapes
def expand_dims(x: Operand, axis: Axes) -> Operand:
    """Add axes of length 1.

    Args:
        x: Array of any shape.
        axis: Place or places of the new axes in the result.

    Returns:
        An array with the same elements.

    Example:
        >>> F.expand_dims(nn.Variable((3, 4)), 0).shape
        (1, 3, 4)
    """
    ndim = x.ndim + len(listed(axis))
    added = {_axis("expand_dims", "axis", place, ndim) for place in listed(axis)}
    if x.ndim + len(added) != ndim:
        raise ArgumentError(f"expand_dims: axis must name each place once, got {axis!r}")
    lengths = iter(x.shape)
    return reshape(x, tuple([1 if place in added else next(lengths) for place in range(ndim)]))


def _axis(function: str, argument: str, axis: int, ndim: int) -> int:
    try:
        place = ndim if isinstance(axis, bool) else whole(axis)
    except TypeError:
        place = ndim
    if not -ndim <= place < ndim:
        text = f"{function}: {argument} must be an axis from {-ndim} to {ndim - 1}, got {axis!r}{fraction_hint(axis)}"
        raise ArgumentError(text)
    return place % ndim


@door
def slice(
    x: Operand,
    start: Sequence[int | None] | None = None,
    stop: Sequence[int | None] | None = None,
    step: Sequence[int | None] | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
    """Cut out evenly spaced elements along each axis.

    y = x[start_1:stop_1:step_1, ..., start_n:stop_n:step_n]

    Args:
        x: Array of shape (D_1, ..., D_n).
        start: First element for each axis; None: the first one, or the last one for a negative step.
        stop: End for each axis, not included; None: up to the edge.
        step: Distance of neighbours for each axis; None: 1.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        A copy of the elements, shape (L_1, ..., L_n).

    Notes:
        Bounds mean what they mean in a Python slice. Settings with fewer entries than axes belong to the last axes.

    Example:
        >>> F.slice(nn.NdArray.from_numpy_array(np.arange(6.0)), start=(1,), stop=(6,), step=(2,)).numpy().tolist()
        [1.0, 3.0, 5.0]
    """
    for name, setting in (("start", start), ("stop", stop), ("step", step)):
        if setting is not None and not isinstance(setting, Sequence):
            hint = f"({setting},) is for the last axis; x[...] cuts by Python's slices, from the first axis on"
            raise ArgumentTypeError(f"slice: {name} must be a sequence of integers or None, got {setting!r}\n  hint: {hint}")
    lengths = {len(setting) for setting in (start, stop, step) if setting is not None}
    if not lengths:
        return slice_operator(x, outputs=outputs)
    if len(lengths) > 1 or max(lengths) > x.ndim:
        given = f"start={start}, stop={stop}, step={step}"
        raise ArgumentError(f"slice: start, stop and step must have one length of at most {x.ndim}, got {given}")
    n = lengths.pop()
    settings = [[None] * n if setting is None else setting for setting in (start, stop, step)]
    starts, stops, steps = zip(*[bounds_of(builtins.slice(*bounds)) for bounds in zip(*settings, strict=True)], strict=True)
    return slice_operator(x, starts, stops, steps, outputs=outputs)


@door
def tile(x: Operand, reps: int | Sequence[int]) -> Operand:
    """Put copies of an array side by side.

    Args:
        x: Array of shape (D_1, ..., D_n).
        reps: Number of copies along each axis; one number stands for the last axis. With fewer entries than axes they
            belong to the last axes; with more, axes are added in front.

    Returns:
        An array of shape (r_1 * D_1, ..., r_n * D_n).

    Example:
        >>> F.tile(nn.NdArray.from_numpy_array([[1.0, 2.0]]), (2, 2)).numpy().tolist()
        [[1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0]]
    """
    return tile_operator(x, listed(reps, "reps"))
