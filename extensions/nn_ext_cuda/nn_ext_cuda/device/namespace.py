"""CuPy as the reference kernels see it: what CuPy adds up by atomic operations is added in the order of the indices."""

import math
from typing import Any

from nn_core.ext import Array
from nn_ext_cuda.codegen.ordering import Ordering


class OrderedAdd:
    """``cupy.add``, whose `at` gives the same bits each time."""

    def __init__(self, add: Any, cupy: Any) -> None:
        self._add = add
        self._cupy = cupy

    def __call__(self, *arguments: Any, **options: Any) -> Array:
        return self._add(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._add, name)

    def at(self, target: Array, places: Any, values: Any) -> None:
        """Add `values` to the elements or blocks of `target` that integer arrays number, one for each of the first axes."""
        cupy = self._cupy
        indices = places if isinstance(places, tuple) else (places,)
        if target.dtype.kind != "f" or any(index.dtype.kind not in "iu" for index in indices):
            self._add.at(target, places, values)  # sums of integers do not depend on the order
            return
        rows: Any = 0
        for index, length in zip(indices, target.shape, strict=False):
            rows = rows * length + cupy.where(index < 0, index + length, index)
        block = target.shape[len(indices) :]
        n, width = rows.size, math.prod(block)
        if n * width == 0:
            return
        added = cupy.broadcast_to(cupy.asarray(values, target.dtype), (*rows.shape, *block))
        total = cupy.ascontiguousarray(target)
        ordering = Ordering(4, str(target.dtype))
        ordering.put(0, 1, 2, 3, n, width, add=True)
        keys = cupy.ascontiguousarray(rows.reshape(-1).astype("int64"))
        ordering.program()(keys, cupy.arange(n, dtype="int64"), cupy.ascontiguousarray(added), total)
        if total is not target:
            target[...] = total


class OrderedNamespace:
    """CuPy with an ordered ``add.at``.

    Args:
        cupy: CuPy.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self.add = OrderedAdd(cupy.add, cupy)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cupy, name)
