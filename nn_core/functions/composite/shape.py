"""Slicing and tiling with the freedoms of NumPy: None as a bound, one number for the last axis."""

from collections.abc import Sequence

from nn_core.array import NdArray
from nn_core.errors import ArgumentError
from nn_core.functions.composite.axes import listed
from nn_core.functions.operand import Operand
from nn_core.functions.shape import slice as slice_operator
from nn_core.functions.shape import tile as tile_operator

__all__ = ["slice", "tile"]


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
    """
    lengths = {len(setting) for setting in (start, stop, step) if setting is not None}
    if not lengths:
        return slice_operator(x, outputs=outputs)
    if len(lengths) > 1 or max(lengths) > x.ndim:
        given = f"start={start}, stop={stop}, step={step}"
        raise ArgumentError(f"slice: start, stop and step must have one length of at most {x.ndim}, got {given}")
    n = lengths.pop()
    sizes = x.shape[x.ndim - n :]
    steps = [1 if value is None else value for value in step or [None] * n]
    starts = [
        (size if by < 0 else 0) if value is None else value
        for value, size, by in zip(start or [None] * n, sizes, steps, strict=True)
    ]
    stops = [
        (-size - 1 if by < 0 else size) if value is None else value
        for value, size, by in zip(stop or [None] * n, sizes, steps, strict=True)
    ]
    return slice_operator(x, starts, stops, steps, outputs=outputs)


def tile(x: Operand, reps: int | Sequence[int]) -> Operand:
    """Put copies of an array side by side.

    Args:
        x: Array of shape (D_1, ..., D_n).
        reps: Number of copies along each axis; one number stands for the last axis. With fewer entries than axes they
            belong to the last axes; with more, axes are added in front.

    Returns:
        An array of shape (r_1 * D_1, ..., r_n * D_n).
    """
    return tile_operator(x, listed(reps))
