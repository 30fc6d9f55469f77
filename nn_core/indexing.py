"""Indexing of Variable and NdArray, as NumPy does it: ``x[key]`` and ``x[key] = value``.

Slices, integers, None and Ellipsis become a slice and a reshape. Lists and arrays of integers or booleans are turned
into places in the flattened array, so NumPy itself decides what a key means. Indices and masks that are Variables or
NdArrays are data of the graph: they pick along the leading axes.

Assigning to a Variable adds a function to the graph: the variable is its result afterwards, and functions that used
the variable before keep the old values. Assigning to an NdArray changes it at once.
"""

from typing import Any

import numpy as np

from nn_core.array import NdArray
from nn_core.errors import ArgumentError, ShapeError
from nn_core.graph.apply import operator
from nn_core.graph.node import Node, mutated
from nn_core.variable import Variable


def getitem(self: Any, key: Any) -> Any:
    """The elements that `key` picks; a Variable of the graph, or for an NdArray a new NdArray."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, (Variable, NdArray)) for part in parts):
        return _pick_by_data(self, parts)
    if all(
        part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in parts
    ) and not any(isinstance(part, (bool, np.bool_)) for part in parts):
        return _cut(self, parts)
    places = _places(self, key)
    flat = _flattened(self)
    return operator("gather")(flat, _index(self, places), axis=0)


def setitem(self: Any, key: Any, value: Any) -> None:
    """Replace the elements that `key` picks by `value`, which is broadcast to their shape."""
    if isinstance(self, NdArray):
        _assign_at_once(self, key, value)
        return
    old = _detached(self)
    if isinstance(key, (Variable, NdArray)) and not isinstance(value, (int, float)):
        new = operator("bool_scatter")(_operand(value, None), _operand(key, None), old)
    elif isinstance(key, (Variable, NdArray)):
        new = operator("bool_fill")(old, _operand(key, None), value=float(value))
    else:
        places = _places(old, key)
        values = _flattened(_operand(value, places.shape))
        indices = Variable.from_numpy_array(places.reshape(1, -1), need_grad=False)
        new = operator("reshape")(operator("scatter_nd")(values, indices, _flattened(old)), shape=old.shape)
    _take_over(self, new)


def bind() -> None:
    """Give Variable and NdArray their subscripts."""
    for cls in (Variable, NdArray):
        setattr(cls, "__getitem__", getitem)  # noqa: B010  # bound here: arrays know no functions
        setattr(cls, "__setitem__", setitem)  # noqa: B010


def _cut(x: Any, parts: tuple[Any, ...]) -> Any:
    """Slices and integers; integers drop their axis, None adds one."""
    n_used = sum(part is not None and part is not Ellipsis for part in parts)
    if n_used > x.ndim or sum(part is Ellipsis for part in parts) > 1:
        raise IndexError(f"an index must have at most {x.ndim} entries and one Ellipsis, got {parts}")
    if Ellipsis not in parts:
        parts = (*parts, Ellipsis)
    position = parts.index(Ellipsis)
    parts = (*parts[:position], *[slice(None)] * (x.ndim - n_used), *parts[position + 1 :])
    starts, stops, steps, shape = [], [], [], []
    axis = 0
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            length = len(range(start, stop, step))
            shape.append(length)
            if step < 0 and stop < 0:
                stop = -size - 1
        else:
            if not -size <= part < size:
                raise IndexError(f"index {part} is out of bounds for axis {axis} with size {size}")
            start = int(part) % size
            stop, step = start + 1, 1
        starts.append(start)
        stops.append(stop)
        steps.append(step)
        axis += 1
    if (starts, stops, steps) != ([0] * x.ndim, list(x.shape), [1] * x.ndim):
        x = operator("slice")(x, start=tuple(starts), stop=tuple(stops), step=tuple(steps))
        return x if x.shape == tuple(shape) else operator("reshape")(x, shape=tuple(shape))
    return operator("reshape")(x, shape=tuple(shape)) if x.shape != tuple(shape) else operator("identity")(x)


def _pick_by_data(x: Any, parts: tuple[Any, ...]) -> Any:
    """Indices or a mask that are data of the graph, along the leading axes."""
    head = parts[0]
    if len(parts) == 1 and _is_mask(x, head):
        return operator("bool_gather")(x, head)
    shape = np.broadcast_shapes(
        *[np.shape(part) if not isinstance(part, (Variable, NdArray)) else part.shape for part in parts]
    )
    rows = []
    for part in parts:
        if isinstance(part, slice) or part is None or part is Ellipsis:
            raise ArgumentError(
                "an index that is a Variable or an NdArray must stand with other integer indices only, "
                f"got {part!r}\n  hint: slice first, x[:, 1:][index]"
            )
        row = _operand(part, None) if isinstance(x, Variable) else part
        row = row if isinstance(row, (Variable, NdArray)) else NdArray.from_numpy_array(np.asarray(row))
        padded = (1,) * (len(shape) - row.ndim) + row.shape
        row = operator("reshape")(row, shape=padded) if padded != row.shape else row
        rows.append(operator("broadcast")(row, shape=shape) if row.shape != shape else row)
    return operator("gather_nd")(x, operator("stack")(*rows, axis=0))


def _is_mask(x: Any, index: Any) -> bool:
    """Whether an index of the graph is a mask: its dtype is bool, or it computes a comparison of the array's shape."""
    array = index.data if isinstance(index, Variable) else index
    if array.dtype.kind == "b":
        return True
    producer = index.producer if isinstance(index, Variable) else None
    return (
        producer is not None
        and index.shape == x.shape[: index.ndim]
        and not producer.spec.differentiable
        and producer.spec.outputs[0].dtype in ("float", "wide")
    )


def _places(x: Any, key: Any) -> np.ndarray[Any, Any]:
    """Places in the flattened array of the elements that a key of NumPy picks."""
    try:
        return np.asarray(np.arange(x.size, dtype=np.int64).reshape(x.shape)[key])
    except IndexError as error:
        raise IndexError(f"{error}, in an array of shape {x.shape}") from None


def _flattened(x: Any) -> Any:
    return x if x.ndim == 1 else operator("reshape")(x, shape=(x.size,))


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
        raise ShapeError(
            f"assigned values must be broadcast to the shape {shape} that the index picks, got {value.shape}"
        )
    padded = (1,) * (len(shape) - value.ndim) + value.shape
    value = operator("reshape")(value, shape=padded) if padded != value.shape else value
    return operator("broadcast")(value, shape=shape)


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def _assign_at_once(x: NdArray, key: Any, value: Any) -> None:
    synced = x._synced
    space, dtype = synced.head if synced.head is not None and synced.lazy is None else (None, None)
    raw = x.data if space is None or dtype is None else x.readwrite(space, dtype)
    value = value.cell.data if isinstance(value, Variable) else value
    if isinstance(key, NdArray):
        key = key.get_data("r")
        key = key != 0 if key.dtype.kind == "f" else key
    raw[key] = value.get_data("r") if isinstance(value, NdArray) else value


def _detached(x: Variable) -> Variable:
    """A variable that takes the place of `x` for the functions that used it so far."""
    old = Variable.of_cell(x.cell, x._need_grad)
    old.name, old._persistent, old._recompute = x.name, x._persistent, x._recompute
    if x.producer is not None:
        x.producer.connect(x.index, old)
    for node in x.function_references:
        _replace_input(node, x, old)
    return old


def _replace_input(node: Node, vertex: Variable, other: Variable) -> None:
    node.inputs = tuple(other if candidate is vertex else candidate for candidate in node.inputs)
    other.consumers = vertex.consumers


def _take_over(x: Variable, result: Variable) -> None:
    node = result.producer
    assert node is not None
    x.consumers = None
    x.cell = result.cell
    x._need_grad = None
    x.plans = None
    node.connect(result.index, x)
    mutated()
