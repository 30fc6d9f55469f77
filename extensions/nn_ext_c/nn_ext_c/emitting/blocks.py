"""Inner products of several filters at once: their sums are independent, so that compilers put them into vectors.

Each sum has its terms in the order in which one after the other would have them, and so the same bits.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from nn_ext_c.emitting.registry import array_of
from nn_ext_c.loops import Code, Index
from nn_ext_c.program import Program, Value

#: How many sums are computed at once, the best first. GCC makes single operations of loops of 16 rounds and fewer.
_BLOCKS: Final = (32, 28, 24, 20)


def blocks(count: int) -> Iterator[tuple[int, int, int]]:
    """Yield parts of `count` filters: the first, how many there are, and how many are computed at once."""
    block = next((block for block in _BLOCKS if count % block == 0), _BLOCKS[0])
    whole = count // block * block
    if whole:
        yield 0, whole, block
    if count > whole:
        yield whole, count - whole, count - whole


def last_in_memory(program: Program, weight: Value, axis: int) -> Value:
    """Return a constant with the elements of one axis side by side in memory."""
    order = [*(k for k in range(len(weight.shape)) if k != axis), axis]
    array = np.ascontiguousarray(array_of(weight.transpose(order), "weight"))
    made = program.constant(array, weight.buffer.dtype, weight.buffer.name)
    return made.transpose([order.index(k) for k in range(len(order))])


class Totals:
    """The statements over the sums of a block.

    Attributes:
        lane: the place in the block.
    """

    def __init__(self, code: Code, block: int) -> None:
        self.code, self.block = code, block
        self.lane = Index((("f", 1),)) if block > 1 else Index()
        self._name = "total[f]" if block > 1 else "total"
        self._depth = 0

    def begin(self, start: str) -> None:
        """Declare the sums and set them."""
        if self.block > 1:
            self.code.line(f"float total[{self.block}];")
            self._each(f"total[f] = {start};")
        else:
            self.code.line(f"float total = {start};")
        self._depth = self.code.depth

    def add(self, element: str, weight: str) -> None:
        """Add products with an element, and close the loops that were opened since the beginning."""
        if self.block > 1:
            self.code.line(f"const float e = {element};")
            self._each(f"total[f] += e * {weight};")
        else:
            self.code.line(f"total += {element} * {weight};")
        self.code.close_to(self._depth)

    def store(self, place: str) -> None:
        """Write the sums."""
        self._each(f"{place} = {self._name};")

    def _each(self, statement: str) -> None:
        if self.block == 1:
            self.code.line(statement)
            return
        self.code.open(f"for (int32_t f = 0; f < {self.block}; ++f)")
        self.code.line(statement)
        self.code.close()
