"""Functions that arrange elements: each is some copies between views of its arrays."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cpu import _native
from nn_ext_cpu.choice import FirstOf
from nn_ext_cpu.copies import Copies
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_rank, reshaped
from nn_ext_cpu.pointwise import Pointwise
from nn_ext_cpu.resampling import PADDING

#: ``arrange(copies, call, sources, targets)`` adds the copies from the arrays at the places `sources` to those at
#: `targets`; a target that is not wanted is None.
Arrangement: TypeAlias = Callable[[Copies, Call, Sequence[int], Sequence[int | None]], None]

#: dtypes whose items can be copied.
_DTYPES: Final = ("float32", "bfloat16", "float64", "int64", "int32", "uint8", "uint64", "bool")


class Arranged:
    """A function whose outputs are copies of elements of its inputs.

    Args:
        forward: Copies from the inputs to the outputs.
        backward: Copies from the gradients of the outputs to those of the inputs; None: the gradient rule serves.
        value: Name of the argument with which outputs are filled.
    """

    def __init__(self, forward: Arrangement, backward: Arrangement | None, value: str | None = None) -> None:
        self._forward = forward
        self._backward = backward
        self._value = value

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes whose items are not of a known size, and mixtures."""
        dtypes = {desc.dtype for desc in forward_arrays(call) if desc is not None}
        if len(dtypes) != 1 or not dtypes <= set(_DTYPES):
            return Refusal(f"takes arrays of one of the dtypes {', '.join(_DTYPES)}, got {', '.join(sorted(dtypes))}")
        if call.args.get("mode", "constant") != "constant":
            return Refusal(f"takes the mode constant, got {call.args['mode']}")
        return refuse_rank(call)

    def forward(self, call: Call) -> Runner:
        """Collect the copies to the outputs."""
        arrays = forward_arrays(call)
        n_inputs = len(call.inputs)
        value = 0.0 if self._value is None else float(call.args[self._value])  # type: ignore[arg-type]  # a number
        return _prepared(self._forward, call, arrays, range(n_inputs), range(n_inputs, len(arrays)), value)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Collect the copies to the gradients of the inputs."""
        if self._backward is None:
            return None
        arrays = backward_arrays(call, wanted)
        first = len(call.inputs) + len(call.outputs)
        targets = [first + len(call.outputs) + k if want else None for k, want in enumerate(wanted)]
        return _prepared(self._backward, call, arrays, range(first, first + len(call.outputs)), targets, 0.0)


def _prepared(
    arrange: Arrangement,
    call: Call,
    arrays: Sequence[ArrayDesc | None],
    sources: Sequence[int],
    targets: Sequence[int | None],
    value: float,
) -> Runner:
    copies = Copies(arrays)
    arrange(copies, call, sources, targets)
    return copies.prepared(value)


def _one(transform: Callable[[Any, Mapping[str, Any]], Any], *, of_target: bool = False, fill: bool = False) -> Arrangement:
    """One array from one: `transform` shows the part or order of the source, or of the target, that is copied."""

    def arrange(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
        (source,), (target,) = sources, targets
        if target is None:
            return
        if fill:
            copies.fill(target)
        read, written = copies.view(source), copies.view(target)
        if of_target:
            written = transform(written, call.args)
        else:
            read = transform(read, call.args)
        copies.copy(source, read, target, written)

    return arrange


def _sliced(x: Any, args: Mapping[str, Any]) -> Any:
    """Short settings belong to the last axes."""
    entries = [(None,) * (x.ndim - len(args[name] or ())) + tuple(args[name] or ()) for name in ("start", "stop", "step")]
    return x[(..., *map(slice, *entries))]  # the ellipsis: NumPy makes a scalar of an array without axes


def _unpadded(x: Any, args: Mapping[str, Any]) -> Any:
    """Pairs of widths belong to the last axes."""
    widths = args["pad_width"]
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    slices = [slice(low, length - high) for (low, high), length in zip(pairs, x.shape[x.ndim - len(pairs) :], strict=True)]
    inside = (..., *slices)
    return x[inside]


def _joined(*, new_axis: bool) -> Arrangement:
    """Several sources into one target along an axis; with `new_axis` each is one place of it."""

    def arrange(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
        (target,) = targets
        assert target is not None
        whole = copies.view(target)
        for source, part in zip(sources, _parts(whole, call, new_axis, map(copies.view, sources)), strict=True):
            copies.copy(source, copies.view(source), target, part)

    return arrange


def _cut(*, new_axis: bool) -> Arrangement:
    """Return the reverse of joining."""

    def arrange(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
        (source,) = sources
        descs = call.outputs if new_axis and len(call.outputs) == len(targets) else call.inputs
        shapes = [np.broadcast_to(np.empty(()), desc.shape) for desc in descs if desc is not None]
        for target, part in zip(targets, _parts(copies.view(source), call, new_axis, shapes), strict=True):
            if target is not None:
                copies.copy(source, part, target, copies.view(target))

    return arrange


def _parts(whole: Any, call: Call, new_axis: bool, members: Any) -> list[Any]:
    """Return the views of `whole` that belong to each of `members` along the axis."""
    axis = int(call.args["axis"])  # type: ignore[arg-type]  # an int by the specification
    if new_axis:
        before = (slice(None),) * (axis % whole.ndim)
        places = [(*before, k, Ellipsis) for k in range(whole.shape[axis])]
        return [whole[place] for place in places]
    parts, first = [], 0
    for member in members:
        parts.append(np.moveaxis(np.moveaxis(whole, axis, 0)[first : first + member.shape[axis]], 0, axis))
        first += member.shape[axis]
    return parts


def _transposed(x: Any, args: Mapping[str, Any]) -> Any:
    return x.transpose(args["axes"])


def _flipped(x: Any, args: Mapping[str, Any]) -> Any:
    return np.flip(x, args["axes"]) if x.ndim else x  # NumPy makes a scalar of an array without axes


def _on_last_axes(values: Sequence[int], ndim: int) -> tuple[int, ...]:
    return (*(1,) * (ndim - len(values)), *values)


def _tiled(call: Call) -> dict[str, Shape]:
    """Return views in which each axis of y is two: the repetition, and the axis of x."""
    (x,), (y,) = call.inputs, call.outputs
    assert x is not None
    reps = call.args["reps"]
    assert isinstance(reps, tuple)
    lengths = _on_last_axes(x.shape, len(y.shape))
    counts = _on_last_axes([int(count) for count in reps], len(y.shape))
    return {
        "x": tuple(n for length in lengths for n in (1, length)),
        "y": tuple(n for pair in zip(counts, lengths, strict=True) for n in pair),
    }


def _aligned(call: Call) -> dict[str, Shape]:
    """View y with axes of length 1 at its end, so that its axes align with those of x that it is given for."""
    x, y = call.inputs
    assert x is not None and y is not None
    axis = int(call.args["axis"])  # type: ignore[arg-type]  # an int by the specification
    first = len(x.shape) - len(y.shape) if axis < 0 else axis
    return {"y": (*y.shape, *(1,) * (len(x.shape) - first - len(y.shape)))}


def _refuse_many_axes(call: Call) -> Refusal | None:
    ndim = len(call.outputs[0].shape)
    return Refusal(f"takes at most 8 axes, got {ndim}") if ndim > 8 else None


def _repeated(views: Callable[[Call], dict[str, Shape]] | None) -> Pointwise:
    """Copy an input along further axes; the gradient is the sum over them."""
    return Pointwise("y = copy x", {"x": "dx = copy dy"}, views=views, refuse=_refuse_many_axes)


def _diagonal(x: Any, args: Mapping[str, Any]) -> Any:
    return np.diagonal(x, axis1=-2, axis2=-1)


def _gridded(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
    """Copy each input along one axis of its grid: its own, but the first two are swapped unless `ij_indexing`."""
    n = len(sources)
    axes = list(range(n)) if call.args["ij_indexing"] or n < 2 else [1, 0, *range(2, n)]
    for source, target, axis in zip(sources, targets, axes, strict=True):
        assert target is not None
        read = copies.view(source).reshape(-1, *(1,) * (n - axis - 1))
        copies.copy(source, read, target, copies.view(target))


class Triangle:
    """The upper or lower triangle of matrices; the gradient is that of dy."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes whose items are not of a known size."""
        (x,) = call.inputs
        if x is not None and x.dtype not in _DTYPES:
            return Refusal(f"takes arrays of one of the dtypes {', '.join(_DTYPES)}, got {x.dtype}")
        return None

    def forward(self, call: Call) -> Runner:
        """Prepare the copy of the triangle."""
        return self._prepared(call, forward_arrays(call), [0, 1])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the copy of the triangle of dy."""
        return self._prepared(call, backward_arrays(call, wanted), [2, 3])

    def _prepared(self, call: Call, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
        shape = call.outputs[0].shape
        matrices = (math.prod(shape[:-2]), *shape[-2:])
        views = [reshaped(arrays[place], matrices) for place in places]
        settings: dict[str, Any] = {"k": call.args["k"], "upper": call.args["upper"]}
        runner: Runner = _native.prepare("triangle", arrays, views=views, places=list(places), **settings)
        return runner


SHAPE: Final[Mapping[str, Kernel]] = {
    "Transpose": Arranged(_one(_transposed), _one(_transposed, of_target=True)),
    "Slice": Arranged(_one(_sliced), _one(_sliced, of_target=True, fill=True)),
    "Flip": Arranged(_one(_flipped), _one(_flipped)),
    "Pad": FirstOf(Arranged(_one(_unpadded, of_target=True, fill=True), _one(_unpadded), value="constant_value"), PADDING),
    "Broadcast": _repeated(None),
    "BroadcastTo": Pointwise("z = copy y", {"y": "dy = copy dz"}, views=_aligned, refuse=_refuse_many_axes),
    "Tile": _repeated(_tiled),
    "Concatenate": Arranged(_joined(new_axis=False), _cut(new_axis=False)),
    "MatrixDiag": Arranged(_one(_diagonal, of_target=True, fill=True), _one(_diagonal)),
    "MatrixDiagPart": Arranged(_one(_diagonal), _one(_diagonal, of_target=True, fill=True)),
    "Trilu": Triangle(),
    "Meshgrid": Arranged(_gridded, None),
    "Stack": Arranged(_joined(new_axis=True), _cut(new_axis=True)),
    "Split": Arranged(_cut(new_axis=True), _joined(new_axis=True)),
}
