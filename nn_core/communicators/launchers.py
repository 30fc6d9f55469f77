"""The launcher that has started this process, as far as the environment tells."""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

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
    """Return the launcher that the environment describes; None when the process was started alone."""
    environment = os.environ if environment is None else environment
    for name, size, rank, local_rank in _LAUNCHERS:
        numbers = [environment.get(variable, "") for variable in (rank, size, local_rank)]
        if numbers[0].isdecimal() and numbers[1].isdecimal():
            launcher = _setter(environment) or name if size == "WORLD_SIZE" else name
            return Launch(launcher, int(numbers[0]), int(numbers[1]), int(numbers[2]) if numbers[2].isdecimal() else None)
    return None


def _setter(environment: Mapping[str, str]) -> str:
    return next((name for variable, name in _SETTERS.items() if variable in environment), "")
