"""Matrix products by cuBLAS, called through ctypes.

CuPy refuses cuBLAS while a stream is captured; called directly with a workspace of its own it can be captured. Matrices
are row-major here and column-major there, so operands change places: C = A B is C^T = B^T A^T.
"""

import ctypes
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import Array
from nn_ext_cuda.errors import DeviceError

WORKSPACE_BYTES: Final = 32 * 2**20
#: cudaDataType of each dtype.
DATA_TYPES: Final[Mapping[str, int]] = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
#: cublasComputeType: float, double, and float with operands rounded to TF32.
COMPUTE_FLOAT: Final = 68
COMPUTE_DOUBLE: Final = 70
COMPUTE_TF32: Final = 77
DEFAULT_ALGORITHM: Final = -1
LIBRARIES: Final = ("libcublas.so.13", "libcublas.so.12")


@lru_cache(maxsize=1)
def library() -> Any:
    """The library: the one that CuPy's own search finds, else the one that the loader finds."""
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
    """A handle of cuBLAS with a workspace, for one thread, device and stream."""

    def __init__(self, stream: int) -> None:
        from nn_ext_cuda.runtime import cupy  # everything else here does without it

        self._library = library()
        self._handle = ctypes.c_void_p()
        _check("cublasCreate", self._library.cublasCreate_v2(ctypes.byref(self._handle)))
        self._workspace = cupy.empty((WORKSPACE_BYTES,), "uint8")
        _check("cublasSetStream", self._library.cublasSetStream_v2(self._handle, ctypes.c_void_p(stream)))
        # after the stream, which would replace it
        pointer, size = ctypes.c_void_p(int(self._workspace.data.ptr)), ctypes.c_size_t(WORKSPACE_BYTES)
        _check("cublasSetWorkspace", self._library.cublasSetWorkspace_v2(self._handle, pointer, size))

    def multiply(self, arguments: tuple[Any, ...]) -> None:
        """Call cublasGemmStridedBatchedEx with what follows the handle."""
        _check("cublasGemmStridedBatchedEx", self._library.cublasGemmStridedBatchedEx(self._handle, *arguments))


def handle() -> Handle:
    """The handle for this thread and its current device and stream, made at the first use."""
    from nn_ext_cuda.runtime import cupy  # see Handle

    stream = int(cupy.cuda.get_current_stream().ptr)
    handles: dict[tuple[int, int], Handle] = _OF_THREAD.__dict__
    key = (cupy.cuda.Device().id, stream)
    found = handles.get(key)
    if found is None:
        found = handles[key] = Handle(stream)
    return found


def arguments(
    a: Array,
    b: Array,
    c: Array,
    *,
    sizes: tuple[int, int, int],
    transposed: tuple[bool, bool],
    batch: tuple[int, int, int, int],
    dtype: str,
    tf32: bool,
    accumulate: bool,
) -> tuple[Any, ...]:
    """The arguments of cublasGemmStridedBatchedEx behind the handle for row-major C = A B (+ C, if `accumulate`).

    Args:
        a: A, or its transpose, as `transposed` says.
        b: B, likewise.
        c: C, shape (M, N).
        sizes: (M, N, K).
        transposed: Whether a holds (K, M), and b (N, K).
        batch: Number of products, and by how many elements a, b and c go on from one to the next.
        dtype: What all of them hold.
        tf32: Whether float32 may be rounded to TF32.
        accumulate: Whether C is added to.
    """
    rows, columns, inner = sizes
    n_products, *strides = batch
    number = ctypes.c_double if dtype == "float64" else ctypes.c_float
    kind = DATA_TYPES[dtype]
    compute = COMPUTE_DOUBLE if dtype == "float64" else COMPUTE_TF32 if tf32 and dtype == "float32" else COMPUTE_FLOAT
    lead_a = max(rows if transposed[0] else inner, 1)
    lead_b = max(inner if transposed[1] else columns, 1)

    def matrix(array: Array, lead: int, stride: int) -> tuple[Any, ...]:
        return ctypes.c_void_p(int(array.data.ptr)), ctypes.c_int(kind), ctypes.c_int(lead), ctypes.c_longlong(stride)

    return (
        ctypes.c_int(int(transposed[1])),
        ctypes.c_int(int(transposed[0])),
        ctypes.c_int(columns),
        ctypes.c_int(rows),
        ctypes.c_int(inner),
        ctypes.byref(number(1)),
        *matrix(b, lead_b, strides[1]),
        *matrix(a, lead_a, strides[0]),
        ctypes.byref(number(float(accumulate))),
        *matrix(c, max(columns, 1), strides[2]),
        ctypes.c_int(n_products),
        ctypes.c_int(compute),
        ctypes.c_int(DEFAULT_ALGORITHM),
    )


_OF_THREAD = threading.local()


def _check(function: str, status: int) -> None:
    if status != 0:
        raise DeviceError(f"{function}: status must be 0, got {status}")
