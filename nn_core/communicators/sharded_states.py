"""States of a solver that are divided among ranks, each of which updates its part of the parameters.

Reference: Rajbhandari and others (2020), ZeRO: memory optimizations toward training trillion parameter models, stage 1.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np

from nn_core.communicators.communicator import WORLD, Communicator
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST
from nn_core.errors import ArgumentError, CommunicationError
from nn_core.solvers import Lamb, Lars
from nn_core.solvers.base import Solver
from nn_core.solvers.groups import Groups, divided
from nn_core.solvers.hooks import Hook
from nn_core.solvers.minimizing import SeveralPasses
from nn_core.solvers.states import Slot, StateLayout, kinds_of_states, new_slot
from nn_core.solvers.wrapping import Wrapping
from nn_core.typing import Array
from nn_core.variable import Variable

#: Solvers of nn_core whose steps depend on norms of whole parameters, beside those whose states have other shapes.
_BY_PARAMETER: Final = (Lars, Lamb)
#: Parts of parameters begin at multiples of it, as vectors of kernels do, so that their ends are those of the whole.
_ALIGNMENT: Final = 16
_MB: Final = 1 << 20


class _Piece:
    """A part of a parameter that one rank updates.

    Attributes:
        whole: The parameter in the solver.
        span: First element and the one after the last, of the parameter in C order.
        rank: The rank.
        place: The first element in what the rank sends.
        own: The parameter, gradient and states of the part, on that rank.
    """

    def __init__(self, whole: Slot, span: tuple[int, int], rank: int, place: int) -> None:
        self.whole = whole
        self.span = span
        self.rank = rank
        self.place = place
        self.own: Slot | None = None
        self._arrays: tuple[NdArray, NdArray] | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.span[1] - self.span[0]

    @property
    def is_whole(self) -> bool:
        """Whether the part is the whole parameter, which keeps its shape."""
        return self.size == self.whole.variable.size

    def part_of(self, array: NdArray) -> NdArray:
        """Return the part of an array of the parameter's shape, in its memory; all of an array of a whole parameter."""
        if self.is_whole:
            return array
        return array.view((array.size,)).narrow(0, self.span[0], self.size)

    def take(self, layout: StateLayout) -> None:
        """Give this rank the part, with states of zero."""
        variable = Variable(self.whole.variable.shape if self.is_whole else (self.size,))
        variable._need_grad = self.whole.variable._need_grad
        self.own = new_slot(variable, layout)
        self.own.settings = self.whole.settings

    def is_current(self) -> bool:
        """Follow the parameter, and tell whether its arrays and flags are those of the last call."""
        own, whole = self.own, self.whole.variable
        assert own is not None
        arrays = (whole.storage.data, whole.storage.grad)
        known = self._arrays
        if known is None or known[0] is not arrays[0] or known[1] is not arrays[1]:
            self._arrays = arrays
            own.variable.data, own.variable.grad = map(self.part_of, arrays)
            known = None
        is_same = own.t == self.whole.t and own.variable._need_grad is whole._need_grad and known is not None
        own.t = self.whole.t
        is_same = is_same and own.settings == self.whole.settings
        own.settings = self.whole.settings
        if own.variable._need_grad is not whole._need_grad:
            own.variable.need_grad = whole.need_grad
        return is_same


class _Bucket:
    """Parameters whose values are sent together: `length` elements by each rank."""

    def __init__(self, pieces: list[_Piece], length: int) -> None:
        self.pieces = pieces
        self.length = length


class ShardedGroups:
    """The update of a solver, instead of `nn_core.solvers.groups.Groups`; see `shard_states`.

    Args:
        comm: The communicator.
        inner: The update of the parts of this rank.
        layout: The states of a parameter.
        by_parameter: Divide by whole parameters.
        bucket_mb: Largest size of what is sent at once.
    """

    def __init__(
        self, comm: Communicator, inner: Groups, layout: StateLayout, *, by_parameter: bool, bucket_mb: float
    ) -> None:
        self._comm = comm
        self._size = comm.size
        self._inner = inner
        self._layout = layout
        self._by_parameter = by_parameter
        self._bucket_bytes = bucket_mb * _MB
        self._dtype = inner.dtype
        self._slots: list[Slot] = []
        self._buckets: list[_Bucket] = []
        self._own: list[_Piece] = []
        #: counts of changes of the states in the solver since which they are in the parts
        self._given_up: dict[Slot, list[int]] = {}
        self._are_whole = True  # states of zero

    # -- what a solver calls ---------------------------------------------------------------------------------------

    def guard(self, slots: Collection[Slot], guard: Array) -> bool:
        """Refuse: an update that a device may skip is decided on the host instead."""
        return False

    def run(self, slots: Collection[Slot]) -> bool:
        """Update the parts of this rank, and give all parameters to all ranks."""
        self._prepare(slots)
        chosen = divided(slots)[0]
        self._are_whole = False
        if self._own:
            self._inner.run([piece.own for piece in self._own if piece.own is not None])
        for slot in chosen:
            slot.t += 1
        self._spread(set(chosen))
        return bool(chosen)

    def run_observed(self, slots: Collection[Slot], before: Sequence[Hook], after: Sequence[Hook]) -> None:
        """Refuse hooks between parameters.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError("update: there must be no hooks where the states are divided among ranks, got some")

    def set_number(self, index: int, value: float) -> None:
        """Change one of the numbers."""
        self._inner.set_number(index, value)

    def unbind(self) -> None:
        """Bind anew at the next run."""
        self._inner.unbind()

    def require_states(self) -> None:
        """Refuse to read states that are divided.

        Raises:
            ArgumentError: unless `gather` was called since the last update.
        """
        if not self._are_whole:
            raise ArgumentError(
                "get_state: states that are divided among ranks must be gathered first, got none of the other ranks\n"
                "  hint: let all ranks call gather_states() of what shard_states() has returned"
            )

    # -- states ----------------------------------------------------------------------------------------------------

    def gather(self, slots: Collection[Slot], *, to_all: bool) -> None:
        """Bring the states of all ranks into the solver, of rank 0 or of all; all ranks call this."""
        self._prepare(slots)
        keeps = to_all or self._comm.rank == 0
        for bucket in self._buckets:
            for number in range(len(self._layout.state_names)):
                send = np.zeros(bucket.length, self._dtype)
                for piece in self._of_rank(bucket):
                    assert piece.own is not None
                    state = piece.own.member.states[number]
                    send[piece.place : piece.place + state.size] = state.read(HOST, self._dtype).ravel()
                received = self._gathered("gather_states", send)
                for piece in bucket.pieces if keeps else ():
                    state = piece.part_of(piece.whole.member.states[number])
                    values = received[piece.rank, piece.place : piece.place + state.size]
                    state.readwrite(HOST, self._dtype)[...] = values.reshape(state.shape)
        self._are_whole = keeps
        if keeps:
            self._given_up = {slot: _changes(slot) for slot in slots}

    def drop(self) -> None:
        """Give up the states in the solver, which are still in the parts."""
        self._are_whole = False
        for slot in self._slots:
            self._clear(slot)

    def _clear(self, slot: Slot) -> None:
        for array in slot.member.states:
            array.clear()
            array.zero()
        self._given_up[slot] = _changes(slot)

    # -- layout ----------------------------------------------------------------------------------------------------

    def _prepare(self, slots: Collection[Slot]) -> None:
        if self._comm.size != self._size:
            raise CommunicationError(
                f"update: the ranks that have the states must live, got {self._comm.size} of {self._size}\n"
                "  hint: start again from a checkpoint, which any number of ranks loads"
            )
        if list(slots) != self._slots:
            self._divide(list(slots))
        for slot in self._slots:
            if self._given_up.get(slot) != _changes(slot):
                self._take_states(slot)
        are_current = [piece.is_current() for piece in self._own]
        if not all(are_current):
            self._inner.unbind()

    def _divide(self, slots: list[Slot]) -> None:
        """Divide the parameters anew, before the first update or when the states are in the solver."""
        lost = [slot for slot in self._slots if slot in slots and slot.t and not self._are_whole]
        if lost:
            raise ArgumentError(
                "set_parameters: the parameters of divided states must stay the same after the first update, got others\n"
                "  hint: gather_states(to_all=True) before them"
            )
        self._slots, self._given_up = slots, {}
        self._buckets = list(self._bucketed(slots))
        self._own = [piece for bucket in self._buckets for piece in self._of_rank(bucket)]
        for piece in self._own:
            piece.take(self._layout)
        self._inner.unbind()

    def _bucketed(self, slots: list[Slot]) -> Iterator[_Bucket]:
        group: list[Slot] = []
        n_bytes = 0
        for slot in slots:
            own = slot.variable.size * np.dtype(self._dtype).itemsize
            if group and n_bytes + own > self._bucket_bytes:
                yield self._bucket(group)
                group, n_bytes = [], 0
            group.append(slot)
            n_bytes += own
        if group:
            yield self._bucket(group)

    def _bucket(self, slots: list[Slot]) -> _Bucket:
        return _by_parameter(slots, self._size) if self._by_parameter else _by_element(slots, self._size)

    def _of_rank(self, bucket: _Bucket) -> list[_Piece]:
        return [piece for piece in bucket.pieces if piece.rank == self._comm.rank]

    def _take_states(self, slot: Slot) -> None:
        """Bring states that were set in the solver into the parts, and give up the memory there."""
        for piece in self._own:
            if piece.whole is slot and piece.own is not None:
                for source, target in zip(slot.member.states, piece.own.member.states, strict=True):
                    target.write(HOST, self._dtype)[...] = piece.part_of(source).read(HOST, self._dtype)
        self._clear(slot)

    # -- communication ---------------------------------------------------------------------------------------------

    def _spread(self, chosen: set[Slot]) -> None:
        for bucket in self._buckets if self._size > 1 else ():
            if not any(piece.whole in chosen for piece in bucket.pieces):
                continue
            send = np.zeros(bucket.length, self._dtype)
            for piece in self._of_rank(bucket):
                assert piece.own is not None
                send[piece.place : piece.place + piece.size] = piece.own.member.param.read(HOST, self._dtype).ravel()
            received = self._gathered("update", send)
            for piece in bucket.pieces:
                if piece.rank != self._comm.rank and piece.whole in chosen:
                    values = received[piece.rank, piece.place : piece.place + piece.size]
                    part = piece.part_of(piece.whole.member.param)
                    part.readwrite(HOST, self._dtype)[...] = values.reshape(part.shape)

    def _gathered(self, call: str, send: Array) -> Array:
        circle = self._comm.circle(call, WORLD)
        received = np.empty((self._size, send.size), send.dtype)
        circle.agree(call, f"{send.size} of {send.dtype}")
        circle.run("all_gather", send.view(np.uint8), received.reshape(-1).view(np.uint8))
        return received


class StateShards:
    """The states of a solver that are divided among ranks; made by `shard_states`.

    Args:
        solver: The solver.
        groups: Its update.
    """

    def __init__(self, solver: Solver, groups: ShardedGroups) -> None:
        self.solver = solver
        self._groups = groups

    def gather_states(self, to_all: bool = False) -> None:
        """Bring the states of all ranks into the solver of rank 0, which may save them then; all ranks call this.

        Args:
            to_all: Bring them to all ranks.
        """
        self._groups.gather(self.solver._slots.values(), to_all=to_all)

    def drop_states(self) -> None:
        """Give up what `gather_states` has brought; the next update does it, too, when states were set."""
        self._groups.drop()


def shard_states(
    comm: Communicator, solver: Solver, *, by_parameter: bool | None = None, bucket_mb: float = 25
) -> StateShards:
    """Divide the states of a solver among the ranks: each keeps and updates a part of the parameters (ZeRO, stage 1).

    Gradients must be the same on all ranks when ``solver.update()`` is called, which all ranks do; it updates the part of
    this rank and gives the parameters to all ranks. The result has the bits of an update without this. Numbers, clipping,
    decay and checks of gradients are those of `solver`. Before its states are read, all ranks call ``gather_states()``; they
    are those of an undivided solver, so that any number of ranks loads them: ``set_state`` and ``load_states`` are called on
    all ranks before the first update, or after ``gather_states(to_all=True)``.

    Args:
        comm: The communicator, initialized.
        solver: The solver, before its first update.
        by_parameter: Divide by whole parameters, for rules that depend on the norm or the shape of a parameter. None: for
            Lars, Lamb, Adafactor, Muon, the schedule-free ones, and solvers that nn_core does not have; others are divided
            by elements, evenly.
        bucket_mb: Largest size of what is sent at once, unless one parameter is larger.

    Returns:
        The shards, with ``gather_states()`` and ``drop_states()``.

    Raises:
        ArgumentError: when `bucket_mb` is not positive, the states are divided already, or have other shapes than the
            parameters and `by_parameter` is False.

    Example:
        >>> from nn_core.communicators import LocalCommunicator, shard_states
        >>> def program(comm):
        ...     w = nn.Variable.from_numpy_array(np.zeros(64), need_grad=True)
        ...     solver = S.Adam(0.5)
        ...     solver.set_parameters({"w": w})
        ...     shards = shard_states(comm, solver)
        ...     w.g = 1
        ...     solver.update()
        ...     return w.d.round(3)[[0, 63]].tolist()
        >>> LocalCommunicator.run(2, program)
        [[-0.5, -0.5], [-0.5, -0.5]]
    """
    if bucket_mb <= 0:
        raise ArgumentError(f"shard_states: bucket_mb must be positive, got {bucket_mb}")
    if isinstance(solver, SeveralPasses):
        raise ArgumentError(f"shard_states: solver must update by gradients of one pass, got {solver.name}")
    inner = solver._groups
    if not isinstance(inner, Groups):
        raise ArgumentError("shard_states: the states of a solver must be divided once, got one whose states are")
    if by_parameter is None:
        by_parameter = _is_of_whole_parameters(solver)
    elif not by_parameter and _has_other_shapes(solver):
        raise ArgumentError(f"shard_states: by_parameter must be True or None for {solver.name}, got {by_parameter!r}")
    groups = ShardedGroups(comm, inner, solver, by_parameter=by_parameter, bucket_mb=bucket_mb)
    solver._groups = groups  # type: ignore[assignment]  # what it lacks is called after guard() has agreed
    return StateShards(solver, groups)


def _has_other_shapes(solver: Solver) -> bool:
    return set(kinds_of_states(solver)) - {"whole"} != set()


def _is_of_whole_parameters(solver: Solver) -> bool:
    if isinstance(solver, Wrapping):
        return _is_of_whole_parameters(solver.inner)
    is_ours = type(solver).__module__.startswith("nn_core.solvers.")
    return not is_ours or isinstance(solver, _BY_PARAMETER) or _has_other_shapes(solver)


def _by_element(slots: list[Slot], size: int) -> _Bucket:
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
            pieces.append(_Piece(slot, (first - place, last - place), rank, first - rank * length))
    return _Bucket(pieces, length)


def _by_parameter(slots: list[Slot], size: int) -> _Bucket:
    """Whole parameters, the largest first to the rank that has the least."""
    loads = [0] * size
    pieces = []
    for slot in sorted(slots, key=lambda slot: -slot.variable.size):
        rank = loads.index(min(loads))
        pieces.append(_Piece(slot, (0, slot.variable.size), rank, loads[rank]))
        loads[rank] += _aligned(slot.variable.size)
    return _Bucket(pieces, max(loads))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _changes(slot: Slot) -> list[int]:
    return [array.modification_count for array in slot.member.states]
