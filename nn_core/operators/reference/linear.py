"""Reference kernels of matrix products and of small dense linear algebra (Golub and Van Loan, 2013)."""

from math import prod

from nn_core.errors import ArgumentError
from nn_core.operators.reference.precision import sum_dtype, widen
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace


@kernel("Affine")
def affine(xp: Namespace, x: Array, weight: Array, bias: Array | None, *, base_axis: int) -> Array:
    """Flatten x to a matrix, multiply, add the bias."""
    x, weight = widen(xp, x), widen(xp, weight)
    n_inputs, *output = weight.shape
    rows = xp.reshape(x, (prod(x.shape[:base_axis]), n_inputs))
    y = xp.matmul(rows, xp.reshape(weight, (n_inputs, prod(output))))
    y = xp.reshape(y, (*x.shape[:base_axis], *output))
    return y if bias is None else y + bias


@kernel("BatchMatmul")
def batch_matmul(xp: Namespace, a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    """Matrix products over broadcast leading axes."""
    a, b = widen(xp, a), widen(xp, b)
    return xp.matmul(_transposed(xp, a) if transpose_a else a, _transposed(xp, b) if transpose_b else b)


def _transposed(xp: Namespace, x: Array) -> Array:
    return xp.moveaxis(x, -1, -2)


@kernel("BatchDet")
def batch_det(xp: Namespace, x: Array) -> Array:
    """Return determinants by LU decomposition."""
    return xp.linalg.det(widen(xp, x))


@kernel("BatchInv")
def batch_inv(xp: Namespace, x: Array) -> Array:
    """Inverses by LU decomposition."""
    try:
        return xp.linalg.inv(widen(xp, x))
    except ValueError as cause:  # LinAlgError is one
        raise ArgumentError(f"batch_inv: x must hold invertible matrices, got a singular one in shape {x.shape}") from cause


@kernel("BatchLogdet")
def batch_logdet(xp: Namespace, x: Array) -> Array:
    """Logarithms of absolute determinants, summed over the LU diagonal so that they do not overflow."""
    return xp.linalg.slogdet(widen(xp, x))[1]


@kernel("BatchCholesky")
def batch_cholesky(xp: Namespace, x: Array, *, upper: bool) -> Array:
    """Triangular factors of the symmetric part of x."""
    x = widen(xp, x)
    try:
        lower = xp.linalg.cholesky((x + _transposed(xp, x)) / 2)
    except ValueError as cause:  # LinAlgError is one
        raise ArgumentError(f"batch_cholesky: x must be positive definite, got another matrix in shape {x.shape}") from cause
    return _transposed(xp, lower) if upper else lower


@kernel("Einsum")
def einsum(xp: Namespace, *x: Array, equation: str) -> Array:
    """Return sums of products over named axes; several operands are contracted pair by pair."""
    wide = [array.astype(sum_dtype(xp, array)) for array in x]
    return xp.einsum(equation, *wide, optimize=True)
