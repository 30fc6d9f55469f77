"""Matrix products with a bias, or with the gradient of a bias, in one launch by cublasLt; called through ctypes.

What a product needs is looked up when it is bound, never while it runs: cublasLt refuses to choose algorithms while a
stream is captured. The choice is kept by sizes, layouts and alignments. Where the library is missing, or knows no
algorithm, a product is not made, and whoever asked does without.
"""

import ctypes
import logging
import weakref
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import Array
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cuda.device.errors import failed
from nn_ext_cuda.gemm import blas, precision
from nn_ext_cuda.gemm.blas import Matrix
from nn_ext_cuda.launch.program import span

_LOGGER: Final = logging.getLogger("nn_core.cuda")
LIBRARIES: Final = ("libcublasLt.so.13", "libcublasLt.so.12")


class Epilogue(IntEnum):
    """An additional operation on a product: cublasLtEpilogue_t."""

    #: A vector is added to each row of C.
    BIAS = 4
    #: A vector is added to each row of C, and negative numbers become 0.
    BIAS_THEN_RELU = 4 | 2
    #: A vector is added to each row of C, and the GELU of the sums is written.
    BIAS_THEN_GELU = 4 | 32
    #: The same, and the sums are written to a further matrix.
    BIAS_AND_GELU = 4 | 32 | 128
    #: C is multiplied by the slope of GELU at the elements of a further matrix.
    GELU_GRADIENT = 64 | 128
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
_FURTHER_LEAD_MULTIPLE: Final = 8
_FURTHER_ALIGNMENT: Final = 16
#: Kernels may read or write as many bytes of a vector at once; the library does not ask how it is aligned.
_VECTOR_ALIGNMENT: Final = 16
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
    """Return the library, or None where there is none."""
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
        vector: Place of the array of N elements that this reads or writes; None where there is none.
        otherwise: A replacement that computes the same.
        tf32: Whether float32 may be rounded to TF32.
    """

    a: Matrix
    b: Matrix
    c: Matrix
    sizes: tuple[int, int, int]
    dtype: str
    epilogue: Epilogue
    vector: int | None
    otherwise: Any
    tf32: bool = False

    @property
    def launches(self) -> tuple[Any, ...]:
        """The launches of what computes the same."""
        return tuple(getattr(self.otherwise, "launches", ()))

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> Any:
        """Return the product of these arrays."""
        given = library()
        if given is None or 0 in self.sizes or not self._is_vector_aligned(arrays):
            return self.otherwise.bind(*arrays)
        prepared = Prepared(given, self, arrays)
        return LightStep(prepared) if prepared.algorithm is not None else self.otherwise.bind(*arrays)

    def _is_vector_aligned(self, arrays: Sequence[Array]) -> bool:
        return self.vector is None or not int(arrays[self.vector].data.ptr) % _VECTOR_ALIGNMENT


def _compute_type(product: LightProduct) -> int:
    """Return the cublasComputeType of a product."""
    if product.dtype == "float64":
        return blas.COMPUTE_DOUBLE
    return blas.COMPUTE_TF32 if product.tf32 and product.dtype == "float32" else blas.COMPUTE_FLOAT


@dataclass(frozen=True, slots=True)
class Fusion:
    """A replacement of the epilogue of a product.

    Attributes:
        epilogue: The additional operation.
        target: The array to which the result of that is written, in place of C.
        further: The further matrix that is written, or read, of the shape and in the memory order of C; None: there is none.
    """

    epilogue: Epilogue
    target: Array
    further: Array | None = None


class Prepared:
    """Descriptors and an algorithm for a product of given arrays.

    Args:
        given: The library.
        product: The product.
        arrays: The arrays of the call.
        fusion: What is done with the result; None: what the product says.
    """

    def __init__(self, given: Any, product: LightProduct, arrays: Sequence[Array], fusion: Fusion | None = None) -> None:
        rows, columns, inner = product.sizes
        epilogue = product.epilogue if fusion is None else fusion.epilogue
        self.product, self.given_arrays, self.fusion = product, tuple(arrays), fusion
        self._library = given
        self._made: list[tuple[Any, Any]] = []
        weakref.finalize(self, _destroy, self._made)
        self.arrays = [arrays[matrix.place] for matrix in (product.a, product.b, product.c)]
        vector = 0
        if product.vector is not None:
            self.arrays.append(arrays[product.vector])
            vector = int(arrays[product.vector].data.ptr)
        wide = product.dtype == "float64"
        scale = blas.DATA_TYPES["float64" if wide else "float32"]
        self._operation = self._make("cublasLtMatmulDesc", ctypes.c_int(_compute_type(product)), ctypes.c_int(scale))
        # column-major: the operands change places, as in `blas`
        for attribute, value in (
            (_TRANSPOSE_A, ctypes.c_int32(product.b.transposed)),
            (_TRANSPOSE_B, ctypes.c_int32(product.a.transposed)),
            (_EPILOGUE, ctypes.c_int32(epilogue)),
            *([] if product.vector is None else [(_BIAS_POINTER, ctypes.c_uint64(vector))]),
        ):
            self._set("cublasLtMatmulDesc", self._operation, attribute, value)
        self._pointers: list[int] = []
        self._layouts: list[Any] = []
        self._lay_out(((columns, inner), (inner, rows), (columns, rows)))
        self._further = 0
        if fusion is not None:
            self._fuse(fusion)
        number = ctypes.c_double if wide else ctypes.c_float
        self._one, self._zero = number(1), number(0)
        addresses = (*self._pointers, vector, self._further)
        alignments = tuple(min(address & -address or 1, _MAX_ALIGNMENT) for address in addresses)
        leads = (product.a.lead, product.b.lead, product.c.lead, product.a.transposed, product.b.transposed)
        settings = (product.dtype, product.tf32, epilogue, _reductions())
        self.key = (blas.handle().device, product.sizes, leads, settings, alignments)
        if self.key not in _CHOSEN:
            _CHOSEN[self.key] = self._choose(alignments)
        self.algorithm = _CHOSEN[self.key]

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

    def _lay_out(self, shapes: Sequence[tuple[int, int]]) -> None:
        """Describe the matrices, which change places; `shapes` as the library sees them."""
        product = self.product
        item_bytes, kind = ITEM_BYTES[product.dtype], ctypes.c_int(blas.DATA_TYPES[product.dtype])
        for matrix, (height, width) in zip((product.b, product.a, product.c), shapes, strict=True):
            shape = (width, height) if matrix.transposed else (height, width)
            sizes = (ctypes.c_uint64(shape[0]), ctypes.c_uint64(shape[1]), ctypes.c_int64(matrix.lead))
            self._layouts.append(self._make("cublasLtMatrixLayout", kind, *sizes))
            self._pointers.append(int(self.given_arrays[matrix.place].data.ptr) + matrix.start * item_bytes)

    def _fuse(self, fusion: Fusion) -> None:
        """Write the result elsewhere, and set the further matrix."""
        self.arrays.append(fusion.target)
        self._pointers[2] = int(fusion.target.data.ptr)
        if fusion.further is not None:
            self.arrays.append(fusion.further)
            self._further = int(fusion.further.data.ptr)
            self._set("cublasLtMatmulDesc", self._operation, _AUX_POINTER, ctypes.c_uint64(self._further))
            self._set("cublasLtMatmulDesc", self._operation, _AUX_LEAD, ctypes.c_int64(self.product.c.lead))

    def _choose(self, alignments: tuple[int, ...]) -> Any:
        """Return the algorithm that cublasLt thinks best, or None."""
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


def is_all_of(array: Array, result: Array) -> bool:
    """Return whether an array is the result of a product as a whole."""
    is_same = int(array.data.ptr) == int(result.data.ptr) and bool(array.size == result.size)
    return is_same and span(array) == span(result)


def may_be_further(array: Array, lead: int, target: Array) -> bool:
    """Return whether cublasLt takes an array as the further matrix of a product whose result it writes to `target`."""
    return not lead % _FURTHER_LEAD_MULTIPLE and not any(int(each.data.ptr) % _FURTHER_ALIGNMENT for each in (array, target))


def overlap(one: Array, other: Array) -> bool:
    """Return whether two arrays may share memory: whether the one begins before the other ends."""
    first, second = sorted(map(span, (one, other)))
    return first[1] > second[0]


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
    def product(self) -> LightProduct:
        """The product."""
        return self._prepared.product

    @property
    def operands(self) -> tuple[Array, ...]:
        """The arrays that are read: A, B and the vector."""
        return (*self.arrays[:2], *self.arrays[3:4])

    @property
    def result(self) -> Array:
        """The array of the matrix C."""
        return self.arrays[2]

    @property
    def is_fused(self) -> bool:
        """Whether it does something with its result already."""
        return self._prepared.fusion is not None

    @property
    def chosen_for(self) -> Hashable:
        """The sizes, layouts and alignments for which the algorithm was chosen."""
        return self._prepared.key

    def try_on(self, vector: Array, target: Array) -> None:
        """Multiply at once, by the same algorithm, with another vector into another array."""
        prepared = self._prepared
        given, place = list(prepared.given_arrays), self.product.vector
        assert prepared.fusion is not None and place is not None
        given[place] = vector
        tried = Prepared(library(), self.product, given, replace(prepared.fusion, target=target))
        tried.algorithm = prepared.algorithm
        LightStep(tried)()

    def fused(self, fusion: Fusion) -> "LightStep | None":
        """Return the product that does `fusion` with its result; None where the library has no algorithm for that."""
        prepared = Prepared(library(), self.product, self._prepared.given_arrays, fusion)
        return LightStep(prepared) if prepared.algorithm is not None else None

    def run(self) -> None:
        """Multiply."""
        try:
            self._prepared.run()
        except Exception as error:  # whatever the library or the device says is told with the sizes
            raise failed("matrix product", error, self.arrays) from error

    __call__ = run
