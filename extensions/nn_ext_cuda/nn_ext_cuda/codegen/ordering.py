"""Launches that sort rows, and that put values to places in the order of the indices; see ``kernels/cuda/sorting.cu``."""

from dataclasses import dataclass, field

import numpy as np

from nn_ext_cuda.codegen.code import Code, from_file
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real_dtype, real_type
from nn_ext_cuda.launch.program import Argument, Launch, Program, WithArrays, flat
from nn_ext_cuda.memory.workspace import with_workspace

_NULL = np.uint64(0)


@dataclass(slots=True)
class Ordering:
    """Launches over the arrays of a call, followed by arrays in the memory that all steps share.

    Attributes:
        n_arrays: How many arrays the call has.
        dtype: The dtype of the values.
        launches: The launches so far.
        sizes: Bytes of each shared array.
    """

    n_arrays: int
    dtype: str
    launches: list[Launch] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def shared(self, n: int, dtype: str) -> int:
        """Return a new shared array of `n` elements; its place."""
        self.sizes.append(n * ITEM_BYTES[dtype])
        return self.n_arrays + len(self.sizes) - 1

    def sort(self, keys: int, n: int, length: int, key_dtype: str, *, descending: bool = False) -> tuple[int, int]:
        """Sort the rows of `length` of `n` keys in all.

        Returns:
            The places of the sorted keys, and of the number in its row that each key had before. The array `keys` is
            used as scratch memory.
        """
        code = self._code("merge_pass", key_dtype)
        source, target = (keys, -1), (self.shared(n, key_dtype), self.shared(n, "int64"))
        spare = (keys, self.shared(n, "int64"))
        run = 1
        while True:
            before: Argument = _NULL if source[1] < 0 else source[1]
            numbers = map(np.int64, (n, length, run, descending))
            self.launches.append(flat(code, n, [*numbers, source[0], before, *target]))
            run *= 2
            if run >= length:
                return target
            source, target, spare = target, spare, target

    def take_keys(self, x: int, n: int, length: int, inner: int, *, absolute: bool = False) -> int:
        """Return the elements of x (outer, length, inner) as keys (outer * inner, length); their place."""
        keys = self.shared(n, real_dtype(self.dtype))
        numbers = map(np.int64, (n, length, inner, absolute))
        self.launches.append(flat(self._code("keys_taken", real_dtype(self.dtype)), n, [*numbers, x, keys]))
        return keys

    def pick(
        self, x: int, places: int, y: int | None, index: int | None, *, frame: tuple[int, int, int], count: int, spread: bool
    ) -> None:
        """Return the first `count` elements of each sorted row of x, whose frame is (n, length, inner)."""
        targets: list[Argument] = [_NULL if place is None else place for place in (y, index)]
        numbers = map(np.int64, (*frame, count, spread))
        code = self._code("picked", real_dtype(self.dtype))
        self.launches.append(flat(code, frame[0], [*numbers, x, places, *targets]))

    def put(self, rows: int, sources: int, values: int, y: int, n: int, width: int, *, add: bool) -> None:
        """Put `n` rows of `width` values to the numbered rows of y; see ``segments_put``."""
        keys, places = self.sort(rows, n, n, "int64")
        numbers = map(np.int64, (n * width, width, add))
        code = self._code("segments_put", "int64")
        self.launches.append(flat(code, n * width, [*numbers, keys, places, sources, values, y]))

    def program(self) -> Program:
        """All launches so far, on memory of their own."""
        return Program(self.launches, self.n_arrays, [((size,), "uint8") for size in self.sizes])

    def runner(self) -> WithArrays | Program:
        """All launches so far."""
        program = Program(self.launches, self.n_arrays + len(self.sizes))
        return with_workspace(program, self.n_arrays, self.sizes) if self.sizes else program

    def _code(self, function: str, key_dtype: str) -> Code:
        return from_file("sorting.cu", function, real_type(self.dtype), T=C_TYPES[self.dtype], K=C_TYPES[key_dtype])
