"""The engine's side of data-parallel training: eight calls on raw arrays, and the engine of one process."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from nn_core.typing import Array

#: The reductions that every engine offers.
OPS = ("sum", "max")


class Handle(Protocol):
    """A collective that was started."""

    def done(self) -> bool:
        """Return whether it is over, without waiting."""
        ...

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until it is over, at most `timeout_s` seconds (None: for ever); returns whether it is."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A library that moves numbers between processes.

    Every call is made by all ranks in the same order. Arrays are C-contiguous NumPy arrays of one dtype and size on all
    ranks. A call returns None when it is over, or a `Handle`; until that is done the arrays belong to the engine. An
    engine whose calls block before all ranks have arrived cannot be given a time limit: `all_reduce` of an array of at
    most 64 bytes, which starts every collective of a communicator, should return a handle.

    An engine that goes on with what it has started while the program computes has ``overlaps``, which is True. It gets
    gradients during the backward pass, see `Buckets.callback`, and should return handles.

    An engine may have ``ticket``, an array of eight int64, and ``start_ticket()``, which starts the maximum of its elements
    over all ranks like `all_reduce`, in less time; the group of its ranks begins collectives with it then.

    An engine between devices may have ``device_step(array, divisor, before)``: a runner, for the backend of the array, that
    adds `array` up over all ranks, in place, and divides it, in the order of what is launched on the device. It calls
    `before` on the host each time, also where a recorded launch is repeated. `Buckets` on a device are made of such steps.

    An engine may also have ``abort(status)``, which ends all processes, and ``post(text)`` and ``posts()``, a notice
    board: the last text of each rank that has posted one, by rank. They serve messages about ranks that are missing.

    An engine that outlives its ranks has ``is_tolerant``, which is True. Its collectives raise `LostRankError` on some or
    all ranks when one has died; ``agree(flag)`` is True on all ranks that live, or on none of them: when all of them gave
    True and none has died; ``shrink()`` is the engine of those that live, in the same order. Both work after a loss. If it
    can start processes in place of lost ones, ``n_missing`` is their number, and ``grow(n)`` the engine with `n` more, whose
    ranks follow the others. In the new processes it is made with ``joins_late``, which is True.

    Attributes:
        rank: Number of this process, from 0.
        size: Number of processes.
        local_rank: Number of lower ranks on the same machine.
        hosts: Names of the machines by rank, for messages.
    """

    rank: int
    size: int
    local_rank: int
    hosts: Sequence[str]

    def all_reduce(self, array: Array, op: str = "sum") -> Handle | None:
        """Replace `array` by the sum, or the maximum, over all ranks."""
        ...

    def broadcast(self, array: Array, src: int) -> Handle | None:
        """Replace `array` by that of rank `src`."""
        ...

    def reduce(self, array: Array, dst: int, op: str = "sum") -> Handle | None:
        """Like `all_reduce`, for rank `dst` only; the arrays of the others are left as they are."""
        ...

    def all_gather(self, send: Array, receive: Array) -> Handle | None:
        """Write the arrays `send` of all ranks into `receive`, one after the other by rank."""
        ...

    def reduce_scatter(self, send: Array, receive: Array, op: str = "sum") -> Handle | None:
        """Write the part of the reduced `send` that belongs to this rank into `receive`; parts have one size."""
        ...

    def all_to_all(self, send: Array, receive: Array) -> Handle | None:
        """Send part r of `send` to rank r, and write what rank r sends into part r of `receive`."""
        ...

    def barrier(self) -> Handle | None:
        """Be done when every rank has called this."""
        ...

    def split(self, ranks: Sequence[int]) -> "Engine | None":
        """Return the engine of some ranks, numbered in the order given; None for ranks outside. All ranks call this."""
        ...


class AloneEngine:
    """The engine of one process: sums are what it has."""

    rank = 0
    size = 1
    local_rank = 0

    def __init__(self) -> None:
        self.hosts: Sequence[str] = ("localhost",)

    def all_reduce(self, array: Array, op: str = "sum") -> None:
        """Leave the array as it is."""

    def broadcast(self, array: Array, src: int) -> None:
        """Leave the array as it is."""

    def reduce(self, array: Array, dst: int, op: str = "sum") -> None:
        """Leave the array as it is."""

    def all_gather(self, send: Array, receive: Array) -> None:
        """Copy."""
        np.copyto(receive.reshape(-1), send.reshape(-1))

    def reduce_scatter(self, send: Array, receive: Array, op: str = "sum") -> None:
        """Copy."""
        np.copyto(receive.reshape(-1), send.reshape(-1))

    def all_to_all(self, send: Array, receive: Array) -> None:
        """Copy."""
        np.copyto(receive.reshape(-1), send.reshape(-1))

    def barrier(self) -> None:
        """Return."""

    def split(self, ranks: Sequence[int]) -> "AloneEngine | None":
        """Another engine of one process."""
        return AloneEngine() if list(ranks) == [0] else None
