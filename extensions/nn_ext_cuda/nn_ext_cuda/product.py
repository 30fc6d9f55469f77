"""Matrix products as runners, beside the programs of generated kernels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nn_core.ext import Array
from nn_ext_cuda import blas
from nn_ext_cuda.errors import failed


@dataclass(frozen=True, slots=True)
class Product:
    """C = A B of row-major matrices, or of as many as `batch` says.

    Attributes:
        places: Where A, B and C are among the arrays of the call.
        sizes: (M, N, K).
        transposed: Whether the first array holds the transpose of A, and the second that of B.
        batch: Number of products, and elements from one matrix to the next of A, B and C.
        dtype: What the arrays hold.
        tf32: Whether float32 may be rounded to TF32.
        accumulate: Whether C is added to.
    """

    places: tuple[int, int, int]
    sizes: tuple[int, int, int]
    transposed: tuple[bool, bool]
    batch: tuple[int, int, int, int]
    dtype: str
    tf32: bool = False
    accumulate: bool = False

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> "ProductStep":
        """The product of these arrays."""
        a, b, c = (arrays[place] for place in self.places)
        arguments = blas.arguments(
            a,
            b,
            c,
            sizes=self.sizes,
            transposed=self.transposed,
            batch=self.batch,
            dtype=self.dtype,
            tf32=self.tf32,
            accumulate=self.accumulate,
        )
        return ProductStep(arguments, (a, b, c), is_empty=math.prod((*self.sizes[:2], self.batch[0])) == 0)


class ProductStep:
    """A product of given arrays; it can be part of a CUDA graph."""

    __slots__ = ("_arguments", "_is_empty", "arrays")

    capturable = True
    uses_blas = True
    words = ()

    def __init__(self, arguments: tuple[object, ...], arrays: Sequence[Array], *, is_empty: bool) -> None:
        self._arguments = arguments
        self._is_empty = is_empty
        self.arrays = tuple(arrays)

    def run(self) -> None:
        """Multiply."""
        if self._is_empty:
            return
        try:
            blas.handle().multiply(self._arguments)
        except Exception as error:  # whatever the library or the device says is told with the sizes
            raise failed("matrix product", error, self.arrays) from error

    __call__ = run

