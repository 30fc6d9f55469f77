"""Processes that outlive others: Open MPI's ULFM, which ``mpiexec --with-ft ulfm`` switches on.

Reference: W. Bland and others (2013), Post-failure recovery of MPI communication capability, International Journal of High
Performance Computing Applications 27(3).
"""

import atexit
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nn_core.errors import LostRankError

if TYPE_CHECKING:
    from mpi4py import MPI

#: Set by mpiexec --with-ft ulfm.
_SWITCH = "OMPI_MCA_mpi_ft_enable"


def is_tolerant(comm: "MPI.Comm") -> bool:
    """Whether the library tells of lost processes and the job was started so that the others live on."""
    return os.environ.get(_SWITCH, "0") in ("1", "true") and hasattr(comm, "Shrink")


class Watched:
    """A communicator or a request of mpi4py whose calls raise `LostRankError` when a process was lost.

    The communicator is revoked then, so that calls of other processes that wait for this one fail too.

    Args:
        target: The object.
        comm: The communicator that it belongs to.
    """

    def __init__(self, target: Any, comm: "MPI.Comm") -> None:
        self.target = target
        self._comm = comm

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from mpi4py import MPI

        method = getattr(self.target, name)

        def call(*args: Any) -> Any:
            try:
                result = method(*args)
            except MPI.Exception as error:
                if error.Get_error_class() not in (MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED_PENDING, MPI.ERR_REVOKED):
                    raise
                self._comm.Revoke()
                raise LostRankError(f"{name}: every process must live, got: {error}") from error
            return Watched(result, self._comm) if isinstance(result, MPI.Request) else result

        return call


def finalize_at_exit(engine: Any) -> None:
    """End MPI with the process, unless a process was lost: then MPI_Finalize of Open MPI 5.0 sometimes never returns.

    Args:
        engine: The engine of all processes; `latest` of it is the one after the last loss.
    """
    from mpi4py import MPI

    def leave() -> None:
        if MPI.Is_finalized():
            return
        if engine.latest is engine:
            MPI.Finalize()
        else:
            engine.latest.agree(True)  # so that none leaves while others still need it

    atexit.register(leave)


def agree(comm: "MPI.Comm", flag: bool) -> bool:
    """Whether all processes have given True and all live; the same answer on all of them."""
    from mpi4py import MPI

    try:
        return bool(comm.Agree(int(flag)))
    except MPI.Exception as error:  # on all of them, where a loss is new to one
        if error.Get_error_class() != MPI.ERR_PROC_FAILED:
            raise
        return False
