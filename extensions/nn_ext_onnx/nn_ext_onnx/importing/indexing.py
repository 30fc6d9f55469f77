"""Operators that pick and place elements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError
from nn_ext_onnx.importing.host import FlatPlaces, on_host, places_of
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.values import Array, UnsupportedError, Value


@operator("Gather", takes_whole=True)
def _gather(node: Node) -> nn.Variable:
    axis = node.axis_of(node.attr("axis", 0))
    return F.gather(node.x, _from_the_start(node[1], node.shape[axis]), axis=axis)


def _from_the_start(indices: Value, length: int) -> nn.Variable:
    """Return indices, of which known ones count from the start only: other formats have no others."""
    if not indices.is_known or (indices.array >= 0).all():
        return indices.variable
    return nn.Variable.from_numpy_array(np.where(indices.array < 0, indices.array + length, indices.array))


def _along(shape: Sequence[int], axis: int, indexed: Sequence[int]) -> FlatPlaces:
    """Return what makes places along one axis places in all elements of an array; there are `indexed` of them."""
    strides = _strides(shape)
    others = [strides[k] * np.arange(n) if k != axis else np.zeros(1, np.int64) for k, n in enumerate(indexed)]
    offset = sum(np.meshgrid(*others, indexing="ij", sparse=True), start=np.zeros((), np.int64))
    return FlatPlaces(np.array(shape[axis]), strides[axis], offset, is_summed=False)


def _strides(lengths: Sequence[int]) -> Array:
    """Return the number of elements from one place of each axis to the next."""
    return np.array([math.prod(lengths[k + 1 :]) for k in range(len(lengths))], dtype=np.int64)


def _flat_places(node: Node, axis: int) -> nn.Variable:
    return places_of(node[1], math.prod(node[1].shape), _along(node.shape, axis, node[1].shape))


@operator("GatherElements", takes_whole=True)
def _gather_elements(node: Node) -> nn.Variable:
    axis = node.axis_of(node.attr("axis", 0))
    picked = F.gather(F.reshape(node.x, (-1,)), _flat_places(node, axis), axis=0)
    return F.reshape(picked, node[1].shape)


@operator("ScatterElements", "Scatter")
def _scatter_elements(node: Node) -> nn.Variable:
    places = _flat_places(node, node.axis_of(node.attr("axis", 0)))
    flat, updates = F.reshape(node.x, (-1,)), F.reshape(node.variable(2), (-1,))
    return F.reshape(_placed(node, flat, F.reshape(places, (1, -1)), updates), node.shape)


def _placed(node: Node, base: nn.Variable, places: nn.Variable, updates: nn.Variable) -> nn.Variable:
    """Put or add `updates` at `places`."""
    reduction = node.attr("reduction", "none")
    if reduction == "add":
        return base + F.scatter_nd(updates, places, shape=base.shape, add=True)
    ones = nn.Variable.from_numpy_array(np.ones(updates.shape, np.float32))
    return F.where(F.scatter_nd(ones, places, shape=base.shape), F.scatter_nd(updates, places, shape=base.shape), base)


@dataclass(slots=True)
class CacheRows:
    """Rows of a cache after a write: from 0 on those of the cache before it, then those that are written.

    Attributes:
        length: of the cache.
        count: of the rows that are written for each sample.
        is_circular: whether rows after the last one are the first ones.
    """

    length: int
    count: int
    is_circular: bool

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Return the row that each one is taken from, (B, length), for the first rows that are written.

        Raises:
            ArgumentError: when there are no such rows.
        """
        starts = np.asarray(arrays[0], np.int64)
        rows = starts[:, None] + np.arange(self.count)
        if (starts < 0).any() or (not self.is_circular and (rows >= self.length).any()):
            raise ArgumentError(
                f"TensorScatter: write_indices must leave room for {self.count} of {self.length} rows, got {starts.tolist()}"
            )
        source = np.tile(np.arange(self.length), (len(starts), 1))
        np.put_along_axis(source, rows % self.length, self.length + np.arange(self.count)[None], axis=1)
        return [source]


@operator("TensorScatter", takes_whole=True)
def _tensor_scatter(node: Node) -> nn.Variable:
    """Return a cache with rows written along one axis, from an index of each sample on."""
    axis, batch = node.axis_of(node.attr("axis", -2)), node.shape[0]
    length, count = node.shape[axis], node[1].shape[axis]
    if axis == 0 or not 0 < count <= length:
        raise UnsupportedError(f"an update of shape {node[1].shape} along axis {axis} of {node.shape}")
    compute = CacheRows(length, count, node.attr("mode", "linear") == "circular")
    given = node.optional(2)
    if given is None or given.is_known:
        starts = np.zeros(batch, np.int64) if given is None else given.array
        rows = nn.Variable.from_numpy_array(compute([starts])[0])
    else:
        rows = on_host(node.kind, compute, [given], [(batch, length)])[0]
    order = [0, axis, *(k for k in range(1, node.ndim) if k != axis)]
    both = F.transpose(F.concatenate(node.x, node.variable(1), axis=axis), order)
    return F.transpose(F.gather(both, rows, axis=1, batch_dims=1), [order.index(k) for k in range(node.ndim)])


@operator("ScatterND")
def _scatter_nd(node: Node) -> nn.Variable:
    return _placed(node, node.x, _coordinates(node), node.variable(2))


def _coordinates(node: Node) -> nn.Variable:
    """Return the axis of coordinates moved to the front."""
    ndim = node[1].ndim
    return F.transpose(node.variable(1), (ndim - 1, *range(ndim - 1)))


@operator("GatherND", takes_whole=True)
def _gather_nd(node: Node) -> nn.Variable:
    batch, shape = node.attr("batch_dims", 0), node[1].shape
    depth = shape[-1]
    lengths = node.shape[: batch + depth]

    strides = _strides(lengths)
    others = [strides[k] * np.arange(n) if k < batch else np.zeros(1, np.int64) for k, n in enumerate(shape[:-1])]
    offset = sum(np.meshgrid(*others, indexing="ij", sparse=True), start=np.zeros((), np.int64))
    flat = FlatPlaces(np.array(lengths[batch:], np.int64), strides[batch:], offset, is_summed=True)
    places = places_of(node[1], math.prod(shape[:-1]), flat)
    rest = node.shape[batch + depth :]
    picked = F.gather(F.reshape(node.x, (math.prod(lengths), *rest)), places, axis=0)
    return F.reshape(picked, (*shape[:-1], *rest))


@operator("OneHot")
def _one_hot(node: Node) -> nn.Variable:
    depth = int(node.number(1))
    off, on = (float(v) for v in node.array(2))
    axis = node.axis_of(node.attr("axis", -1), node.ndim + 1)
    hits = F.one_hot(F.reshape(node.x, (*node.shape, 1)), (depth,))
    y = F.where(hits, *[F.constant(v, hits.shape) for v in (on, off)])
    return F.transpose(y, [*range(axis), node.ndim, *range(axis, node.ndim)])


@operator("Compress")
def _compress(node: Node) -> nn.Variable:
    chosen = np.flatnonzero(node.array(1)).astype(np.int64)
    given = node.attr("axis")
    x, axis = (F.reshape(node.x, (-1,)), 0) if given is None else (node.x, node.axis_of(given))
    return F.gather(x, nn.Variable.from_numpy_array(chosen), axis=axis)


@operator("TopK", since=1, gives_whole=True)
def _top_k(node: Node) -> Made:
    k = node.attr("k") if node.opset < 10 else int(node.number(1))
    axis, largest = node.axis_of(node.attr("axis", -1)), bool(node.attr("largest", 1))
    values, places = F.sort(node.x, axis=axis, reverse=largest, with_index=True)
    after = node.ndim - axis - 1
    stop = [k, *node.shape[axis + 1 :]]
    return [F.slice(v, start=[0] * (after + 1), stop=stop, step=[1] * (after + 1)) for v in (values, places)]


@operator("ReverseSequence")
def _reverse_sequence(node: Node) -> nn.Variable:
    time, batch = node.attr("time_axis", 0), node.attr("batch_axis", 1)
    lengths = node.array(1)
    rows = np.arange(node.shape[time])
    places = np.stack([np.where(rows < n, n - 1 - rows, rows) for n in lengths], axis=1 if time == 0 else 0)
    shape = [n if axis in (time, batch) else 1 for axis, n in enumerate(node.shape)]
    indices = np.broadcast_to(places.reshape(shape), node.shape)
    flat = _along(node.shape, time, node.shape)([indices])[0]
    picked = F.gather(F.reshape(node.x, (-1,)), nn.Variable.from_numpy_array(flat), axis=0)
    return F.reshape(picked, node.shape)
