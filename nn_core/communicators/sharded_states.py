"""States of a solver that are divided among ranks, each of which updates its part of the parameters.

Reference: Rajbhandari and others (2020), ZeRO: memory optimizations toward training trillion parameter models, stages 1 and 2.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from nn_core.communicators.communicator import WORLD, Communicator
from nn_core.communicators.pieces import Bucket, Piece, bucketed
from nn_core.communicators.sharded_gradients import DividedGradients, GradientBucket, GradientSums
from nn_core.engine.arrays.synced import HOST
from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError, CommunicationError
from nn_core.solvers import Lamb, Lars
from nn_core.solvers.base import Solver
from nn_core.solvers.groups import Groups, divided
from nn_core.solvers.hooks import Hook
from nn_core.solvers.minimizing import SeveralPasses
from nn_core.solvers.states import Slot, StateLayout, kinds_of_states
from nn_core.solvers.wrapping import Wrapping
from nn_core.typing import Array

#: Solvers of nn_core whose steps depend on norms of whole parameters, beside those whose states have other shapes.
_BY_PARAMETER: Final = (Lars, Lamb)
_MB: Final = 1 << 20


class ShardedGroups:
    """The update of a solver, instead of `nn_core.solvers.groups.Groups`; see `shard_states`.

    Args:
        comm: The communicator.
        inner: The update of the parts of this rank.
        layout: The states of a parameter.
        by_parameter: Divide by whole parameters.
        bucket_mb: Largest size of what is sent at once.
        with_gradients: Divide the gradients as well.
    """

    def __init__(
        self,
        comm: Communicator,
        inner: Groups,
        layout: StateLayout,
        *,
        by_parameter: bool,
        bucket_mb: float,
        with_gradients: bool,
    ) -> None:
        self._comm = comm
        self._size = comm.size
        self._inner = inner
        self._layout = layout
        self._by_parameter = by_parameter
        self._dtype = inner.dtype
        self._limit = bucket_mb * _MB / np.dtype(inner.dtype).itemsize
        self._with_gradients = with_gradients
        self._slots: list[Slot] = []
        self.buckets: list[Bucket] = []
        self._own: list[Piece] = []
        #: the memory of the gradients, bucket by bucket, where they are divided
        self.gradients: list[GradientBucket] = []
        #: the parameters whose gradient some rank has written, where they are divided
        self.written: set[Slot] = set()
        #: counts of changes of the states in the solver since which they are in the parts
        self._given_up: dict[Slot, list[int]] = {}
        self._are_whole = True  # states of zero
        self.leaves_out_states = False

    # -- what a solver calls ---------------------------------------------------------------------------------------

    def guard(self, slots: Collection[Slot], guard: Array) -> bool:
        """Refuse: an update that a device may skip is decided on the host instead."""
        return False

    def run(self, slots: Collection[Slot]) -> bool:
        """Update the parts of this rank, and give all parameters to all ranks."""
        self.prepare(slots)
        chosen = self.chosen(slots)
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
        if not self._are_whole and not self.leaves_out_states:
            raise ArgumentError(
                "get_state: states that are divided among ranks must be gathered first, got none of the other ranks\n"
                "  hint: let all ranks call gather_states() of what shard_states() has returned"
            )

    # -- states ----------------------------------------------------------------------------------------------------

    def gather(self, slots: Collection[Slot], *, to_all: bool) -> None:
        """Bring the states of all ranks into the solver, of rank 0 or of all; all ranks call this."""
        self.prepare(slots)
        keeps = to_all or self._comm.rank == 0
        for bucket in self.buckets:
            for number in range(len(self._layout.state_names)):
                send = np.zeros(bucket.length, self._dtype)
                for piece in self._of_rank(bucket):
                    assert piece.own is not None
                    state = piece.own.member.states[number]
                    send[piece.place : piece.place + state.size] = state.read(HOST, self._dtype).ravel()
                received = self.gathered("gather_states", send)
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

    def prepare(self, slots: Collection[Slot]) -> None:
        """Divide the parameters, if they are others than before, and follow their arrays and flags.

        Raises:
            ArgumentError: when they are others after the first update.
            CommunicationError: when a rank was lost.
        """
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
        self.follow()

    def follow(self) -> None:
        """Follow the arrays and flags of the parameters."""
        are_current = [piece.is_current() for piece in self._own]
        if not all(are_current):
            self._inner.unbind()

    def chosen(self, slots: Collection[Slot]) -> list[Slot]:
        """Return the parameters to change: those with a gradient that are not frozen."""
        if not self._with_gradients:
            return divided(slots)[0]
        return [slot for slot in slots if slot in self.written and not slot.is_frozen]

    def own_pieces(self) -> list[Piece]:
        """Return the pieces of this rank."""
        return self._own

    def own_parts(self, slots: Collection[Slot]) -> list[Slot]:
        """Return the parts of some parameters that this rank has."""
        given = set(slots)
        return [piece.own for piece in self._own if piece.own is not None and piece.whole in given]

    def _divide(self, slots: list[Slot]) -> None:
        """Divide the parameters anew, before the first update or when the states are in the solver."""
        lost = [slot for slot in self._slots if slot in slots and slot.t and not self._are_whole]
        if lost:
            raise ArgumentError(
                "set_parameters: the parameters of divided states must stay the same after the first update, got others\n"
                "  hint: gather_states(to_all=True) before them"
            )
        self._slots, self._given_up = slots, {}
        self.buckets = list(bucketed(slots, self._limit, self._size, by_whole=self._by_parameter))
        self._own = [piece for bucket in self.buckets for piece in self._of_rank(bucket)]
        for piece in self._own:
            piece.take(self._layout, with_gradient=self._with_gradients)
        if self._with_gradients:
            self.gradients = [GradientBucket(bucket, self._size) for bucket in self.buckets]
            self.written = set()
        self._inner.unbind()

    def _of_rank(self, bucket: Bucket) -> list[Piece]:
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
        for bucket in self.buckets if self._size > 1 else ():
            if not any(piece.whole in chosen for piece in bucket.pieces):
                continue
            send = np.zeros(bucket.length, self._dtype)
            for piece in self._of_rank(bucket):
                assert piece.own is not None
                send[piece.place : piece.place + piece.size] = piece.own.member.param.read(HOST, self._dtype).ravel()
            received = self.gathered("update", send)
            for piece in bucket.pieces:
                if piece.rank != self._comm.rank and piece.whole in chosen:
                    values = received[piece.rank, piece.place : piece.place + piece.size]
                    part = piece.part_of(piece.whole.member.param)
                    part.readwrite(HOST, self._dtype)[...] = values.reshape(part.shape)

    def gathered(self, call: str, send: Array) -> Array:
        """Return what all ranks send, a row each."""
        circle = self._comm.circle(call, WORLD)
        received = np.empty((self._size, send.size), send.dtype)
        circle.agree(call, f"{send.size} of {send.dtype}")
        circle.run("all_gather", send.view(np.uint8), received.reshape(-1).view(np.uint8))
        return received


class StateShards:
    """The states of a solver that are divided among ranks; made by `shard_states`.

    Args:
        comm: The communicator.
        solver: The solver.
        groups: Its update.
        with_gradients: Whether the gradients are divided, too.
    """

    @fitted
    def __init__(self, comm: Communicator, solver: Solver, groups: ShardedGroups, *, with_gradients: bool) -> None:
        self.solver = solver
        self.with_gradients = with_gradients
        self._groups = groups
        self._sums = {division: GradientSums(comm, [self], division=division) for division in (False, True)}

    def gather_states(self, to_all: bool = False) -> None:
        """Bring the states of all ranks into the solver of rank 0, which may save them then; all ranks call this.

        Args:
            to_all: Bring them to all ranks.
        """
        self._groups.gather(self.solver._slots.values(), to_all=to_all)

    def drop_states(self) -> None:
        """Give up what `gather_states` has brought; the next update does it, too, when states were set."""
        self._groups.drop()

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Leave the arrays out of the state of the solver in a ``with`` block: each rank saves those of its ``pieces()``."""
        self._groups.leaves_out_states = True
        try:
            yield
        finally:
            self._groups.leaves_out_states = False

    def pieces(self) -> list[Piece]:
        """Return the parts of parameters that this rank has, with their states."""
        return self.divided().own_pieces()

    def callback(self, division: bool = False) -> GradientSums:
        """Return the callback for ``backward(communicator_callbacks=...)``, which adds each gradient up when it is complete.

        Each rank keeps the sums of its part, and gives up the memory of the gradients that were sent. Afterwards the gradients
        of the parameters are zero, and ``solver.update()`` and the methods of `solver` that change or check gradients work on
        the sums. Inside ``comm.no_sync()`` nothing is sent.

        Args:
            division: Give the mean in place of the sum.

        Raises:
            ArgumentError: when the gradients are not divided.
        """
        if not self.with_gradients:
            raise ArgumentError(
                "callback: the gradients must be divided, got states alone\n  hint: shard_states(comm, solver, gradients=True)"
            )
        return self._sums[bool(division)]

    def reduce_scatter(self, division: bool = False) -> None:
        """Add the gradients up after a backward pass without `callback`; all ranks call this.

        Args:
            division: Give the mean in place of the sum.
        """
        sums = self.callback(division)
        sums.begin_backward()
        sums.on_finish_backward()

    def divided(self) -> ShardedGroups:
        """Return the update, ready for the parameters that the solver has now."""
        self._groups.prepare(self.solver._slots.values())
        return self._groups


@fitted
def shard_states(
    comm: Communicator,
    solver: Solver,
    *,
    gradients: bool = False,
    by_parameter: bool | None = None,
    bucket_mb: float = 25,
) -> StateShards:
    """Divide the states of a solver among the ranks: each keeps and updates a part of the parameters (ZeRO, stages 1 and 2).

    Gradients must be the same on all ranks when ``solver.update()`` is called, which all ranks do; it updates the part of
    this rank and gives the parameters to all ranks. The result has the bits of an update without this. Numbers, clipping,
    decay and checks of gradients are those of `solver`. Before its states are read, all ranks call ``gather_states()``; they
    are those of an undivided solver, so that any number of ranks loads them: ``set_state`` and ``load_states`` are called on
    all ranks before the first update, or after ``gather_states(to_all=True)``.

    With `gradients`, each rank keeps the sums of the gradients of its part as well: ``backward`` gets the ``callback()`` of
    what is returned, or ``reduce_scatter()`` is called after it, in place of ``comm.all_reduce``. What clips or checks
    gradients is called by all ranks then.

    Args:
        comm: The communicator, initialized.
        solver: The solver, before its first update.
        gradients: Divide the gradients as well (stage 2).
        by_parameter: Divide by whole parameters, for rules that depend on the norm or the shape of a parameter. None: for
            Lars, Lamb, Adafactor, Muon, the schedule-free ones, and solvers that nn_core does not have; others are divided
            by elements, evenly.
        bucket_mb: Largest size of what is sent at once, unless one parameter is larger.

    Returns:
        The shards: ``gather_states()`` and ``drop_states()``; ``callback()`` and ``reduce_scatter()`` for `gradients`.

    Raises:
        ArgumentError: when `bucket_mb` is not positive, the states are divided already, or have other shapes than the
            parameters and `by_parameter` is False; when gradients are divided and sent in another dtype (`wire_dtype`).

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
    if gradients and comm.wire_dtype is not None:
        raise ArgumentError(f"shard_states: the communicator must have no wire_dtype with gradients, got {comm.wire_dtype!r}")
    inner = solver._groups
    if not isinstance(inner, Groups):
        raise ArgumentError("shard_states: the states of a solver must be divided once, got one whose states are")
    if by_parameter is None:
        by_parameter = _is_of_whole_parameters(solver)
    elif not by_parameter and _has_other_shapes(solver):
        raise ArgumentError(f"shard_states: by_parameter must be True or None for {solver.name}, got {by_parameter!r}")
    groups = ShardedGroups(comm, inner, solver, by_parameter=by_parameter, bucket_mb=bucket_mb, with_gradients=bool(gradients))
    solver._groups = groups  # type: ignore[assignment]  # what it lacks is called after guard() has agreed
    if gradients:
        solver._gradients = DividedGradients(comm, groups, solver._gradients)  # type: ignore[assignment]  # the same methods
    shards = StateShards(comm, solver, groups, with_gradients=bool(gradients))
    shards.divided()
    return shards


def _has_other_shapes(solver: Solver) -> bool:
    return set(kinds_of_states(solver)) - {"whole"} != set()


def _is_of_whole_parameters(solver: Solver) -> bool:
    if isinstance(solver, Wrapping):
        return _is_of_whole_parameters(solver.inner)
    is_ours = type(solver).__module__.startswith("nn_core.solvers.")
    return not is_ours or isinstance(solver, _BY_PARAMETER) or _has_other_shapes(solver)


def _changes(slot: Slot) -> list[int]:
    return [array.modification_count for array in slot.member.states]
