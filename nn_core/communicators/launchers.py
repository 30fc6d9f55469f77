"""The launcher that has started this process, as far as the environment tells."""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from nn_core.errors import ArgumentError, quoted

#: The variable with a secret of a job, by which processes that meet at an address prove that they belong to it.
JOB_TOKEN: Final = "NN_CORE_JOB_TOKEN"


class Launch(NamedTuple):
    """The place of this process among those that a launcher has started.

    Attributes:
        launcher: Name for messages.
        rank: Number of the process.
        size: Number of processes.
        local_rank: Number of lower ranks on the same machine; None when the launcher does not say.
    """

    launcher: str
    rank: int
    size: int
    local_rank: int | None


#: Variables that say size, rank and local rank. Slurm's are set in batch scripts too, except the number of tasks of a step.
#: WORLD_SIZE is set by torchrun, and in the pods of Kubernetes' training jobs.
_LAUNCHERS: Final = (
    ("Open MPI's mpiexec", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MPICH's or Intel MPI's mpiexec", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"),
    ("Slurm's srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"),
    ("a launcher that sets WORLD_SIZE", "WORLD_SIZE", "RANK", "LOCAL_RANK"),
)
#: Variables that tell who sets WORLD_SIZE.
_SETTERS: Final = {"TORCHELASTIC_RUN_ID": "torchrun", "KUBERNETES_SERVICE_HOST": "Kubernetes"}


#: Digits of a number of processes; Python refuses to read thousands.
_MOST_DIGITS: Final = 9
#: Number of ranks of the largest world that this process has joined: threads, or a launcher that says nothing.
_LARGEST: Final = [1]


def joined(size: int) -> None:
    """Note that this process belongs to a world of `size` ranks."""
    _LARGEST[0] = max(_LARGEST[0], size)


def count_ranks() -> int:
    """Return number of ranks of this program, by its launcher and its communicators; 1 when it runs alone."""
    launch = find_launch()
    return max(_LARGEST[0], 1 if launch is None else launch.size)


def find_launch(environment: Mapping[str, str] | None = None) -> Launch | None:
    """Return the launcher that the environment describes; None when the process was started alone.

    Raises:
        ArgumentError: when a variable of a launcher is no number, or the rank is not below the size.
    """
    environment = os.environ if environment is None else environment
    for name, size, rank, local_rank in _LAUNCHERS:
        if environment.get(rank) and environment.get(size):
            launcher = _setter(environment) or name if size == "WORLD_SIZE" else name
            found = [_number(environment, variable) for variable in (rank, size)]
            if found[0] is None or found[1] is None or found[0] >= found[1]:
                raise ArgumentError(
                    f"{launcher}: {rank} must be an integer from 0 to {size} - 1, got {found[0]} of {found[1]}\n"
                    f"  hint: unset {size} if this process is alone"
                )
            return Launch(launcher, found[0], found[1], _number(environment, local_rank))
    return None


def _number(environment: Mapping[str, str], name: str) -> int | None:
    """Return the number that a variable holds; None when it is not set, or -1."""
    text = environment.get(name, "")
    if text not in ("", "-1") and not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise ArgumentError(f"{name}: must be an integer of at least 0, as launchers set it, got {quoted(text)}")
    return int(text) if text not in ("", "-1") else None


def _setter(environment: Mapping[str, str]) -> str:
    return next((name for variable, name in _SETTERS.items() if variable in environment), "")
