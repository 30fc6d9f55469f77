"""Weights of recurrent networks: from the arrays of our functions to the one memory of cuDNN, and gradients back.

cuDNN says where it wants each matrix and each bias. A table on the device lists them, and one launch copies all.
"""

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nn_core.ext import Array, ArrayDesc
from nn_ext_cuda.codegen.code import Code
from nn_ext_cuda.codegen.copies import Copies
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real_type
from nn_ext_cuda.launch.program import THREADS, Chain, Launch, Program
from nn_ext_cuda.memory.arrays import allocated
from nn_ext_cudnn import handle
from nn_ext_cudnn.errors import NotSupportedError
from nn_ext_cudnn.legacy import api, descriptors
from nn_ext_cudnn.legacy.descriptors import Descriptor

_CODE: Final = """
extern "C" __global__ void {name}(const int64* table, W* first, W* further, W* bias, T* space) {{
  const int64* piece = table + 6 * blockIdx.y;
  W* const owner = piece[0] == 0 ? first : piece[0] == 1 ? further : piece[0] == 2 ? bias : nullptr;
  const int64 columns = piece[5], n = piece[4] * columns;
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {{
    const int64 own = piece[1] + i / columns * piece[2] + i % columns;
    {copy}
  }}
}}
"""
_PACK: Final = "store(space[piece[3] + i], owner ? R(load(owner[own])) : R(0));"
_UNPACK: Final = "if (owner) store(owner[own], R(load(space[piece[3] + i])));"


@dataclass(frozen=True, slots=True)
class Form:
    """Sizes of a network.

    Attributes:
        n_layers: Number of layers L.
        n_directions: Number of directions D.
        n_gates: Number of matrices for the input, and of as many for the state.
        n_features: Length of x.
        n_hidden: Length of a state H.
        has_bias: Whether there are biases.
        has_state_bias: Whether the last matrix of the state has a bias of its own, after the others.
    """

    n_layers: int
    n_directions: int
    n_gates: int
    n_features: int
    n_hidden: int
    has_bias: bool
    has_state_bias: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A matrix or a bias.

    Attributes:
        owner: The one of weight_l0, weight and bias that has it (0 to 2); -1: nobody, it is zero.
        start: Its offset in its owner, in elements.
        pitch: Elements from one row to the next in its owner.
        place: Its offset in the memory of cuDNN, in elements.
        rows: Number of rows.
        columns: Number of columns; there, rows are adjacent.
    """

    owner: int
    start: int
    pitch: int
    place: int
    rows: int
    columns: int


def pieces(form: Form, network: Descriptor, n_bytes: int, dtype: str) -> list[Piece]:
    """All matrices and biases of a network, as cuDNN tells where they are."""
    functions, pointer = api.adv(), handle.current().pointer
    memory = allocated((n_bytes,), "uint8")  # its address is all that is used
    base = int(memory.data.ptr)
    matrix, bias = (_tensor() for _ in range(2))
    found: list[Piece] = []
    for layer, direction, number in _matrices(form):
        where = [ctypes.c_void_p(), ctypes.c_void_p()]
        functions.cudnnGetRNNWeightParams(
            *(pointer, network, layer * form.n_directions + direction, n_bytes, base, number),
            *(matrix, ctypes.byref(where[0]), bias, ctypes.byref(where[1])),
        )
        for address, tensor, (owner, start, pitch, rows, columns) in zip(
            where, (matrix, bias), _owners(form, layer, direction, number), strict=True
        ):
            if address.value is None:
                continue
            _require_rows(tensor, rows, columns)
            place = (address.value - base) // ITEM_BYTES[dtype]
            found.append(Piece(owner, start, pitch, place, rows, columns))
    return found


def _tensor() -> Descriptor:
    functions = api.ops()
    return Descriptor(functions.cudnnCreateTensorDescriptor, functions.cudnnDestroyTensorDescriptor)


def _matrices(form: Form) -> Iterator[tuple[int, int, int]]:
    """(layer, direction, number of the matrix): those of the input come first, then those of the state."""
    for layer in range(form.n_layers):
        for direction in range(form.n_directions):
            for number in range(2 * form.n_gates):
                yield layer, direction, number


def _owners(form: Form, layer: int, direction: int, number: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(owner, start, pitch, rows, columns) of a matrix and of its bias."""
    hidden, of_state, gate = form.n_hidden, number >= form.n_gates, number % form.n_gates
    n_inputs = form.n_features if layer == 0 else form.n_directions * hidden
    pitch = n_inputs + hidden
    index = direction if layer == 0 else (layer - 1) * form.n_directions + direction
    start = (index * form.n_gates + gate) * hidden * pitch
    yield int(layer > 0), start + of_state * n_inputs, pitch, hidden, hidden if of_state else n_inputs
    n_biases = form.n_gates + form.has_state_bias
    first = (layer * form.n_directions + direction) * n_biases * hidden
    if of_state and form.has_state_bias and gate == form.n_gates - 1:
        yield 2, first + form.n_gates * hidden, hidden, 1, hidden
    else:
        yield -1 if of_state else 2, first + gate * hidden, hidden, 1, hidden


def _require_rows(tensor: Descriptor, rows: int, columns: int) -> None:
    _, dims, strides = descriptors.layout_of(tensor)
    if math.prod(dims) != rows * columns or tuple(strides) != descriptors.contiguous(dims):
        raise NotSupportedError(
            f"cudnnGetRNNWeightParams: a matrix must be {rows} x {columns} and stored row by row, got {dims} by {strides}"
        )


def table(found: Sequence[Piece]) -> np.ndarray[Any, Any]:
    """Return the pieces as the kernel reads them."""
    rows = [(piece.owner, piece.start, piece.pitch, piece.place, piece.rows, piece.columns) for piece in found]
    return np.array(rows, np.int64)


class WeightCopy:
    """The copy of all weights, a part of a recipe.

    Args:
        found: The pieces.
        dtypes: The dtype of the weights, and that of the memory of cuDNN.
        places: Numbers of weight_l0, weight and bias among the arrays, and of the memory of cuDNN.
        unpack: Copy from the memory of cuDNN to the arrays that are given, not to it.
    """

    def __init__(
        self, found: Sequence[Piece], dtypes: tuple[str, str], places: Sequence[int], *, unpack: bool = False
    ) -> None:
        self._table = table(found)
        self._on_device: Array | None = None
        self._places = tuple(places)
        name = "unpack_weights" if unpack else "pack_weights"
        text = _CODE.format(name=name, copy=_UNPACK if unpack else _PACK)
        own, other = (C_TYPES[dtype] for dtype in dtypes)
        self._code = Code(name, f"typedef {own} W;\ntypedef {other} T;\n{text}", real_type(dtypes[1]))
        largest = max(piece.rows * piece.columns for piece in found)
        self._grid = (min(-(-largest // THREADS), 1024), len(found))

    def bind(self, *arrays: Array | None) -> Any:
        """Return the launch on these arrays."""
        from nn_ext_cuda.device.runtime import cupy  # tables can be made without CuPy

        if self._on_device is None:
            self._on_device = cupy.asarray(self._table)
        launch = Launch(self._code, self._grid, (THREADS,), (len(arrays), *self._places))
        return Program([launch], len(arrays) + 1).bind(*arrays, self._on_device)


class Packing:
    """The program that packs weights into the memory of cuDNN; see `nn_ext_cuda.memory.derived_weights.WithDerived`.

    Args:
        found: The pieces.
        n_elements: Size of that memory.
        dtypes: The dtype of the weights, and that of the memory.
        present: Which of weight_l0, weight and bias there are.
    """

    def __init__(self, found: Sequence[Piece], n_elements: int, dtypes: tuple[str, str], present: Sequence[bool]) -> None:
        self.dtypes = dtypes
        self._present = tuple(present)
        parts: list[Any] = []
        if not covers(found, n_elements):
            copies = Copies([*[None] * len(present), ArrayDesc((n_elements,), dtypes[1])])
            copies.fill(len(present))
            parts.append(copies.program())
        self._chain = Chain([*parts, WeightCopy(found, dtypes, range(len(present) + 1))])

    def bind(self, *arrays: Array) -> Any:
        """Return the launches on the weights that there are, and the memory."""
        given = iter(arrays)
        return self._chain.bind(*[next(given) if is_there else None for is_there in self._present], *given)


def covers(found: Sequence[Piece], n_elements: int) -> bool:
    """Return whether the pieces fill the whole memory of cuDNN."""
    return sum(piece.rows * piece.columns for piece in found) == n_elements
