"""Statements of C: nests of loops over shapes, with indices that are linear in the counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nn_ext_c.program import Shape


@dataclass(frozen=True, slots=True)
class Index:
    """A number that is linear in the counters of loops."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.constant + other)
        factors = dict(self.terms)
        for name, factor in other.terms:
            factors[name] = factors.get(name, 0) + factor
        return Index(tuple((name, factor) for name, factor in factors.items() if factor), self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        return Index(tuple((name, k * factor) for name, k in self.terms if factor), self.constant * factor)

    def __str__(self) -> str:
        text = ""
        for name, factor in self.terms:
            size = name if abs(factor) == 1 else f"{name} * {abs(factor)}"
            text += (f" {'-' if factor < 0 else '+'} " if text else "-" if factor < 0 else "") + size
        if not text:
            return str(self.constant)
        return text if not self.constant else f"{text} {'-' if self.constant < 0 else '+'} {abs(self.constant)}"


class Code:
    """Statements that are collected, with loops that are open."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0
        self._counters = 0

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append("    " * self._depth + text)

    def open(self, head: str) -> None:
        """Open a block."""
        self.line(f"{head} {{")
        self._depth += 1

    def close(self, count: int = 1) -> None:
        """Close blocks."""
        for _ in range(count):
            self._depth -= 1
            self.line("}")

    def close_to(self, depth: int) -> None:
        """Close all blocks but `depth`."""
        self.close(self._depth - depth)

    @property
    def depth(self) -> int:
        """The number of open blocks."""
        return self._depth

    def loop(self, length: int) -> Index:
        """Open a loop and return its counter; one round needs no loop."""
        if length == 1:
            return Index()
        name = f"i{self._counters}"
        self._counters += 1
        self.open(f"for (int32_t {name} = 0; {name} < {length}; ++{name})")
        return Index(((name, 1),))

    def loops(self, shape: Iterable[int]) -> list[Index]:
        """Open a loop for each length."""
        return [self.loop(length) for length in shape]

    def windows(
        self,
        counts: Sequence[int],
        lengths: Sequence[int],
        kernels: Sequence[int],
        strides: Sequence[int],
        pads: Sequence[int],
        places: Sequence[Index],
    ) -> None:
        """Declare ``from{k}`` and ``to{k}`` for each axis: the part of the window at a place that is inside the array.

        Args:
            counts: the numbers of windows along the axes.
            lengths: of the axes of the array.
            kernels: the lengths of a window.
            strides: from one window to the next.
            pads: the numbers of elements of the first window that are before the array.
            places: the numbers of the window, which are below `counts`.
        """
        axes = zip(counts, lengths, kernels, strides, pads, places, strict=True)
        for k, (count, length, kernel, stride, pad, place) in enumerate(axes):
            self.line(f"const int32_t start{k} = {place * stride + -pad};")
            is_within = (count - 1) * stride - pad + kernel <= length
            stop = f"start{k} + {kernel}"
            self.line(f"const int32_t from{k} = {f'start{k} < 0 ? 0 : ' if pad else ''}start{k};")
            self.line(f"const int32_t to{k} = {stop if is_within else f'{stop} > {length} ? {length} : {stop}'};")

    def window_loops(self, n: int) -> list[Index]:
        """Open the loops over the window of `n` axes that `windows` has declared, and return their counters."""
        for k in range(n):
            self.open(f"for (int32_t k{k} = from{k}; k{k} < to{k}; ++k{k})")
        return [Index(((f"k{k}", 1),)) for k in range(n)]

    def text(self) -> str:
        """Return the statements, all blocks closed."""
        self.close_to(0)
        return "\n".join(self.lines)


def dot(counters: Sequence[Index], strides: Sequence[int]) -> Index:
    """Return the offset of an element."""
    return sum((counter * stride for counter, stride in zip(counters, strides, strict=True)), Index())


def merged(shape: Sequence[int], strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """Equal loops with fewer axes: those of length 1 left out, and axes joined that are one run for all `strides`."""
    lengths: list[int] = []
    columns: list[list[int]] = []
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        column = [s[axis] for s in strides]
        if lengths and all(before == now * length for before, now in zip(columns[-1], column, strict=True)):
            lengths[-1] *= length
            columns[-1] = column
        else:
            lengths.append(length)
            columns.append(column)
    return tuple(lengths), [tuple(column[k] for column in columns) for k in range(len(strides))]


def number(value: float) -> str:
    """Return a float32 as C writes it: the shortest digits that give it back."""
    single = np.float32(value)
    if np.isnan(single):
        return "NAN"
    if np.isinf(single):
        return "INFINITY" if single > 0 else "(-INFINITY)"
    is_plain = not single or 1e-4 <= abs(single) < 1e7
    text = repr(float(str(single))) if is_plain else np.format_float_scientific(single, trim="0")
    return f"({text}f)" if np.signbit(single) else f"{text}f"
