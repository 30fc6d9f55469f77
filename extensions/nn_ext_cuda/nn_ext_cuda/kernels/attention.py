"""Attention that never holds the weights of all queries and keys; see ``kernels/cuda/attention.cu``.

The logarithms of the sums are kept in the precision of sums: their memory is as many elements of the dtype as that takes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, forward_arrays
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.kernels.random import SeededProgram, dropping
from nn_ext_cuda.launch.program import THREADS, Argument, Distance, Launch, Program

#: Threads of a block along the rows and along the columns of a tile, as in attention.cu.
_SIDE: Final = 16
#: Rows and columns of a tile, largest first. With the largest one, float64 would not fit into the shared memory of a block.
_TILES: Final = (64, 32, _SIDE)
#: Features that are in shared memory at a time.
_PARTS: Final = (8, 16, 32)
#: Features of a result that a block computes at most.
_MAX_FEATURES: Final = 128
#: Features of an array: the grid has so many blocks at most along its second axis.
_MAX_WIDTH: Final = 65535 * 16
#: More axes than these are in C order.
_MOST_AXES: Final = 4
#: Threads of a warp, which computes dy.y of a query.
_WARP: Final = 32

#: Places of the arrays of both functions.
_Q, _K, _V, _MASK, _Y = range(5)


@dataclass(frozen=True, slots=True)
class _ArrayNumbers:
    """Places of the other arrays: of a call, then of a backward call."""

    log_sum: int
    key: int
    dy: int
    dq: int
    dk: int
    dv: int
    d_mask: int


_PLAIN: Final = _ArrayNumbers(log_sum=5, key=-1, dy=6, dq=7, dk=8, dv=9, d_mask=10)
#: The seed and the counter are an output before the sums. A forward pass gets the key as its last array.
_DROPPING: Final = _ArrayNumbers(log_sum=6, key=7, dy=7, dq=9, dk=10, dv=11, d_mask=12)
_DRAWN: Final = 5


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a call: (heads, n_queries, width), (heads, n_keys, width), (heads, n_keys, depth)."""

    heads: int
    n_queries: int
    n_keys: int
    width: int
    depth: int


_Pairs: TypeAlias = list[tuple[int, int]]


class ScaledDotProductAttention:
    """y = softmax(scale q k^T + mask) v, tile by tile; the leading axes are heads."""

    _places: ClassVar[_ArrayNumbers] = _PLAIN

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, and arrays without features or with very many."""
        refusal = refuse_dtypes(call) or refuse_sizes(call.inputs) or refuse_sizes(call.outputs)
        if refusal is not None:
            return refusal
        sizes = _sizes(call)
        if not (sizes.width and sizes.depth):
            return Refusal(f"takes arrays with at least one feature, got {sizes.width} and {sizes.depth}")
        if max(sizes.width, sizes.depth) > _MAX_WIDTH:
            return Refusal(f"takes up to {_MAX_WIDTH} features, got {sizes.width} and {sizes.depth}")
        return None

    def private_shapes(self, call: Call) -> Sequence[Shape]:
        """Return the shape of the logarithms, in the precision of sums."""
        return [log_sum_shape(call)]

    def strided(self, call: Call) -> bool:
        """Take heads along up to two axes in any order, without a mask."""
        return call.inputs[_MASK] is None and len(_present(call.inputs[_Q]).shape) <= _MOST_AXES

    def forward(self, call: Call) -> Runner:
        """One launch."""
        return Program(self._forward_launches(call), len(forward_arrays(call)))

    def _forward_launches(self, call: Call, dropping: Sequence[Argument] = ()) -> list[Launch]:
        """Return the launch for y and the logarithms; `dropping` are the arguments of dropout."""
        sizes = _sizes(call)
        read = (*_head(call), *_lying(call, _Q, _K, _V), *_mask_arguments(call))
        arguments = (*read, *_lying(call, _Y), self._places.log_sum, *dropping)
        return _launches(call, "attention", sizes.heads * _n_tiles(call, sizes.n_queries), [sizes.depth], arguments)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return a launch each for dy.y, for dq, for dk and dv, and for the gradient of the mask."""
        return self._backward(call, wanted)

    def _backward(self, call: Call, wanted: Sequence[bool], dropping: Sequence[Argument] = ()) -> Runner | None:
        places = self._places
        sizes, arrays = _sizes(call), backward_arrays(call, wanted)
        inner = len(arrays)
        rows = sizes.heads * sizes.n_queries
        launches = _inner_launches(call, rows, (np.int64(rows), *_head(call)[0:3:2], *_lying(call, _Y, places.dy), inner))
        read = (*_head(call), *_lying(call, _Q, _K, _V), *_mask_arguments(call), places.log_sum, inner)
        read += (*_lying(call, places.dy),)
        if wanted[_Q]:
            n_blocks = sizes.heads * _n_tiles(call, sizes.n_queries)
            arguments = (*read, *_lying(call, places.dq), *dropping)
            launches += _launches(call, "attention_backward_queries", n_blocks, [sizes.width], arguments)
        if wanted[_K] or wanted[_V]:
            n_blocks = sizes.heads * _n_tiles(call, sizes.n_keys)
            arguments = (*read, *_lying(call, places.dk, places.dv), *dropping)
            launches += _launches(call, "attention_backward_keys", n_blocks, [sizes.width, sizes.depth], arguments)
        if wanted[_MASK]:
            n_blocks, n_sharing = _mask_blocks(call)
            arguments = (*read, np.int64(n_sharing), places.d_mask, *dropping)
            launches += _launches(call, "attention_backward_mask", n_blocks, [], arguments)
        return Program(launches, len(arrays), [((rows,), real_dtype(call.dtype))])


class DropoutAttention(ScaledDotProductAttention):
    """Attention whose weights are dropped at random, with the numbers that every backend draws."""

    _places: ClassVar[_ArrayNumbers] = _DROPPING

    def forward(self, call: Call) -> Runner:
        """Return a launch more, which keeps the key for the backward pass."""
        key = self._places.key
        code = _code(call, "attention_drawn")
        launches = [Launch(code, (1,), (2,), (key, _DRAWN)), *self._forward_launches(call, [key, *dropping(call)])]
        return SeededProgram(launches, len(forward_arrays(call)) + 1)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the launches without dropout, which draw the factors of the weights again."""
        return self._backward(call, wanted, [_DRAWN, *dropping(call)])


def log_sum_shape(call: Call) -> Shape:
    """Return the shape of log_sum in elements of its dtype, where each number takes as many as one of the dtype of sums."""
    desc = call.outputs[-1]
    n = ITEM_BYTES[real_dtype(call.dtype)] // ITEM_BYTES[desc.dtype]
    return (*_present(call.inputs[_Q]).shape[:-1], n)


def _present(desc: ArrayDesc | None) -> ArrayDesc:
    assert desc is not None
    return desc


def _sizes(call: Call) -> Sizes:
    q, k, v = (_present(desc).shape for desc in call.inputs[:3])
    return Sizes(math.prod(q[:-2]), q[-2], k[-2], q[-1], v[-1])


def _tile(call: Call) -> int:
    """Return the largest tile that is not twice as long as both queries and keys."""
    sizes = _sizes(call)
    longest = max(sizes.n_queries, sizes.n_keys)
    tiles = _TILES[1:] if call.dtype == "float64" else _TILES
    return next((tile for tile in tiles if tile < 2 * longest), tiles[-1])


def _n_tiles(call: Call, n_rows: int) -> int:
    return -(-n_rows // _tile(call))


def _part(sizes: Sizes) -> int:
    """Return how many features are in shared memory at a time."""
    return next((part for part in _PARTS if part >= max(sizes.width, sizes.depth)), _PARTS[-1])


def _features(sizes: Sizes) -> int:
    """Return how many features of a result a block computes, a multiple of those that it takes at a time."""
    span = 2 * _part(sizes)
    return min(-(-max(sizes.width, sizes.depth) // span) * span, _MAX_FEATURES)


def _code(call: Call, function: str) -> Code:
    sizes = _sizes(call)
    drops = "p" in call.args
    axes = " ".join(f"f({k})" for k in range(len(_mask_strides(call)[0])))
    defines = {
        "TILE": _tile(call),
        "PART": _part(sizes),
        "FEATURES": _features(sizes),
        "WIDTH": sizes.width,
        "DEPTH": sizes.depth,
        "CAUSAL": int(bool(call.args["is_causal"])),
        "DROPOUT": int(drops),
        "FOR_AXES(f)": axes,
    }
    header = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    files = part("philox.cuh") * drops + part("attention.cu")
    return Code(function, f"{header}typedef {C_TYPES[call.dtype]} T;\n{files}", real_type(call.dtype))


def _launches(call: Call, function: str, n_blocks: int, widths: Sequence[int], arguments: Sequence[Argument]) -> list[Launch]:
    """One launch of `n_blocks` tiles, for each group of features of results of `widths`; none where there are no tiles."""
    sizes, tile = _sizes(call), _tile(call)
    n_groups = max((-(-width // _features(sizes)) for width in widths), default=1)
    elements = tile * (2 * (_part(sizes) + 1) + tile + 1)
    shared_bytes = ITEM_BYTES[real_dtype(call.dtype)] * elements
    code = _code(call, function)
    return [Launch(code, (n_blocks, n_groups), (_SIDE * _SIDE,), tuple(arguments), shared_bytes)] if n_blocks else []


def _inner_launches(call: Call, rows: int, arguments: Sequence[Argument]) -> list[Launch]:
    """One launch with a warp for each of the rows."""
    n_blocks = -(-rows * _WARP // THREADS)
    return [Launch(_code(call, "attention_inner"), (n_blocks,), (THREADS,), tuple(arguments))] if rows else []


def _head(call: Call) -> tuple[np.generic, ...]:
    """Numbers of queries, of keys and of heads that the last leading axis has, and the scale."""
    sizes, shape = _sizes(call), _present(call.inputs[_Q]).shape
    n_inner = max(shape[-3], 1) if len(shape) == _MOST_AXES else 1
    return np.int64(sizes.n_queries), np.int64(sizes.n_keys), np.int64(n_inner), real(call.dtype, call.args["scale"])


def _lying(call: Call, *places: int) -> list[Argument]:
    """Arrays, each with the distances between groups of heads, between the heads of a group, and between rows."""
    rank, found = len(_present(call.inputs[_Q]).shape), list[Argument]()
    for place in places:
        leading = [Distance(place, axis) for axis in range(min(rank - 2, 2))]
        if rank > _MOST_AXES:  # in C order
            leading = [Distance(place, rank - 3)]
        found += [place, *leading, *[np.int64(0)] * (2 - len(leading)), Distance(place, rank - 2)]
    return found


def _mask_blocks(call: Call) -> tuple[int, int]:
    """Numbers of tiles of the mask, and of heads that share each."""
    sizes, (heads, query, key) = _sizes(call), _mask_strides(call)
    n_tiles = _n_tiles(call, sizes.n_queries if query else 1) * _n_tiles(call, sizes.n_keys if key else 1)
    n_sharing = math.prod(length for length, stride in heads if not stride)
    return n_tiles * math.prod(length for length, stride in heads if stride), n_sharing


def _mask_arguments(call: Call) -> list[Argument]:
    """Return the mask or null, length and stride of each axis of heads, innermost first, and the strides of queries and
    keys.
    """
    heads, query, key = _mask_strides(call)
    values: Argument = np.uint64(0) if call.inputs[_MASK] is None else _MASK
    return [values, *[np.int64(number) for pair in reversed(heads) for number in pair], np.int64(query), np.int64(key)]


def _mask_strides(call: Call) -> tuple[_Pairs, int, int]:
    """(length, stride) of the axes of heads of the mask, joined where that is one step; strides of queries and keys."""
    mask = call.inputs[_MASK]
    if mask is None:
        return [], 0, 0
    scores = (*_present(call.inputs[_Q]).shape[:-1], _present(call.inputs[_K]).shape[-2])
    shape = (*(1,) * (len(scores) - len(mask.shape)), *mask.shape)
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(0 if length == 1 else step)
        step *= length
    strides.reverse()
    heads: _Pairs = []
    for length, stride in zip(scores[:-2], strides, strict=False):
        if length == 1:
            continue
        if heads and heads[-1][1] == stride * length:
            heads[-1] = (heads[-1][0] * length, stride)
        else:
            heads.append((length, stride))
    return heads, strides[-2], strides[-1]


ATTENTION: Final[Mapping[str, Kernel]] = {
    "DropoutAttention": DropoutAttention(),
    "ScaledDotProductAttention": ScaledDotProductAttention(),
}
