"""Processes that outlive others: Open MPI's ULFM, which ``mpiexec --with-ft ulfm`` switches on.

Reference: W. Bland and others (2013), Post-failure recovery of MPI communication capability, International Journal of High
Performance Computing Applications 27(3).
"""

import atexit
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nn_core.errors import LostRankError
from nn_core.ext import ArgumentError, quoted, repeated_command

if TYPE_CHECKING:
    from mpi4py import MPI

#: Set by mpiexec --with-ft ulfm.
_SWITCH = "OMPI_MCA_mpi_ft_enable"
#: Set to 1 by nn-core launch --elastic --replace.
REPLACE: Final = "NN_CORE_MPI_REPLACE"


def is_tolerant(comm: "MPI.Comm") -> bool:
    """Return whether the library tells of lost processes and the job was started so that the others live on."""
    return os.environ.get(_SWITCH, "0") in ("1", "true") and hasattr(comm, "Shrink")


def replaces_lost() -> bool:
    """Return whether processes are to be started in place of lost ones.

    Raises:
        ArgumentError: when the variable is neither 0 nor 1.
    """
    text = os.environ.get(REPLACE, "")
    if text not in ("", "0", "1"):
        raise ArgumentError(f"{REPLACE}: must be 0 or 1, got {quoted(text)}")
    return text == "1"


def with_more(comm: "MPI.Intracomm", n_processes: int) -> "MPI.Intracomm":
    """Return the processes of `comm`, and new ones, which run the same command and get an engine by `Get_parent`."""
    from mpi4py import MPI

    # Each of them is alone in a world of its own, where a communicator would need no engine.
    arguments = ["NN_CORE_COMMUNICATOR=mpi", *repeated_command()]
    info = MPI.Info.Create({"wdir": str(Path.cwd())})
    both = comm.Spawn("env", arguments, n_processes, info, 0)
    return both.Merge(False)


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
        if engine.latest is engine and not engine.joins_late:
            MPI.Finalize()
            return
        engine.latest.agree(True)  # so that none leaves while others still need it
        if engine.joins_late:
            _sign_off()

    atexit.register(leave)


def _sign_off() -> None:
    """Tell mpiexec that this process ends well, which it expects of those that were started later.

    MPI_Finalize would, and waits for the lost processes. PMIx is the protocol between Open MPI and its mpiexec.
    """
    paths = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libpmix" in line]
    if not paths:
        return
    library = ctypes.CDLL(paths[0])
    while library.PMIx_Initialized():
        if library.PMIx_Finalize(None, 0):
            return


def agree(comm: "MPI.Comm", flag: bool) -> bool:
    """Return whether all processes have given True and all live; the same answer on all of them."""
    from mpi4py import MPI

    try:
        return bool(comm.Agree(int(flag)))
    except MPI.Exception as error:  # on all of them, where a loss is new to one
        if error.Get_error_class() != MPI.ERR_PROC_FAILED:
            raise
        return False
