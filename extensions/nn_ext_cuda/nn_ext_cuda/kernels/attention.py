"""Attention that never holds the weights of all queries and keys; see ``kernels/cuda/attention.cu``.

The logarithms of the sums are kept in the precision of sums: their memory is as many elements of the dtype as that takes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.code import Code, part
from nn_ext_cuda.compose import refuse_sizes
from nn_ext_cuda.describe import backward_arrays, forward_arrays
from nn_ext_cuda.dtypes import C_TYPES, ITEM_BYTES, real, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.kernels.random import SeededProgram, dropping
from nn_ext_cuda.launch import Argument, Launch, Program, flat

#: Threads that share a row of a tile, as in attention.cu.
_LANES: Final = 8
#: Rows and columns of a tile, largest first.
_TILES: Final = (32, 16, 8, 4)
#: Shared memory that a block gets on every device.
_SHARED_BYTES: Final = 48 * 1024
#: Axes of heads along which a mask may vary on its own.
_MASK_AXES: Final = 4

#: Places of the arrays of both functions.
_Q, _K, _V, _MASK, _Y = range(5)


@dataclass(frozen=True, slots=True)
class _Places:
    """Places of the other arrays: of a call, then of a backward call."""

    log_sum: int
    key: int
    dy: int
    dq: int
    dk: int
    dv: int


_PLAIN: Final = _Places(log_sum=5, key=-1, dy=6, dq=7, dk=8, dv=9)
#: The seed and the counter are an output before the sums. A forward pass gets the key as its last array.
_DROPPING: Final = _Places(log_sum=6, key=7, dy=7, dq=9, dk=10, dv=11)
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
#: Elements of shared memory that a block needs, by the size of its tile.
_Elements: TypeAlias = Callable[[int, Sizes], int]


class ScaledDotProductAttention:
    """y = softmax(scale q k^T + mask) v, tile by tile; the leading axes are heads."""

    _places: ClassVar[_Places] = _PLAIN

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays, many features, and masks that vary in many ways."""
        refusal = refuse_dtypes(call) or refuse_sizes(call.inputs) or refuse_sizes(call.outputs)
        if refusal is not None:
            return refusal
        sizes = _sizes(call)
        if not (sizes.width and sizes.depth) or _tile(call, _backward_elements) is None:
            return Refusal(f"takes up to about 700 features, 350 of float64, got {sizes.width} and {sizes.depth}")
        if len(_mask_strides(call)[0]) > _MASK_AXES:
            return Refusal(f"takes masks that vary along {_MASK_AXES} groups of leading axes at most")
        return None

    def private_shapes(self, call: Call) -> Sequence[Shape]:
        """The shape of the logarithms, in the precision of sums."""
        return [log_sum_shape(call)]

    def forward(self, call: Call) -> Runner:
        """One launch."""
        return Program(self._forward_launches(call), len(forward_arrays(call)))

    def _forward_launches(self, call: Call, dropping: Sequence[Argument] = ()) -> list[Launch]:
        """The launch for y and the logarithms; `dropping` are the arguments of dropout."""
        arguments = (*_head(call), _Q, _K, _V, *_mask_arguments(call), _Y, self._places.log_sum, *dropping)
        return _launches(call, "attention", _sizes(call).n_queries, _forward_elements, arguments)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """A launch each for dy.y, for dq, and for dk and dv; None for the gradient of a mask, which needs all weights."""
        return self._backward(call, wanted)

    def _backward(self, call: Call, wanted: Sequence[bool], dropping: Sequence[Argument] = ()) -> Runner | None:
        if any(wanted[3:]):
            return None
        places = self._places
        sizes, arrays = _sizes(call), backward_arrays(call, wanted)
        inner = len(arrays)
        rows = sizes.heads * sizes.n_queries
        tile = _tile(call, _backward_elements)
        assert tile is not None
        code = _code(call, "attention_inner", tile)
        launches = [flat(code, rows, (np.int64(rows), _Y, places.dy, inner))] if rows else []
        read = (*_head(call), _Q, _K, _V, *_mask_arguments(call), places.log_sum, inner, places.dy)
        if wanted[_Q]:
            arguments = (*read, places.dq, *dropping)
            launches += _launches(call, "attention_backward_queries", sizes.n_queries, _backward_elements, arguments)
        if wanted[_K] or wanted[_V]:
            dk, dv = (place if want else np.uint64(0) for place, want in zip((places.dk, places.dv), wanted[1:3], strict=True))
            arguments = (*read, dk, dv, *dropping)
            launches += _launches(call, "attention_backward_keys", sizes.n_keys, _backward_elements, arguments)
        return Program(launches, len(arrays), [((rows,), real_dtype(call.dtype))])


class DropoutAttention(ScaledDotProductAttention):
    """Attention whose weights are dropped at random, with the numbers that every backend draws."""

    _places: ClassVar[_Places] = _DROPPING

    def forward(self, call: Call) -> Runner:
        """A launch more, which keeps the key for the backward pass."""
        key = self._places.key
        code = _code(call, "attention_drawn", _TILES[-1])
        launches = [Launch(code, (1,), (2,), (key, _DRAWN)), *self._forward_launches(call, [key, *dropping(call)])]
        return SeededProgram(launches, len(forward_arrays(call)) + 1)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """The launches without dropout, which draw the factors of the weights again."""
        return self._backward(call, wanted, [_DRAWN, *dropping(call)])


def log_sum_shape(call: Call) -> Shape:
    """The shape of log_sum in elements of its dtype, where each number takes as many as one of the dtype of sums."""
    desc = call.outputs[-1]
    n = ITEM_BYTES[real_dtype(call.dtype)] // ITEM_BYTES[desc.dtype]
    return (*_present(call.inputs[_Q]).shape[:-1], n)


def _present(desc: ArrayDesc | None) -> ArrayDesc:
    assert desc is not None
    return desc


def _sizes(call: Call) -> Sizes:
    q, k, v = (_present(desc).shape for desc in call.inputs[:3])
    return Sizes(math.prod(q[:-2]), q[-2], k[-2], q[-1], v[-1])


def _forward_elements(tile: int, sizes: Sizes) -> int:
    """Elements of shared memory: queries, keys or values, and weights."""
    return tile * (sizes.width + 1 + max(sizes.width, sizes.depth) + 1 + tile + 1)


def _backward_elements(tile: int, sizes: Sizes) -> int:
    """Elements of shared memory: queries, keys, values and gradients of y, weights and their gradients."""
    return 2 * tile * (sizes.width + 1 + sizes.depth + 1 + tile + 1)


def _tile(call: Call, elements: _Elements) -> int | None:
    """The largest tile that fits into shared memory, and is not twice as long as both queries and keys."""
    item, sizes = ITEM_BYTES[real_dtype(call.dtype)], _sizes(call)
    longest = max(sizes.n_queries, sizes.n_keys)
    useful = [tile for tile in _TILES if tile == _TILES[-1] or tile < 2 * longest]
    return next((tile for tile in useful if item * elements(tile, sizes) <= _SHARED_BYTES), None)


def _code(call: Call, function: str, tile: int) -> Code:
    sizes = _sizes(call)
    drops = "p" in call.args
    defines = {"TILE": tile, "WIDTH": sizes.width, "DEPTH": sizes.depth, "CAUSAL": int(bool(call.args["is_causal"]))}
    header = "".join(f"#define {name} {value}\n" for name, value in {**defines, "DROPOUT": int(drops)}.items())
    files = part("philox.cuh") * drops + part("attention.cu")
    return Code(function, f"{header}typedef {C_TYPES[call.dtype]} T;\n{files}", real_type(call.dtype))


def _launches(
    call: Call, function: str, n_rows: int, elements: _Elements, arguments: Sequence[Argument]
) -> list[Launch]:
    """One launch with a block for each tile of `n_rows` rows of each head; none where there are no rows."""
    sizes, tile = _sizes(call), _tile(call, elements)
    assert tile is not None
    n_blocks = sizes.heads * -(-n_rows // tile)
    shared_bytes = ITEM_BYTES[real_dtype(call.dtype)] * elements(tile, sizes)
    code = _code(call, function, tile)
    return [Launch(code, (n_blocks,), (tile * _LANES,), tuple(arguments), shared_bytes)] if n_blocks else []


def _head(call: Call) -> tuple[np.generic, ...]:
    sizes = _sizes(call)
    return np.int64(sizes.n_queries), np.int64(sizes.n_keys), real(call.dtype, call.args["scale"])


def _mask_arguments(call: Call) -> list[Argument]:
    """The mask or null, four pairs of length and stride for the heads, and the strides of queries and keys."""
    heads, query, key = _mask_strides(call)
    pairs = [(1, 0)] * (_MASK_AXES - len(heads)) + heads
    values: Argument = np.uint64(0) if call.inputs[_MASK] is None else _MASK
    return [values, *[np.int64(number) for pair in pairs for number in pair], np.int64(query), np.int64(key)]


def _mask_strides(call: Call) -> tuple[_Pairs, int, int]:
    """(length, stride) of the axes of heads along which the mask varies, joined where that is one step; query; key."""
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
