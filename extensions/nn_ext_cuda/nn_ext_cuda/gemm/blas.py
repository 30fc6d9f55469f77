"""Matrix products by cuBLAS, called through ctypes.

CuPy refuses cuBLAS while a stream is captured; called directly with a workspace of its own it can be captured. Matrices
are row-major here and column-major there, so operands change places: C = A B is C^T = B^T A^T.
"""

import ctypes
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from nn_core.ext import Array
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cuda.device.errors import DeviceError, DeviceMemoryError
from nn_ext_cuda.gemm import precision
from nn_ext_cuda.memory.arrays import allocated

WORKSPACE_BYTES: Final = 32 * 2**20
#: cudaDataType of each dtype.
DATA_TYPES: Final[Mapping[str, int]] = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
#: cublasComputeType: float, double, and float with operands rounded to TF32.
COMPUTE_FLOAT: Final = 68
COMPUTE_DOUBLE: Final = 70
COMPUTE_TF32: Final = 77
DEFAULT_ALGORITHM: Final = -1
#: cublasMath_t: by default parts of a sum may be added in the 16 bits of the result; with the bit set, in float32.
DEFAULT_MATH: Final = 0
NO_REDUCED_PRECISION_REDUCTION: Final = 16
#: cublasStatus_t, except 0 for success.
STATUSES: Final[Mapping[int, str]] = {
    1: "NOT_INITIALIZED",
    3: "ALLOC_FAILED",
    7: "INVALID_VALUE",
    8: "ARCH_MISMATCH",
    11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED",
    14: "INTERNAL_ERROR",
    15: "NOT_SUPPORTED",
    16: "LICENSE_ERROR",
}
#: Kernels for tensor cores read so many bytes at once. cuBLAS sees the address of an array, but none of those in a table.
_LISTED_ALIGNMENT: Final = 16
#: (library, device, whether parts of sums may be added in 16 bits)
Kind: TypeAlias = tuple[Any, int, bool]
LIBRARIES: Final = ("libcublas.so.13", "libcublas.so.12")


@lru_cache(maxsize=1)
def library() -> Any:
    """Return the library: the one that CuPy's own search finds, else the one that the loader finds."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # comes with CuPy 14

        return ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path)
    except Exception as error:  # not installed, or finds nothing: each version raises something of its own
        reason = error
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(
        f"cuBLAS: libcublas must be installed, got none ({reason})\n  hint: pip install nvidia-cublas, or nvidia-cublas-cu12"
    ) from reason


class Handle:
    """A handle of cuBLAS, for one device, and for one thread and stream at a time.

    Attributes:
        kind: The library, the device, and whether parts of sums may be added in 16 bits.
        device: Number of the device.
        stream: The stream on which it works.
        memory: Its workspace. Graphs that were recorded with it use it at each replay.
        workspace: The address of that.
    """

    def __init__(self, kind: "Kind") -> None:
        self.kind = kind
        self._library, self.device, allowed = kind
        self._handle = ctypes.c_void_p()
        self._light: Any = None
        check("cublasCreate", self._library.cublasCreate_v2(ctypes.byref(self._handle)))
        mode = DEFAULT_MATH if allowed else NO_REDUCED_PRECISION_REDUCTION
        check("cublasSetMathMode", self._library.cublasSetMathMode(self._handle, ctypes.c_int(mode)))

    def work_on(self, stream: int) -> None:
        """Work on a stream from now on, with a new workspace: recorded graphs may know the one before."""
        self.stream = stream
        self.memory = allocated((WORKSPACE_BYTES,), "uint8")
        self.workspace = int(self.memory.data.ptr)
        check("cublasSetStream", self._library.cublasSetStream_v2(self._handle, ctypes.c_void_p(stream)))
        # after the stream, which would replace it
        pointer, size = ctypes.c_void_p(self.workspace), ctypes.c_size_t(WORKSPACE_BYTES)
        check("cublasSetWorkspace", self._library.cublasSetWorkspace_v2(self._handle, pointer, size))

    def light(self, light_library: Any) -> Any:
        """Return the handle of cublasLt, made at the first use, which must not be while a stream is captured."""
        if self._light is None:
            made = ctypes.c_void_p()
            check("cublasLtCreate", light_library.cublasLtCreate(ctypes.byref(made)))
            self._light = made
        return self._light

    def multiply(self, gemm: "Gemm") -> None:
        """Call the functions of a product."""
        for function, arguments in gemm.calls:
            check(function, getattr(self._library, function)(self._handle, *arguments))


def handle() -> Handle:
    """Return the handle for this thread and its current device and stream, made at the first use."""
    from nn_ext_cuda.device.runtime import cupy  # everything else here does without it

    stream = int(cupy.cuda.get_current_stream().ptr)
    device, allowed = int(cupy.cuda.Device().id), precision.is_reduced_precision_reduction_allowed()
    handles: _Lent = _OF_THREAD.handles
    found = handles.get((device, stream, allowed))
    if found is None:
        found = _borrowed((library(), device, allowed))
        found.work_on(stream)
        handles[device, stream, allowed] = found
    return found


@dataclass(frozen=True, slots=True)
class Matrix:
    """Row-major matrices in an array; everything is counted in elements.

    Attributes:
        place: Number of the array among those of the call.
        lead: From one row to the next.
        step: From one matrix to the next; or where each one begins.
        start: Offset of the first one.
        transposed: The rows of the array are the columns of the matrix.
    """

    place: int
    lead: int
    step: int | tuple[int, ...] = 0
    start: int = 0
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Gemm:
    """Functions of cuBLAS, each with what follows the handle, and memory on the device that the arguments point to."""

    calls: tuple[tuple[str, tuple[Any, ...]], ...]
    tables: tuple[Array, ...] = ()


def gemm(
    arrays: Sequence[Array],
    matrices: tuple[Matrix, Matrix, Matrix],
    *,
    sizes: tuple[int, int, int],
    count: int,
    dtype: str,
    tf32: bool,
    accumulate: bool,
) -> Gemm:
    """Return the calls for row-major C = A B (+ C, if `accumulate`).

    Where the matrices are one `step` apart this is cublasGemmStridedBatchedEx, otherwise
    cublasGemmBatchedEx with tables of addresses on the device, which are made now. Where tensor cores could read beside the
    alignment of such addresses, it is cublasGemmStridedBatchedEx for each part of the matrices that are one step apart.

    Args:
        arrays: The arrays with A, B and C.
        matrices: The layout of A, B and C in them.
        sizes: (M, N, K).
        count: Number of products.
        dtype: The dtype of all of them.
        tf32: Whether float32 may be rounded to TF32.
        accumulate: Whether C is added to.
    """
    rows, columns, inner = sizes
    number = ctypes.c_double if dtype == "float64" else ctypes.c_float
    compute = COMPUTE_DOUBLE if dtype == "float64" else COMPUTE_TF32 if tf32 and dtype == "float32" else COMPUTE_FLOAT
    bases = [int(array.data.ptr) for array in arrays]
    calls: list[tuple[str, tuple[Any, ...]]] = []
    tables: list[Array] = []
    for part, n_products in _parts(bases, matrices, count, dtype, compute):
        listed = None if all(isinstance(matrix.step, int) for matrix in part) else tables
        a, b, c = (_operand(base, matrix, n_products, dtype, listed) for base, matrix in zip(bases, part, strict=True))
        arguments = (
            ctypes.c_int(int(part[1].transposed)),
            ctypes.c_int(int(part[0].transposed)),
            ctypes.c_int(columns),
            ctypes.c_int(rows),
            ctypes.c_int(inner),
            ctypes.byref(number(1)),
            *b,
            *a,
            ctypes.byref(number(float(accumulate))),
            *c,
            ctypes.c_int(n_products),
            ctypes.c_int(compute),
            ctypes.c_int(DEFAULT_ALGORITHM),
        )
        calls.append(("cublasGemmStridedBatchedEx" if listed is None else "cublasGemmBatchedEx", arguments))
    return Gemm(tuple(calls), tuple(tables))


def _operand(base: int, matrix: Matrix, count: int, dtype: str, tables: list[Array] | None) -> tuple[Any, ...]:
    """Return the arguments of an operand; the table of its addresses, if there is to be one, is added to `tables`."""
    first = base + matrix.start * ITEM_BYTES[dtype]
    if tables is not None:
        tables.append(_addresses(first, matrix, count, ITEM_BYTES[dtype]))
        first = int(tables[-1].data.ptr)
    step = (ctypes.c_longlong(matrix.step),) if tables is None and isinstance(matrix.step, int) else ()
    return ctypes.c_void_p(first), ctypes.c_int(DATA_TYPES[dtype]), ctypes.c_int(max(matrix.lead, 1)), *step


def _parts(
    bases: Sequence[int], matrices: tuple[Matrix, Matrix, Matrix], count: int, dtype: str, compute: int
) -> list[tuple[Sequence[Matrix], int]]:
    """Return the matrices of each call, and the number of its products: one call, unless a table would have misaligned
    addresses.
    """
    whole: list[tuple[Sequence[Matrix], int]] = [(matrices, count)]
    uses_tensor_cores = ITEM_BYTES[dtype] == 2 or compute == COMPUTE_TF32
    if not uses_tensor_cores or all(isinstance(matrix.step, int) for matrix in matrices):
        return whole
    places = np.array([_places(matrix, count) for matrix in matrices], np.int64)
    starts = [base + matrix.start * ITEM_BYTES[dtype] for base, matrix in zip(bases, matrices, strict=True)]
    addresses = np.array(starts)[:, None] + places * ITEM_BYTES[dtype]
    return list(_strided(matrices, places)) if (addresses % _LISTED_ALIGNMENT).any() else whole


def _strided(matrices: Sequence[Matrix], places: Any) -> Iterator[tuple[Sequence[Matrix], int]]:
    """Split listed matrices into parts that are one step apart in all three operands."""
    steps, count = np.diff(places), places.shape[1]
    first = 0
    while first < count:
        end = first + 1
        while end < count and (steps[:, end - 1] == steps[:, first]).all():
            end += 1
        own = steps[:, first] if end > first + 1 else np.zeros(len(matrices), np.int64)
        yield (
            [
                replace(matrix, start=matrix.start + int(place), step=int(step))
                for matrix, place, step in zip(matrices, places[:, first], own, strict=True)
            ],
            end - first,
        )
        first = end


def _places(matrix: Matrix, count: int) -> Any:
    """Return the offset of each matrix from the first one, in elements."""
    return np.arange(count) * matrix.step if isinstance(matrix.step, int) else np.array(matrix.step)


def _addresses(first: int, matrix: Matrix, count: int, item_bytes: int) -> Array:
    """Return the address of each matrix, on the device."""
    from nn_ext_cuda.device.runtime import cupy  # see handle

    return cupy.asarray(np.uint64(first) + _places(matrix, count).astype(np.uint64) * np.uint64(item_bytes))


class _Lent(dict[tuple[int, int, bool], Handle]):
    """Handles by device, stream and precision, given back when the thread that has them ends.

    They are never destroyed: that waits for the device, and breaks the capture of another thread.
    """

    free: ClassVar[dict["Kind", list[Handle]]] = {}

    def __del__(self) -> None:
        for handle in self.values():
            self.free.setdefault(handle.kind, []).append(handle)


def _borrowed(kind: "Kind") -> Handle:
    try:
        return _Lent.free[kind].pop()
    except (KeyError, IndexError):
        return Handle(kind)


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.handles = _Lent()


_OF_THREAD: Any = _OfThread()


def is_in_use() -> bool:
    """Return whether this thread has multiplied matrices before."""
    return bool(_OF_THREAD.handles)


def check(function: str, status: int) -> None:
    """Refuse a status of the library other than success.

    Raises:
        DeviceMemoryError: when the library could not allocate memory.
        DeviceError: for every other failure, with the name of the status.
    """
    if status == 0:
        return
    given = f"{STATUSES.get(status, 'unknown')} ({status})"
    if STATUSES.get(status) == "ALLOC_FAILED":
        raise DeviceMemoryError(
            f"{function}: the memory that the library needs must fit into the device, got {given}\n"
            "  hint: a smaller batch, or nn_ext_cuda.clear_memory_cache()"
        )
    raise DeviceError(f"{function}: status must be success, got {given}")
