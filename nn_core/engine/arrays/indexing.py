"""Indexing of Variable and NdArray, as NumPy does it: ``x[key]`` and ``x[key] = value``.

Slices, integers, None and Ellipsis become a slice and a reshape. Lists and arrays of integers or booleans are turned
into places in the flattened array, so NumPy itself decides what a key means. Indices and masks that are Variables are
data of the graph: they pick along the leading axes. Those that are NdArrays pick at once, and give an NdArray.

Assigning to a Variable adds a function to the graph: the variable is its result afterwards, and functions that used
the variable before keep the old values. Assigning to an NdArray changes it at once.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.dispatch.registry import spec_of_api
from nn_core.engine.error_messages.refusal import described, door
from nn_core.engine.error_messages.whole import FLOATS, fraction_hint, whole
from nn_core.engine.graph.apply import apply, operator
from nn_core.engine.graph.imperative import array_of, as_one_kind
from nn_core.engine.graph.lazy_subgraph import Derivation, follows_shapes, kept
from nn_core.engine.graph.lengths import KINDS, Length, Ratio, move_origin, origins_of, present_shape, renewed, settled
from nn_core.engine.graph.modes import AUTO_FORWARD
from nn_core.engine.graph.node import Node, invalidate
from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.shape import bounds_of
from nn_core.typing import Shape
from nn_core.variable import Variable

_SLICE = spec_of_api("slice")
#: Types of what cuts an array or adds an axis.
_CUTS: Final = frozenset((int, Length, slice, type(None), type(Ellipsis)))
#: Settings of a slice, shape of the result, places of its axes; see `_cut_anew`.
_Cut: TypeAlias = tuple[Mapping[str, Any] | None, Shape, tuple[int | None, ...] | None]


def getitem(self: Any, key: Any) -> Any:
    """Return the elements that `key` picks: a Variable of the graph, or, of an NdArray or by one, a new NdArray."""
    parts = key if isinstance(key, tuple) else (key,)
    if _CUTS.issuperset(map(type, parts)):  # most keys
        return _cut(self, parts)
    if any(isinstance(part, (*FLOATS, np.ndarray)) for part in parts):
        key = parts = tuple(map(_whole_part, parts))
    if all(map(_is_cut, parts)):
        return _cut(self, parts)
    return _picked(self, key, parts)


def _is_cut(part: Any) -> bool:
    if part is None or part is Ellipsis:
        return True
    return isinstance(part, (int, np.integer, slice)) and not isinstance(part, (bool, np.bool_))


@follows_shapes
def _picked(self: Any, key: Any, parts: tuple[Any, ...]) -> Any:
    """Elements that arrays pick."""
    if any(isinstance(part, (Variable, NdArray)) for part in parts):
        return _pick_by_data(self, parts)
    places = _places(self, key)
    flat = _flattened(self)
    return operator("gather")(flat, _index(self, places), axis=0)


@door
def setitem(self: Any, key: Any, value: Any) -> None:
    """Replace the elements that `key` picks by `value`, which is broadcast to their shape."""
    key = tuple(map(_whole_part, key)) if isinstance(key, tuple) else _whole_part(key)
    if isinstance(self, NdArray):
        _assign_at_once(self, key, value)
        return
    old = _detached(self)
    # the variable is the result from now on: where it is the index or the values itself, that means what it was
    key = tuple([old if part is self else part for part in key]) if isinstance(key, tuple) else old if key is self else key
    value = old if value is self else value
    _take_over(self, _assigned(old, key, value))
    if not AUTO_FORWARD.get():
        parts = key if isinstance(key, tuple) else (key,)
        sources = [operand for operand in (old, *parts, value) if isinstance(operand, Variable)]
        origins = origins_of((key, value))
        repeated = kept((old, key, value))
        Derivation(lambda counterpart: [_assigned(*renewed(repeated, counterpart))], sources, [self], origins=origins)


def _assigned(old: Variable, key: Any, value: Any) -> Variable:
    """Return the values of `old` with those of `value` where `key` picks them."""
    new: Variable
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, (Variable, NdArray)) for part in parts):
        if len(parts) > 1 or not _is_mask(old, parts[0]):
            indices = _rows(old, [_operand(part, None) if isinstance(part, NdArray) else part for part in parts])
            shape = (*indices.shape[1:], *old.shape[len(parts) :])
            new = operator("scatter_nd")(_operand(value, shape), indices, old)
        elif isinstance(value, (int, float)):
            mask = _operand(parts[0], None)
            if mask.ndim < old.ndim:  # it belongs to the leading axes
                mask = operator("reshape")(mask, shape=(*mask.shape, *(1,) * (old.ndim - mask.ndim)))
            new = operator("bool_fill")(old, mask, value=float(value))
        else:
            new = operator("bool_scatter")(_operand(value, None), _operand(parts[0], None), old)
    else:
        places = _places(old, key)
        values = _flattened(_operand(value, places.shape))
        indices = Variable.from_numpy_array(places.reshape(1, -1), need_grad=False)
        new = operator("reshape")(operator("scatter_nd")(values, indices, _flattened(old)), shape=old.shape)
    return new


def bind() -> None:
    """Give Variable and NdArray their subscripts."""
    for cls in (Variable, NdArray):
        setattr(cls, "__getitem__", getitem)  # noqa: B010  # bound here: arrays know no functions
        setattr(cls, "__setitem__", setitem)  # noqa: B010


def _cut(x: Any, parts: tuple[Any, ...]) -> Any:
    """Slices and integers; integers drop their axis, None adds one."""
    key: list[Any] = []
    for part in parts:
        if isinstance(part, slice):  # it has no hash
            key += (slice, part.start, part.stop, part.step)
        else:
            key.append(part)
    old = x.shape
    follows = bool(old) and type(old[0]) is Length
    try:
        settings, shape, places = _cut_of(x.plain_shape if follows else old, *key)
    except TypeError:  # an end has no hash, is no number at all, or is a length
        return _cut_by_lengths(x, tuple(key))
    if settings is not None:
        x = apply(_SLICE, (x,), settings)
        if places is None or (x.shape == shape and not follows):
            return x
    return _arranged(x, shape, places, follows)


@follows_shapes  # where a slice ends may depend on the sign of a length
def _cut_by_lengths(x: Any, key: tuple[Any, ...]) -> Any:
    old = x.shape
    follows = bool(old) and type(old[0]) is Length
    ends = map(_whole_end, key if follows else settled(key, present_shape))
    settings, shape, places = _cut_anew(settled(old, present_shape), tuple(ends))
    if settings is not None:
        x = apply(_SLICE, (x,), settings)
    return x if settings is not None and places is None else _arranged(x, shape, places, follows)


def _arranged(x: Any, shape: Shape, places: tuple[int | None, ...] | None, follows: bool) -> Any:
    """Give a cut the axes that the index asks for; `places` as `_cut_anew` returns them."""
    if places is None:
        return operator("identity")(x)
    if follows:
        lengths = x.shape
        shape = tuple([1 if place is None else lengths[place] for place in places])
    return operator("reshape")(x, shape=shape)


@functools.lru_cache(maxsize=4096, typed=True)  # 1.0 must not be taken for 1
def _cut_of(old: Shape, *key: Any) -> _Cut:
    if not KINDS.isdisjoint(map(type, key)):
        raise TypeError("a cache must not keep the variables of lengths, nor take one for another that is equal")
    return _cut_anew(old, key)


def _cut_anew(old: Shape, key: Sequence[Any]) -> _Cut:
    """Return how to cut an array of shape `old`.

    Returns:
        The settings of the slice, None where all of it is taken; the shape of the result; and for each of its axes which one
        of the slice it is, None for a new one; None instead of the places if they are all axes in order.
    """
    parts = _without_ellipsis(len(old), tuple(_parts_of(key)))
    bounds: list[tuple[int, int, int]] = []
    shape: list[int] = []
    places: list[int | None] = []
    for part in parts:
        if part is None:
            shape.append(1)
            places.append(None)
            continue
        size = old[len(bounds)]
        cut = _slice_of(part, len(bounds), size)
        if cut is part:
            shape.append(len(range(*cut.indices(size))))
            places.append(len(bounds))
        bounds.append(bounds_of(cut))
    if all(part is None or part == slice(None) for part in parts):
        return None, tuple(shape), _moved(places, len(old))
    start, stop, step = zip(*bounds, strict=True)
    return {"start": start, "stop": stop, "step": step}, tuple(shape), _moved(places, len(old))


def _moved(places: Sequence[int | None], ndim: int) -> tuple[int | None, ...] | None:
    return None if list(places) == list(range(ndim)) else tuple(places)


def _parts_of(key: Iterable[Any]) -> Iterator[Any]:
    """Yield the parts of an index in which three numbers that follow the class `slice` stand for a slice."""
    rest = iter(key)
    for part in rest:
        yield slice(*itertools.islice(rest, 3)) if part is slice else part


def _whole_part(part: Any) -> Any:
    """Return a part of an index with ints for whole floats; anything but a number and a slice of numbers as it is."""
    if isinstance(part, slice):
        return slice(*map(_whole_end, (part.start, part.stop, part.step)))
    if not isinstance(part, FLOATS) and not (isinstance(part, np.ndarray) and part.shape == () and part.dtype.kind == "f"):
        return part
    try:
        return whole(part)
    except TypeError as error:
        raise IndexError(f"an index must be a whole number, got {part!r}{fraction_hint(part)}") from error


def _whole_end(end: Any) -> Any:
    """Return an end of a slice as an int; None, and what is no number, as it is."""
    try:
        if not isinstance(end, (*FLOATS, np.ndarray)):
            return end
        number = whole(end)
        return math.trunc(end) if type(end) is Ratio else number  # which follows the shape as well
    except TypeError as error:
        raise ArgumentError(f"an end of a slice must be a whole number, got {end!r}{fraction_hint(end)}") from error


def _without_ellipsis(ndim: int, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parts of an index of an array with `ndim` axes, with full slices for the axes that are not named."""
    n_used = sum(part is not None and part is not Ellipsis for part in parts)
    if n_used > ndim or sum(part is Ellipsis for part in parts) > 1:
        raise IndexError(f"an index must have at most {ndim} entries and one Ellipsis, got {parts}")
    if Ellipsis not in parts:
        parts = (*parts, Ellipsis)
    position = parts.index(Ellipsis)
    return (*parts[:position], *[slice(None)] * (ndim - n_used), *parts[position + 1 :])


def _slice_of(part: Any, axis: int, size: int) -> slice:
    """Return a slice as it is; the slice of one element for an integer."""
    if isinstance(part, slice):
        if part.step == 0:
            raise ArgumentError(f"an index: the step of a slice must not be zero, got {part}")
        return part
    if not -size <= part < size:
        raise IndexError(f"index {part} is out of bounds for axis {axis} with size {size}")
    first = part if type(part) is Length else int(part)
    return slice(first, None if first == -1 else first + 1)


def _pick_by_data(x: Any, parts: Any) -> Any:
    """Return indices or a mask that are data of the graph, along the leading axes."""
    x, *parts = as_one_kind("getitem", x, *parts)
    head = parts[0]
    if len(parts) == 1 and _is_mask(x, head):
        return operator("bool_gather")(x, head)
    return operator("gather_nd")(x, _rows(x, parts))


def _rows(x: Any, parts: Any) -> Any:
    """Return the indices of the leading axes, broadcast against each other, one row for each axis."""
    shape = _common_shape(parts)
    return operator("stack")(*[_row(x, part, shape) for part in parts], axis=0)


def _common_shape(parts: Any) -> tuple[int, ...]:
    try:
        shapes = [np.shape(part) if not isinstance(part, (Variable, NdArray)) else part.shape for part in parts]
    except ValueError as error:
        raise ArgumentError(f"getitem: an index must be an array or a number, got {parts!r}") from error
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(f"getitem: indices must be broadcast to one shape, got {shapes}") from error


def _row(x: Any, part: Any, shape: tuple[int, ...]) -> Any:
    """Return the indices of one axis, broadcast to `shape`."""
    if isinstance(part, slice) or part is None or part is Ellipsis:
        raise ArgumentError(
            "an index that is a Variable or an NdArray must be combined with integer indices only, "
            f"got {part!r}\n  hint: slice first, x[:, 1:][index]"
        )
    row = _operand(part, None) if isinstance(x, Variable) else part
    row = row if isinstance(row, (Variable, NdArray)) else NdArray.from_numpy_array(np.asarray(row))
    padded = (1,) * (len(shape) - row.ndim) + row.shape
    row = operator("reshape")(row, shape=padded) if padded != row.shape else row
    return operator("broadcast")(row, shape=shape) if row.shape != shape else row


def _is_mask(x: Any, index: Any) -> bool:
    """Return whether an index of the graph is a mask: its dtype is bool, or it computes a comparison of the array's shape."""
    array = index.data if isinstance(index, Variable) else index
    if array.dtype.kind == "b":
        return True
    producer = index.producer if isinstance(index, Variable) else None
    return (
        producer is not None
        and index.shape == x.shape[: index.ndim]
        and not producer.spec.differentiable
        and producer.spec.outputs[0].dtype in ("float", "parameter", "statistic")
    )


def _places(x: Any, key: Any) -> np.ndarray[Any, Any]:
    """Places in the flattened array of the elements that a key of NumPy picks."""
    try:
        return np.asarray(np.arange(x.size, dtype=np.int64).reshape(x.shape)[key])
    except IndexError as error:
        raise IndexError(f"{error}, in an array of shape {x.shape}") from None
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"getitem: an index must be as in NumPy, got {described(key)} ({error})") from error


def _flattened(x: Any) -> Any:
    # places in it are those of this very shape, so a copy of the graph for another one must not fit
    return x if x.ndim == 1 else operator("reshape")(x, shape=(int(x.size),))


def _index(x: Any, places: np.ndarray[Any, Any]) -> Any:
    if isinstance(x, Variable):
        return Variable.from_numpy_array(places, need_grad=False)
    return NdArray.from_numpy_array(places)


def _operand(value: Any, shape: tuple[int, ...] | None) -> Any:
    """`value` as a Variable, broadcast to `shape`."""
    if isinstance(value, NdArray):
        variable = Variable(value.shape, need_grad=False)
        variable.data = value
        value = variable
    if not isinstance(value, Variable):
        values = np.asarray(value)
        if shape is not None:
            values = np.broadcast_to(values, shape) if _fits(values.shape, shape) else values
        value = Variable.from_numpy_array(values, need_grad=False)
    if shape is None or value.shape == shape:
        return value
    if not _fits(value.shape, shape):
        raise ShapeError(f"assigned values must be broadcast to the shape {shape} that the index picks, got {value.shape}")
    padded = (1,) * (len(shape) - value.ndim) + value.shape
    value = operator("reshape")(value, shape=padded) if padded != value.shape else value
    return operator("broadcast")(value, shape=shape)


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy broadcasts
        return False


def _assign_at_once(x: NdArray, key: Any, value: Any) -> None:
    synced = x.synced
    space, dtype = synced.latest if synced.latest is not None and synced.pending_fill is None else (None, None)
    raw = x.data if space is None or dtype is None else x.readwrite(space, dtype)
    value = array_of(value, "setitem")
    parts = tuple([_plain_key(part) for part in (key if isinstance(key, tuple) else (key,))])
    raw[parts if isinstance(key, tuple) else parts[0]] = value.get_data("r") if isinstance(value, NdArray) else value


def _plain_key(part: Any) -> Any:
    """Return an index or a mask in NumPy's terms; what is not boolean is an index, as it is where elements are read."""
    part = array_of(part, "setitem")
    if not isinstance(part, NdArray):
        return part
    values = part.get_data("r")
    if values.dtype.kind != "f":
        return values
    whole = values.astype(np.int64)
    if not np.array_equal(whole, values):
        raise ArgumentError(f"setitem: an index must hold whole numbers, got an array with {values[whole != values].flat[0]}")
    return whole


def _detached(x: Variable) -> Variable:
    """Return a variable that takes the place of `x` for the functions that used it so far."""
    old = Variable.of_storage(x.storage, x._need_grad)
    old.name, old._persistent, old._recompute = x.name, x._persistent, x._recompute
    move_origin(x, old)
    if x.producer is not None:
        x.producer.connect(x.output_index, old)
    for function in x.function_references:
        _replace_input(function.node, x, old)
    return old


def _replace_input(node: Node, value: Variable, other: Variable) -> None:
    node.inputs = tuple(other if candidate is value else candidate for candidate in node.inputs)
    other.consumers = value.consumers


def _take_over(x: Variable, result: Variable) -> None:
    node = result.producer
    assert node is not None
    x.consumers = None
    x.storage = result.storage
    x._need_grad = None
    x.plans = None
    node.connect(result.output_index, x)
    invalidate()
