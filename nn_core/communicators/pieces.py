"""Parts of parameters, which ranks divide among themselves."""

from collections.abc import Iterator, Sequence
from typing import Final

from nn_core.communicators.buckets import sum_dtype_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.solvers.states import Slot, StateLayout, new_slot
from nn_core.variable import Variable

#: Parts of parameters begin at multiples of it, as vectors of kernels do, so that their ends are those of the whole.
_ALIGNMENT: Final = 16


class Piece:
    """A part of a parameter that one rank updates.

    Attributes:
        whole: The parameter in the solver.
        span: First element and the one after the last, of the parameter in C order.
        rank: The rank.
        place: The first element in what the rank sends.
        own: The parameter, gradient and states of the part, on that rank.
        gradient: The gradient of the part on that rank, where gradients are divided too; None: the part of the parameter's.
    """

    def __init__(self, whole: Slot, span: tuple[int, int], rank: int, place: int) -> None:
        self.whole = whole
        self.span = span
        self.rank = rank
        self.place = place
        self.own: Slot | None = None
        self.gradient: NdArray | None = None
        self._arrays: tuple[NdArray, NdArray] | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.span[1] - self.span[0]

    @property
    def is_whole(self) -> bool:
        """Whether the part is the whole parameter, which keeps its shape."""
        return self.size == self.whole.variable.size

    @property
    def states(self) -> tuple[NdArray, ...]:
        """The states of the part, on its rank."""
        return () if self.own is None else self.own.member.states

    def part_of(self, array: NdArray) -> NdArray:
        """Return the part of an array of the parameter's shape, in its memory; all of an array of a whole parameter."""
        if self.is_whole:
            return array
        return array.view((array.size,)).narrow(0, self.span[0], self.size)

    def take(self, layout: StateLayout, *, with_gradient: bool) -> None:
        """Give this rank the part, with states of zero, and a gradient of its own or the part of the parameter's."""
        variable = Variable(self.whole.variable.shape if self.is_whole else (self.size,))
        variable._need_grad = self.whole.variable._need_grad
        self.own = new_slot(variable, layout)
        self.own.settings = self.whole.settings
        self.gradient = NdArray(variable.shape) if with_gradient else None

    def is_current(self) -> bool:
        """Follow the parameter, and tell whether its arrays and flags are those of the last call."""
        own, whole = self.own, self.whole.variable
        assert own is not None
        arrays = (whole.storage.data, whole.storage.grad)
        known = self._arrays
        if known is None or known[0] is not arrays[0] or known[1] is not arrays[1]:
            self._arrays = arrays
            own.variable.data = self.part_of(arrays[0])
            own.variable.grad = self.part_of(arrays[1]) if self.gradient is None else self.gradient
            known = None
        is_same = own.t == self.whole.t and own.variable._need_grad is whole._need_grad and known is not None
        own.t = self.whole.t
        is_same = is_same and own.settings == self.whole.settings
        own.settings = self.whole.settings
        if own.variable._need_grad is not whole._need_grad:
            own.variable.need_grad = whole.need_grad
        return is_same


class Bucket:
    """Parameters whose values are sent together: `length` elements by each rank."""

    def __init__(self, pieces: list[Piece], length: int) -> None:
        self.pieces = pieces
        self.length = length

    @property
    def is_split(self) -> bool:
        """Whether several ranks have parts of one parameter."""
        return not all(piece.is_whole for piece in self.pieces)

    def starts(self) -> dict[Slot, int]:
        """Return where each parameter begins in the parts of all ranks, one after the other: it is in one piece there."""
        return {piece.whole: piece.rank * self.length + piece.place for piece in self.pieces if not piece.span[0]}


def bucketed(slots: Sequence[Slot], limit: float, size: int, *, by_whole: bool) -> Iterator[Bucket]:
    """Yield parameters in buckets, in order.

    Args:
        slots: The parameters.
        limit: Largest number of elements of a bucket, unless one parameter has more.
        size: Number of ranks.
        by_whole: Give each parameter to one rank.
    """
    totals = [0] * size
    group: list[Slot] = []
    n_elements = 0
    for slot in slots:
        is_alike = not group or sum_dtype_of(slot.variable) == sum_dtype_of(group[0].variable)
        if group and (n_elements + slot.variable.size > limit or not is_alike):
            yield by_parameter(group, totals) if by_whole else by_element(group, size)
            group, n_elements = [], 0
        group.append(slot)
        n_elements += slot.variable.size
    if group:
        yield by_parameter(group, totals) if by_whole else by_element(group, size)


def by_element(slots: list[Slot], size: int) -> Bucket:
    """Return the elements of all parameters in a row, of which each rank has as many."""
    places, end = [], 0
    for slot in slots:
        places.append(end)
        end += _aligned(slot.variable.size)
    length = _aligned(-(-end // size))
    pieces = []
    for slot, place in zip(slots, places, strict=True):
        for rank in range(place // length, size):
            first, last = max(rank * length, place), min((rank + 1) * length, place + slot.variable.size)
            if first >= last:
                break
            pieces.append(Piece(slot, (first - place, last - place), rank, first - rank * length))
    return Bucket(pieces, length)


def by_parameter(slots: list[Slot], totals: list[int]) -> Bucket:
    """Whole parameters, the largest first to the rank that has the least; `totals` are what ranks have of all buckets."""
    loads = [0] * len(totals)
    pieces = []
    for slot in sorted(slots, key=lambda slot: -slot.variable.size):
        rank = totals.index(min(totals))
        pieces.append(Piece(slot, (0, slot.variable.size), rank, loads[rank]))
        loads[rank] += _aligned(slot.variable.size)
        totals[rank] += _aligned(slot.variable.size)
    return Bucket(pieces, max(loads))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
