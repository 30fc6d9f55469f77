"""Matrix products as runners, beside the programs of generated kernels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nn_core.ext import Array
from nn_ext_cuda.device.errors import failed
from nn_ext_cuda.gemm import blas
from nn_ext_cuda.gemm.blas import Matrix


@dataclass(frozen=True, slots=True)
class Product:
    """C = A B of row-major matrices, or `count` such products.

    Attributes:
        a: The matrices A, (M, K), or (K, M) where they are transposed.
        b: The matrices B, (K, N), or (N, K).
        c: The matrices C, (M, N).
        sizes: (M, N, K).
        dtype: The dtype of the arrays.
        count: Number of products.
        tf32: Whether float32 may be rounded to TF32.
        accumulate: Whether C is added to.
    """

    a: Matrix
    b: Matrix
    c: Matrix
    sizes: tuple[int, int, int]
    dtype: str
    count: int = 1
    tf32: bool = False
    accumulate: bool = False

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> "ProductStep":
        """Return the product of these arrays."""
        matrices = self.a, self.b, self.c
        held = [arrays[matrix.place] for matrix in matrices]
        if math.prod((*self.sizes[:2], self.count)) == 0:
            return ProductStep(self, None, held)
        return ProductStep(
            self,
            blas.gemm(
                held,
                matrices,
                sizes=self.sizes,
                count=self.count,
                dtype=self.dtype,
                tf32=self.tf32,
                accumulate=self.accumulate,
            ),
            held,
        )


class ProductStep:
    """A product of given arrays; it can be part of a CUDA graph.

    Attributes:
        product: The product.
        arrays: A, B and C.
    """

    __slots__ = ("_gemm", "arrays", "product")

    capturable = True
    uses_blas = True
    words = ()

    def __init__(self, product: Product, gemm: "blas.Gemm | None", arrays: Sequence[Array]) -> None:
        self.product = product
        self._gemm = gemm
        self.arrays = tuple(arrays)

    def run(self) -> None:
        """Multiply."""
        if self._gemm is None:
            return
        try:
            blas.handle().multiply(self._gemm)
        except Exception as error:  # whatever the library or the device says is told with the sizes
            raise failed("matrix product", error, self.arrays) from error

    __call__ = run
