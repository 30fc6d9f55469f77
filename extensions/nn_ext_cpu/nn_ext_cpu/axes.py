"""Elements picked from, and added to, places that an index for each element names along one axis, or that one index names
for each place of every axis."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes, refuse_empty, reshaped


class ScatterAdd:
    """x0 with elements of x1 added along an axis; the gradient of x1 is picked there."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, and 0-d arrays."""
        x0 = call.inputs[0]
        if x0 is not None and not x0.shape:
            return Refusal("takes arrays with an axis, got 0-d")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the sums."""
        return _along(call, "add_along", forward_arrays(call), [2, 1, 0, 3])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the copy of dy and the picking."""
        arrays = backward_arrays(call, wanted)
        operations: list[_native.Op] = []
        if wanted[0]:
            operations.append(_native.prepare("pointwise", arrays, places=[4, 5], program=[("copy", 1, [0], [])]))
        if wanted[2]:
            operations.append(_along(call, "pick_along", arrays, [4, 1, 7]))
        return _native.chain(operations)


def _along(call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> _native.Op:
    axis = call.args["axis"]
    return _native.prepare(operation, arrays, places=list(places), axis=axis, label="scatter_add: indices")


class Axes:
    """Samples picked from, or added up, at a place for each index of each axis; the gradient is the other of the two.

    Args:
        add: Add the elements up where they would be picked.
    """

    def __init__(self, *, add: bool) -> None:
        self._operations = ("add_axes", "pick_axes") if add else ("pick_axes", "add_axes")

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, and samples without axes or elements."""
        return refuse_samples(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the picking or the sums."""
        return _by_axes(call, self._operations[0], forward_arrays(call), [0, 1, 2])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the other one."""
        return _by_axes(call, self._operations[1], backward_arrays(call, wanted), [3, 1, 4])


def _by_axes(call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
    return by_axes(operation, arrays, places, base_axis_of(call))


def refuse_samples(call: Call) -> Refusal | None:
    """Refuse a call whose samples, the axes from ``base_axis`` on, have no axes or no elements, and other dtypes."""
    if base_axis_of(call) == len(call.outputs[0].shape):
        return Refusal("takes samples with an axis, got single elements")
    return refuse_empty(call) or refuse_dtypes(call)


def base_axis_of(call: Call) -> int:
    """Return the first axis of a sample."""
    base_axis = call.args["base_axis"]
    assert isinstance(base_axis, int)
    return base_axis


def by_axes(
    operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int], base_axis: int, value: float = 0.0
) -> _native.Op:
    """Return an operation on arrays seen as samples of the axes from `base_axis` on; `value` pads their surroundings."""
    views = []
    for desc in (arrays[place] for place in places):
        assert desc is not None
        views.append(reshaped(desc, (math.prod(desc.shape[:base_axis]), *desc.shape[base_axis:])))
    return _native.prepare(operation, arrays, views=views, places=list(places), value=value)


AXES: Final[Mapping[str, Kernel]] = {
    "ScatterAdd": ScatterAdd(),
    "GatherAxes": Axes(add=False),
    "ScatterAxes": Axes(add=True),
}
