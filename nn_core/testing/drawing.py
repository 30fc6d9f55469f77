"""Recipes for the numbers of a sample: each is a function from a random generator to a float64 array, or one of integers."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Draw: TypeAlias = Callable[[np.random.Generator], np.ndarray[Any, Any]]


def normal(*shape: int, mean: float = 0.0, scale: float = 1.0) -> Draw:
    """Return normally distributed numbers."""
    return lambda rng: rng.normal(mean, scale, shape)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Draw:
    """Numbers that are uniform in [low, high)."""
    return lambda rng: rng.uniform(low, high, shape)


def integers(*shape: int, low: int = 0, high: int) -> Draw:
    """Integers that are uniform in [low, high)."""
    return lambda rng: rng.integers(low, high, shape)


def levels(*shape: int, dtype: str = "int8") -> Draw:
    """Return integers of a dtype that are uniform in its range."""
    bounds = np.iinfo(dtype)
    return lambda rng: rng.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)


def mask(*shape: int) -> Draw:
    """Zeros and ones, as floating numbers."""
    return lambda rng: rng.integers(0, 2, shape).astype(np.float64)


def distinct(*shape: int, gap: float = 0.25) -> Draw:
    """Numbers around zero in random order, any two of them at least `gap` apart: for order statistics."""
    count = math.prod(shape)
    return lambda rng: (rng.permutation(count).reshape(shape) - count // 2 + 0.5) * gap


def values(numbers: Any) -> Draw:
    """Return the same `numbers` each time: integers of an array as they are, else int64 or float64."""
    array = np.asarray(numbers)
    kept = isinstance(numbers, np.ndarray) and array.dtype.kind in "iu"
    fixed = array if kept else array.astype(np.int64 if array.dtype.kind in "iub" else np.float64)
    return lambda rng: fixed


def regular(*shape: int) -> Draw:
    """Square matrices that are far from singular, of positive determinant."""
    return lambda rng: 2.0 * np.eye(shape[-1]) + rng.uniform(-0.4, 0.4, shape)


def positive_definite(*shape: int) -> Draw:
    """Symmetric positive definite matrices that are far from singular."""

    def draw(rng: np.random.Generator) -> np.ndarray[Any, Any]:
        factor = rng.uniform(-0.5, 0.5, shape)
        product: np.ndarray[Any, Any] = np.matmul(factor, np.swapaxes(factor, -1, -2)) + 1.5 * np.eye(shape[-1])
        return product

    return draw
