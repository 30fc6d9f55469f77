"""Matrix products with a bias, or with the gradient of a bias, in one launch by cublasLt; called through ctypes.

What a product needs is looked up when it is bound, never while it runs: cublasLt refuses to choose algorithms while a
stream is captured. The choice is kept by sizes, layouts and alignments. Where the library is missing, or knows no
algorithm, a product is not made, and whoever asked does without.
"""

import ctypes
import logging
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import Array
from nn_ext_cuda import blas, precision
from nn_ext_cuda.blas import Matrix
from nn_ext_cuda.dtypes import ITEM_BYTES
from nn_ext_cuda.errors import failed

_LOGGER: Final = logging.getLogger("nn_core.cuda")
LIBRARIES: Final = ("libcublasLt.so.13", "libcublasLt.so.12")


class Epilogue(IntEnum):
    """An additional operation on a product: cublasLtEpilogue_t."""

    #: A vector is added to each row of C.
    BIAS = 4
    #: A vector is added to each row of C. The sums are written to a further matrix, and their GELU to C.
    BIAS_AND_GELU = 4 | 32 | 128
    #: The sum of the rows of B is written to a vector.
    SUM_OF_ROWS = 256


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


#: Attributes of descriptors that are set.
_TRANSPOSE_A: Final = 3
_TRANSPOSE_B: Final = 4
_EPILOGUE: Final = 7
_BIAS_POINTER: Final = 8
_AUX_POINTER: Final = 11
_AUX_LEAD: Final = 12
#: The lead and the address of a further matrix are multiples of these numbers.
_AUX_LEAD_MULTIPLE: Final = 8
_AUX_ALIGNMENT: Final = 16
_MAX_WORKSPACE_BYTES: Final = 1
_REDUCTION_SCHEMES: Final = 3
_MIN_ALIGNMENTS: Final = (5, 6, 7, 8)
#: Alignments beyond which nothing gets faster.
_MAX_ALIGNMENT: Final = 256
#: cublasLtReductionScheme_t: in place or in the compute type; and also in the type of the result.
_EXACT_REDUCTIONS: Final = 1 | 2
_ALL_REDUCTIONS: Final = _EXACT_REDUCTIONS | 4
#: Algorithms by what they were chosen for; None where there is none.
_CHOSEN: dict[Any, Any] = {}


@lru_cache(maxsize=1)
def library() -> Any:
    """The library, or None where there is none."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # comes with CuPy 14

        return ctypes.CDLL(load_nvidia_dynamic_lib("cublasLt").abs_path)
    except Exception as error:  # not installed, or finds nothing: each version raises something of its own
        _LOGGER.debug("cublasLt was not found by cuda.pathfinder: %s", error)
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def make_handle() -> None:
    """Make the handle for this thread and its current device and stream, if there is the library and none yet."""
    given = library()
    if given is not None:
        blas.handle().light(given)


@dataclass(frozen=True, slots=True)
class LightProduct:
    """Row-major C = A B with something beside it; without the library, or an algorithm, it is another runner.

    Attributes:
        a: The matrix A; see `product.Product`.
        b: The matrix B.
        c: The matrix C.
        sizes: (M, N, K).
        dtype: The dtype of the arrays.
        epilogue: The additional operation.
        vector: Place of the array of N elements that this reads or writes.
        otherwise: A replacement that computes the same.
        tf32: Whether float32 may be rounded to TF32.
    """

    a: Matrix
    b: Matrix
    c: Matrix
    sizes: tuple[int, int, int]
    dtype: str
    epilogue: Epilogue
    vector: int
    otherwise: Any
    tf32: bool = False

    @property
    def launches(self) -> tuple[Any, ...]:
        """The launches of what computes the same."""
        return tuple(getattr(self.otherwise, "launches", ()))

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> Any:
        """The product of these arrays."""
        given = library()
        if given is None or 0 in self.sizes:
            return self.otherwise.bind(*arrays)
        prepared = Prepared(given, self, arrays)
        return LightStep(prepared) if prepared.algorithm is not None else self.otherwise.bind(*arrays)


def _compute_type(product: LightProduct) -> int:
    """The cublasComputeType of a product."""
    if product.dtype == "float64":
        return blas.COMPUTE_DOUBLE
    return blas.COMPUTE_TF32 if product.tf32 and product.dtype == "float32" else blas.COMPUTE_FLOAT


class Prepared:
    """Descriptors and an algorithm for a product of given arrays.

    Args:
        given: The library.
        product: The product.
        arrays: The arrays of the call.
        activated: The array for the GELU of the result; None: it is not computed.
    """

    def __init__(
        self, given: Any, product: LightProduct, arrays: Sequence[Array], activated: Array | None = None
    ) -> None:
        rows, columns, inner = product.sizes
        epilogue = product.epilogue if activated is None else Epilogue.BIAS_AND_GELU
        self.product, self.given_arrays = product, tuple(arrays)
        self._library = given
        self._made: list[tuple[Any, Any]] = []
        weakref.finalize(self, _destroy, self._made)
        self.arrays = [arrays[matrix.place] for matrix in (product.a, product.b, product.c)] + [arrays[product.vector]]
        kind = blas.DATA_TYPES[product.dtype]
        wide = product.dtype == "float64"
        scale = blas.DATA_TYPES["float64" if wide else "float32"]
        vector = int(self.arrays[3].data.ptr)
        self._operation = self._make("cublasLtMatmulDesc", ctypes.c_int(_compute_type(product)), ctypes.c_int(scale))
        # column-major: the operands change places, as in `blas`
        for attribute, value in (
            (_TRANSPOSE_A, ctypes.c_int32(product.b.transposed)),
            (_TRANSPOSE_B, ctypes.c_int32(product.a.transposed)),
            (_EPILOGUE, ctypes.c_int32(epilogue)),
            (_BIAS_POINTER, ctypes.c_uint64(vector)),
        ):
            self._set("cublasLtMatmulDesc", self._operation, attribute, value)
        item_bytes = ITEM_BYTES[product.dtype]
        self._pointers = []
        self._layouts = []
        shapes = ((columns, inner), (inner, rows), (columns, rows))
        for matrix, (height, width) in zip((product.b, product.a, product.c), shapes, strict=True):
            shape = (width, height) if matrix.transposed else (height, width)
            sizes = (ctypes.c_uint64(shape[0]), ctypes.c_uint64(shape[1]), ctypes.c_int64(matrix.lead))
            self._layouts.append(self._make("cublasLtMatrixLayout", ctypes.c_int(kind), *sizes))
            self._pointers.append(int(arrays[matrix.place].data.ptr) + matrix.start * item_bytes)
        if activated is not None:
            self.arrays.append(activated)
            self._set("cublasLtMatmulDesc", self._operation, _AUX_POINTER, ctypes.c_uint64(self._pointers[2]))
            self._set("cublasLtMatmulDesc", self._operation, _AUX_LEAD, ctypes.c_int64(product.c.lead))
            self._pointers[2] = int(activated.data.ptr)
        number = ctypes.c_double if wide else ctypes.c_float
        self._one, self._zero = number(1), number(0)
        alignments = tuple(min(address & -address or 1, _MAX_ALIGNMENT) for address in (*self._pointers, vector))
        leads = (product.a.lead, product.b.lead, product.c.lead, product.a.transposed, product.b.transposed)
        settings = (product.dtype, product.tf32, epilogue, _reductions())
        key = (blas.handle().device, product.sizes, leads, settings, alignments)
        if key not in _CHOSEN:
            _CHOSEN[key] = self._choose(alignments)
        self.algorithm = _CHOSEN[key]

    def run(self) -> None:
        """Multiply."""
        handle = blas.handle()
        a, b, c = (ctypes.c_void_p(pointer) for pointer in self._pointers)
        workspace, n_bytes = ctypes.c_void_p(handle.workspace), ctypes.c_size_t(blas.WORKSPACE_BYTES)
        status = self._library.cublasLtMatmul(
            handle.light(self._library),
            self._operation,
            ctypes.byref(self._one),
            a,
            self._layouts[0],
            b,
            self._layouts[1],
            ctypes.byref(self._zero),
            c,
            self._layouts[2],
            c,
            self._layouts[2],
            ctypes.byref(self.algorithm),
            workspace,
            n_bytes,
            ctypes.c_void_p(handle.stream),
        )
        blas.check("cublasLtMatmul", status)

    def _choose(self, alignments: tuple[int, ...]) -> Any:
        """The algorithm that cublasLt thinks best, or None."""
        preference = self._make("cublasLtMatmulPreference")
        wanted: list[tuple[int, Any]] = [(_MAX_WORKSPACE_BYTES, ctypes.c_size_t(blas.WORKSPACE_BYTES))]
        wanted.append((_REDUCTION_SCHEMES, ctypes.c_uint32(_reductions())))
        own = (*alignments[:3], alignments[2])
        wanted += [(attribute, ctypes.c_uint32(n)) for attribute, n in zip(_MIN_ALIGNMENTS, own, strict=True)]
        for attribute, value in wanted:
            self._set("cublasLtMatmulPreference", preference, attribute, value)
        found, count = _Heuristic(), ctypes.c_int(0)
        status = self._library.cublasLtMatmulAlgoGetHeuristic(
            blas.handle().light(self._library),
            self._operation,
            *self._layouts,
            self._layouts[2],
            preference,
            ctypes.c_int(1),
            ctypes.byref(found),
            ctypes.byref(count),
        )
        return found.algorithm if status == 0 and count.value and found.state == 0 else None

    def _make(self, kind: str, *arguments: Any) -> Any:
        made = ctypes.c_void_p()
        blas.check(f"{kind}Create", getattr(self._library, f"{kind}Create")(ctypes.byref(made), *arguments))
        self._made.append((getattr(self._library, f"{kind}Destroy"), made))
        return made

    def _set(self, kind: str, target: Any, attribute: int, value: Any) -> None:
        function = getattr(self._library, f"{kind}SetAttribute")
        size = ctypes.c_size_t(ctypes.sizeof(value))
        blas.check(f"{kind}SetAttribute", function(target, ctypes.c_int(attribute), ctypes.byref(value), size))


def overlap(one: Array, other: Array) -> bool:
    """Whether two arrays, each dense in memory, share some of it."""
    first, second = sorted((int(array.data.ptr), int(array.nbytes)) for array in (one, other))
    return first[0] + first[1] > second[0]


def _reductions() -> int:
    """Return the ways in which parts of a sum may be added."""
    return _ALL_REDUCTIONS if precision.is_reduced_precision_reduction_allowed() else _EXACT_REDUCTIONS


def _destroy(made: Sequence[tuple[Any, Any]]) -> None:
    for destroy, descriptor in made:
        destroy(descriptor)


class LightStep:
    """A product of given arrays; it can be part of a CUDA graph."""

    __slots__ = ("_prepared", "arrays")

    capturable = True
    uses_blas = True
    words = ()

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self.arrays = tuple(prepared.arrays)

    @property
    def result(self) -> Array:
        """The array of the matrix C."""
        return self.arrays[2]

    def with_gelu(self, activated: Array) -> "LightStep | None":
        """The product that writes the GELU of its result to another array, too; None where the library has none.

        None also where that array has the memory of an operand: plans reuse memory after the step that reads it last, and
        by then the product alone was over.
        """
        product, aligned = self._prepared.product, (self.result, activated)
        if any(overlap(array, activated) for array in self.arrays):
            return None
        if product.epilogue is not Epilogue.BIAS or product.dtype == "float64" or product.c.lead % _AUX_LEAD_MULTIPLE:
            return None
        if str(activated.dtype) != product.dtype or any(int(array.data.ptr) % _AUX_ALIGNMENT for array in aligned):
            return None
        prepared = Prepared(library(), product, self._prepared.given_arrays, activated)
        return LightStep(prepared) if prepared.algorithm is not None else None

    def run(self) -> None:
        """Multiply."""
        try:
            self._prepared.run()
        except Exception as error:  # whatever the library or the device says is told with the sizes
            raise failed("matrix product", error, self.arrays) from error

    __call__ = run
