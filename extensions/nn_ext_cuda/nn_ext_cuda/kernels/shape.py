"""Functions that arrange or repeat elements: each is some copies between views of its arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.ext import Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.copies import Copies
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays
from nn_ext_cuda.codegen.dtypes import C_TYPES, refuse_dtypes
from nn_ext_cuda.codegen.layout import aligned
from nn_ext_cuda.kernels.borders import Bordered, Padding

#: ``arrange(copies, call, sources, targets)`` adds the copies from the arrays at the places `sources` to those at
#: `targets`; a target that is not wanted is None.
Arrangement: TypeAlias = Callable[[Copies, Call, Sequence[int], Sequence[int | None]], None]


class Arranged:
    """A function whose outputs are copies of elements of its inputs.

    Args:
        forward: Copies from the inputs to the outputs.
        backward: Copies from the gradients of the outputs to those of the inputs; None: the gradient rule serves.
    """

    def __init__(self, forward: Arrangement, backward: Arrangement | None = None) -> None:
        self._forward = forward
        self._backward = backward

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not known, mixtures of them, and very large arrays."""
        arrays = forward_arrays(call)
        dtypes = {desc.dtype for desc in arrays if desc is not None}
        if len(dtypes) != 1 or not dtypes <= set(C_TYPES):
            return Refusal(f"takes arrays of one of the dtypes {', '.join(C_TYPES)}, got {', '.join(sorted(dtypes))}")
        return refuse_sizes(arrays)

    def forward(self, call: Call) -> Runner:
        """Return the copies to the outputs."""
        arrays, n_inputs = forward_arrays(call), len(call.inputs)
        copies = Copies(arrays)
        self._forward(copies, call, range(n_inputs), range(n_inputs, len(arrays)))
        return copies.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the copies to the gradients of the inputs."""
        if self._backward is None:
            return None
        copies = Copies(backward_arrays(call, wanted))
        first = len(call.inputs) + len(call.outputs)
        targets = [first + len(call.outputs) + k if want else None for k, want in enumerate(wanted)]
        self._backward(copies, call, range(first, first + len(call.outputs)), targets)
        return copies.program()


class Repeated:
    """A function that repeats elements of one input; the gradient sums over the repetitions.

    Args:
        frame: The lengths of the output, its axes taken apart, and those of the input, which broadcast to them.
        source: The place of that input.
    """

    def __init__(self, frame: Callable[[Call], tuple[Shape, Shape]], source: int = 0) -> None:
        self._frame = frame
        self._source = source

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not known, and very large arrays."""
        x = call.inputs[self._source]
        assert x is not None
        if x.dtype not in C_TYPES:
            return Refusal(f"takes arrays of {', '.join(C_TYPES)}, got {x.dtype}")
        return refuse_sizes(forward_arrays(call))

    def forward(self, call: Call) -> Runner:
        """One copy with broadcasting."""
        whole, own = self._frame(call)
        copies = Copies(forward_arrays(call))
        target = len(call.inputs)
        copies.copy(self._source, copies.view(self._source).reshape(own), target, copies.view(target).reshape(whole))
        return copies.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return sums; None for arrays of another dtype than is computed in."""
        others = [want for place, want in enumerate(wanted) if place != self._source]
        if call.outputs[0].dtype != call.dtype or refuse_dtypes(call) or any(others):
            return None
        whole, own = self._frame(call)
        names = backward_names(call)
        target = f"d{names[self._source]}"
        composition = Composition(call, backward_arrays(call, wanted), names, whole, {target: own})
        composition.reduce(f"{call.spec.api}_backward", target, f"d{call.spec.outputs[0].name}")
        return composition.program()


def _broadcast_frame(call: Call) -> tuple[Shape, Shape]:
    (x,), whole = call.inputs, call.outputs[0].shape
    assert x is not None
    return whole, aligned(x.shape, len(whole))


def _broadcast_to_frame(call: Call) -> tuple[Shape, Shape]:
    x, y = call.inputs
    axis = call.args["axis"]
    assert x is not None and y is not None and isinstance(axis, int)
    first = len(x.shape) - len(y.shape) if axis < 0 else axis
    return x.shape, (*(1,) * first, *y.shape, *(1,) * (len(x.shape) - first - len(y.shape)))


def _tile_frame(call: Call) -> tuple[Shape, Shape]:
    (x,), reps = call.inputs, call.args["reps"]
    assert x is not None and isinstance(reps, tuple)
    rank = max(len(x.shape), len(reps))
    lengths = aligned(x.shape, rank)
    counts = aligned(tuple(map(int, reps)), rank)
    pairs = list(zip(counts, lengths, strict=True))
    return tuple(n for pair in pairs for n in pair), tuple(n for _, length in pairs for n in (1, length))


def _unpooling_frame(call: Call) -> tuple[Shape, Shape]:
    (x,), kernel = call.inputs, call.args["kernel"]
    assert x is not None and isinstance(kernel, tuple)
    behind = 1 if call.args["channel_last"] else 0
    first = len(x.shape) - len(kernel) - behind
    head, tail = x.shape[:first], x.shape[len(x.shape) - behind :]
    pairs = list(zip(x.shape[first:], map(int, kernel), strict=False))
    whole = tuple(n for pair in pairs for n in pair)
    return (*head, *whole, *tail), (*head, *(n for length, _ in pairs for n in (length, 1)), *tail)


def _one(
    transform: Callable[[Any, Mapping[str, Any]], Any], *, of_target: bool = False, fill: str | None = None
) -> Arrangement:
    """One array from one: `transform` shows the part or order of the source, or of the target, that is copied.

    `fill` names the argument that the target is set to before, if it is an argument; "0" stands for zero.
    """

    def arrange(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
        (source,), (target,) = sources, targets
        if target is None:
            return
        if fill is not None:
            copies.fill(target, float(call.args[fill]) if fill in call.args else 0.0)  # type: ignore[arg-type]  # a number
        read, written = copies.view(source), copies.view(target)
        if of_target:
            written = transform(written, call.args)
        else:
            read = transform(read, call.args)
        copies.copy(source, read, target, written)

    return arrange


def _sliced(x: Any, args: Mapping[str, Any]) -> Any:
    """Short settings belong to the last axes."""
    given = [tuple(args[name] or ()) for name in ("start", "stop", "step")]
    entries = [(None,) * (x.ndim - len(entry)) + entry for entry in given]
    parts = ..., *map(slice, *entries)
    return x[parts]  # with an ellipsis an array without axes stays a view


def _unpadded(x: Any, args: Mapping[str, Any]) -> Any:
    """Pairs of widths belong to the last axes."""
    widths = args["pad_width"]
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    lengths = x.shape[x.ndim - len(pairs) :]
    parts = ..., *(slice(low, length - high) for (low, high), length in zip(pairs, lengths, strict=True))
    return x[parts]


def _joined(*, new_axis: bool) -> Arrangement:
    """Several sources into one target along an axis; with `new_axis` each is one place of it."""

    def arrange(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
        (target,) = targets
        if target is None:
            return
        shapes = [copies.view(source).shape for source in sources]
        for source, part in zip(sources, _parts(copies.view(target), call, new_axis, shapes), strict=True):
            copies.copy(source, copies.view(source), target, part)

    return arrange


def _cut(*, new_axis: bool) -> Arrangement:
    """Return the reverse of joining."""

    def arrange(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
        (source,) = sources
        shapes = [desc.shape for desc in call.inputs if desc is not None]
        for target, part in zip(targets, _parts(copies.view(source), call, new_axis, shapes), strict=True):
            if target is not None:
                copies.copy(source, part, target, copies.view(target))

    return arrange


def _parts(whole: Any, call: Call, new_axis: bool, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Return the views of `whole` that belong to members of these shapes along the axis."""
    axis = int(call.args["axis"])  # type: ignore[arg-type]  # an int by the specification
    if new_axis:
        return [np.moveaxis(whole, axis, 0)[k, ...] for k in range(whole.shape[axis])]
    parts, first = [], 0
    for shape in shapes:
        parts.append(np.moveaxis(np.moveaxis(whole, axis, 0)[first : first + shape[axis]], 0, axis))
        first += shape[axis]
    return parts


def _transposed(x: Any, args: Mapping[str, Any]) -> Any:
    return x.transpose(args["axes"])


def _flipped(x: Any, args: Mapping[str, Any]) -> Any:
    return np.flip(x, args["axes"])


def _assigned(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
    """Copy src to y, and to dst, which is an input that is rewritten."""
    dst, src = sources
    for target in (*targets, dst):
        if target is not None:
            copies.copy(src, copies.view(src), target, copies.view(target))


def _same(x: Any, args: Mapping[str, Any]) -> Any:
    return x


def _diagonal(x: Any, args: Mapping[str, Any]) -> Any:
    return np.diagonal(x, axis1=-2, axis2=-1)


def _meshed(copies: Copies, call: Call, sources: Sequence[int], targets: Sequence[int | None]) -> None:
    """Each source along an axis of its own; indexing by columns first swaps the first two."""
    axes = list(range(len(sources)))
    if not call.args["ij_indexing"]:
        axes[:2] = axes[:2][::-1]
    for axis, source, target in zip(axes, sources, targets, strict=True):
        if target is not None:
            line = copies.view(source).reshape(-1, *(1,) * (len(axes) - axis - 1))
            copies.copy(source, line, target, copies.view(target))


SHAPE: Final[Mapping[str, Kernel]] = {
    "Identity": Arranged(_one(_same), _one(_same)),
    "Unlink": Arranged(_one(_same)),
    "TopKGrad": Arranged(_one(_same)),
    "ClipGradByNorm": Arranged(_one(_same)),
    "MatrixDiag": Arranged(_one(_diagonal, of_target=True, fill="0"), _one(_diagonal)),
    "MatrixDiagPart": Arranged(_one(_diagonal), _one(_diagonal, of_target=True, fill="0")),
    "Meshgrid": Arranged(_meshed),
    "Transpose": Arranged(_one(_transposed), _one(_transposed, of_target=True)),
    "Slice": Arranged(_one(_sliced), _one(_sliced, of_target=True, fill="0")),
    "Flip": Arranged(_one(_flipped), _one(_flipped)),
    "Pad": Padding(Arranged(_one(_unpadded, of_target=True, fill="constant_value"), _one(_unpadded))),
    "PadBackward": Padding(Arranged(_one(_unpadded), _one(_unpadded, of_target=True, fill="0")), transposed=True),
    "Assign": Arranged(_assigned),
    "Broadcast": Repeated(_broadcast_frame),
    "BroadcastTo": Repeated(_broadcast_to_frame, source=1),
    "Tile": Repeated(_tile_frame),
    "Unpooling": Repeated(_unpooling_frame),
    "Concatenate": Arranged(_joined(new_axis=False), _cut(new_axis=False)),
    "Stack": Arranged(_joined(new_axis=True), _cut(new_axis=True)),
    "Shift": Bordered(),
    "ShiftBackward": Bordered(transposed=True),
    "Split": Arranged(_cut(new_axis=True), _joined(new_axis=True)),
}
