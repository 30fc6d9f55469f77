"""Sums whose order does not depend on how the terms are spread over ranks.

K terms are added along one binary tree: neighbours first, then neighbouring pairs, and so on; what has no neighbour moves
up as it is. A rank that has the terms lo to hi adds up the whole subtrees among them; the ranks exchange slices of these
partial sums, each finishes the tree for its slice, and the slices are gathered.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import numpy as np

from nn_core.communicators.engine import Engine, Handle
from nn_core.engine.arrays.casting import dtype_of
from nn_core.typing import Array

#: Up to this many elements all ranks get everything and add it up themselves: one round of messages in place of two.
SMALL = 4096


class PartialSum(NamedTuple):
    """The sum of the terms from `start` on, `length` of them, a power of two."""

    start: int
    length: int
    total: Array


class PartialSums:
    """The terms of one rank, added along the tree as they come, in order."""

    def __init__(self) -> None:
        self.parts: list[PartialSum] = []

    def add(self, index: int, term: Array) -> None:
        """Take term number `index`, which follows the last one; `term` is changed from now on."""
        part = PartialSum(index, 1, term)
        while self.parts:
            left = self.parts[-1]
            if left.length != part.length or left.start % (2 * left.length):
                break
            self.parts.pop()
            _add(left.total, part.total)
            part = PartialSum(left.start, 2 * left.length, left.total)
        self.parts.append(part)


def part_spans(lo: int, hi: int) -> list[tuple[int, int]]:
    """Start and length of the partial sums of the terms from `lo` to before `hi`."""
    spans = []
    while lo < hi:
        length = lo & -lo or 1 << (hi - lo).bit_length()
        while lo + length > hi:
            length //= 2
        spans.append((lo, length))
        lo += length
    return spans


def finished(parts: Sequence[PartialSum], n_terms: int) -> Array:
    """Return the sum of all terms; the arrays of the parts are used up."""
    known = {(part.start, part.length): part.total for part in parts}
    return _subtree(known, 0, 1 << (n_terms - 1).bit_length(), n_terms)


def _subtree(known: dict[tuple[int, int], Array], start: int, length: int, n_terms: int) -> Array:
    """Return the sum of the terms from `start` on, in the memory of the first of its parts."""
    if (start, length) in known:
        return known[start, length]
    half = length // 2
    left = _subtree(known, start, half, n_terms)
    if start + half < n_terms:
        _add(left, _subtree(known, start + half, half, n_terms))
    return left


def _add(left: Array, right: Array) -> None:
    """Add to `left`; infinite gradients are an answer, of which whoever scales the loss takes note."""
    with np.errstate(invalid="ignore", over="ignore"):
        np.add(left, right, out=left)


def terms_of_rank(rank: int, n_ranks: int, n_terms: int) -> range:
    """Return the terms that a rank has, in order: as many on each, or one more on some."""
    return range(rank * n_terms // n_ranks, (rank + 1) * n_terms // n_ranks)


def tree_all_reduce(
    engine: Engine,
    parts: Sequence[Array],
    n_terms: int,
    wait: Callable[[Handle | None], None],
    wire: str | None = None,
    scratch: dict[str, Array] | None = None,
) -> Array:
    """Return the sum of `n_terms` terms that all ranks have together, shared as `terms_of_rank` says, at least one a rank.

    Args:
        engine: The ranks.
        parts: The partial sums of this rank, flat arrays of one size; they are used up.
        n_terms: Number of terms on all ranks together.
        wait: Waits for what the engine returns.
        wire: dtype in which numbers are sent; additions are done in the dtype of the parts.
        scratch: Keeps the memory for what arrives from one call to the next: fresh pages take longer than the exchange.

    Returns:
        A flat array, the same on all ranks.
    """
    steps = tree_sum(engine, parts, n_terms, wire, scratch)
    try:
        while True:
            wait(next(steps))
    except StopIteration as end:
        total: Array = end.value
        return total


def tree_sum(
    engine: Engine, parts: Sequence[Array], n_terms: int, wire: str | None, scratch: dict[str, Array] | None
) -> Generator[Handle | None, None, Array]:
    """`tree_all_reduce` in steps: yields what is to be waited for before the next one, and returns the sum."""
    if engine.size == 1:
        return finished([PartialSum(*span, part) for span, part in zip(part_spans(0, n_terms), parts, strict=True)], n_terms)
    size, dtype, n_elements = engine.size, parts[0].dtype, parts[0].size
    own_dtype = _wire_dtype(wire, dtype)
    small = n_elements <= SMALL
    length = n_elements if small else -(-n_elements // size)
    move = engine.all_gather if small else engine.all_to_all
    spans = _spans_by_rank(size, n_terms)
    n_parts = max(map(len, spans))
    send = _sliced(parts, n_parts, 1 if small else size, length, own_dtype)
    receive = _memory(scratch, size * n_parts * length, own_dtype).reshape(size, n_parts, length)
    yield move(_bytes(send), _bytes(receive))
    received = receive.astype(dtype, copy=False)
    total = finished(_arrived(received, spans), n_terms)  # over the slice that this rank adds up: all of it, or its share
    if small:
        return total.copy()
    own = np.ascontiguousarray(total, own_dtype)
    fits = size * length == n_elements and own_dtype == dtype
    gathered = parts[0] if fits else np.empty(size * length, own_dtype)
    yield engine.all_gather(_bytes(own), _bytes(gathered))
    return gathered[:n_elements].astype(dtype, copy=False)


def _spans_by_rank(size: int, n_terms: int) -> list[list[tuple[int, int]]]:
    return [part_spans(share.start, share.stop) for share in (terms_of_rank(r, size, n_terms) for r in range(size))]


def _arrived(received: Array, spans: Sequence[Sequence[tuple[int, int]]]) -> list[PartialSum]:
    return [PartialSum(*span, received[rank, place]) for rank, own in enumerate(spans) for place, span in enumerate(own)]


def _wire_dtype(wire: str | None, dtype: "np.dtype[np.generic]") -> "np.dtype[np.generic]":
    return dtype if wire is None or dtype != np.float32 else dtype_of(wire)


def _memory(scratch: "dict[str, Array] | None", n_elements: int, dtype: "np.dtype[np.generic]") -> Array:
    n_bytes = n_elements * dtype.itemsize
    known = None if scratch is None else scratch.get("received")
    if known is None or known.size < n_bytes:
        known = np.empty(n_bytes, np.uint8)
        if scratch is not None:
            scratch["received"] = known
    return np.asarray(known[:n_bytes].view(dtype))


def _bytes(array: Array) -> Array:
    """Return the memory of an array: engines that move numbers need not know their dtype."""
    return np.asarray(array.reshape(-1).view(np.uint8))


def _sliced(parts: Sequence[Array], n_parts: int, n_slices: int, length: int, dtype: "np.dtype[np.generic]") -> Array:
    """Return the parts as an array (n_slices, n_parts, length), of which slice r goes to rank r."""
    n_elements = parts[0].size
    if n_parts == 1 and n_slices * length == n_elements and parts[0].dtype == dtype:
        return parts[0].reshape(n_slices, 1, length)
    send = np.zeros((n_slices, n_parts, length), dtype)
    for place, part in enumerate(parts):
        for number in range(n_slices):
            piece = part[number * length : (number + 1) * length]
            send[number, place, : piece.size] = piece
    return send
