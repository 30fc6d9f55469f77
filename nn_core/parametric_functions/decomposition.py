"""Canonical polyadic decomposition of tensors: a sum of outer products of vectors."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from nn_core import random
from nn_core.errors import ArgumentError
from nn_core.initializer import Rng

Array: TypeAlias = np.ndarray[Any, Any]


class ALS:
    """Decompose a tensor by alternating least squares: each factor in turn is the best one for the others.

    References:
        Kolda and Bader (2009), Tensor decompositions and applications, section 3.4.
    """

    def solve(
        self,
        X: Array,  # the name programs use
        rank: int,
        max_iter: int = 500,
        stopping_criterion: float = 1e-05,
        lambda_reg: float = 0.0,
        dtype: Any = np.float32,
        rng: Rng | None = None,
    ) -> tuple[list[Array], Array]:
        """Find factors A_1, ..., A_n and weights with X[i, j, ...] close to sum over r of w_r A_1[i, r] A_2[j, r] ...

        Args:
            X: Tensor of any shape (D_1, ..., D_n), n > 1.
            rank: Number of outer products, R.
            max_iter: Most rounds over all factors.
            stopping_criterion: Stop when the relative error changes less than this; a negative number never stops.
            lambda_reg: Penalty on the squares of the factors.
            dtype: dtype of the results.
            rng: Generator of the first factors; None: the one that `nn_core.seed` seeds.

        Returns:
            Factors of shape (D_k, R), the largest element of a column being 1 except for the last one solved for, and
            the weights, shape (R).

        Raises:
            ArgumentError: when `rank` is below 1 or X has fewer than two axes.
        """
        if rank < 1 or X.ndim < 2:
            raise ArgumentError(f"ALS.solve: rank must be at least 1 and X have 2 axes, got {rank} and {X.shape}")
        generator = random.prng if rng is None else rng
        x = X.astype(np.float64)
        factors = [generator.standard_normal((length, rank)) for length in X.shape]
        weights = np.ones(rank)
        size = float(np.linalg.norm(x)) or 1.0
        last_error = np.inf
        for _ in range(max_iter):
            for n in range(x.ndim):
                gramian = self.hadamard_products_of_gramians(factors, n) + lambda_reg * np.eye(rank)
                unfolded = np.moveaxis(x, n, 0).reshape(x.shape[n], -1)
                factor = unfolded @ self.khatrirao_products(factors, n, reverse=False) @ np.linalg.pinv(gramian)
                peaks = np.take_along_axis(factor, np.abs(factor).argmax(0)[None], 0)[0]
                weights = np.where(peaks == 0, 1.0, peaks)
                factors[n] = factor / weights
            error = float(np.linalg.norm(x - self.approximate_tensor(factors, weights))) / size
            if abs(last_error - error) < stopping_criterion:
                break
            last_error = error
        return [factor.astype(dtype) for factor in factors], weights.astype(dtype)

    def approximate_tensor(self, A: Sequence[Array], lmbda: Array) -> Array:
        """Return the tensor that factors and weights stand for."""
        n_axes = len(A)
        operands: list[Any] = [lmbda, [n_axes]]
        for axis, factor in enumerate(A):
            operands += [factor, [axis, n_axes]]
        return np.einsum(*operands, list(range(n_axes)), optimize=True)

    def hadamard_products_of_gramians(self, A: Sequence[Array], n: int) -> Array:
        """Return the element-wise product of A_k^T A_k over all k but n, shape (R, R)."""
        return reduce(np.multiply, [factor.T @ factor for k, factor in enumerate(A) if k != n])

    def khatrirao_product(self, X: Array, Y: Array) -> Array:
        """Return the products of all rows of X with all rows of Y, shape (D_X * D_Y, R)."""
        return (X[:, None] * Y[None]).reshape(-1, X.shape[1])

    def khatrirao_products(self, A: Sequence[Array], n: int, reverse: bool = True) -> Array:
        """Return the Khatri-Rao product of all factors but A_n, the last one first if `reverse`."""
        others = [factor for k, factor in enumerate(A) if k != n]
        return reduce(self.khatrirao_product, reversed(others) if reverse else others)
