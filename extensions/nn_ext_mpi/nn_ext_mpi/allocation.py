"""Machines that a scheduler has given to this job, as far as the environment tells.

Open MPI and MPICH know Slurm: their mpiexec starts its processes by srun on the machines of the job. The MPI operator of
Kubernetes writes a file of machines, and names it in a variable that only the library it was set up for reads.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import click

#: Variables that name a file of machines: those of the MPI operator for Open MPI, MPICH and Intel MPI.
_HOST_FILES: Final = ("OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE")
_SLOTS: Final = re.compile(r"(?P<host>[^\s:]+)(?:\s*:\s*|\s+slots\s*=\s*)?(?P<slots>\d+)?\s*(?:#.*)?")


class Allocation(NamedTuple):
    """Machines of this job.

    Attributes:
        scheduler: Name for messages.
        n_processes: Number of processes that the scheduler was asked for.
        n_hosts: Number of machines.
        hosts: The machines, with the number of processes of each ("a:2"); empty where mpiexec asks the scheduler itself.
    """

    scheduler: str
    n_processes: int
    n_hosts: int
    hosts: tuple[str, ...]


def find_allocation(environment: Mapping[str, str]) -> Allocation | None:
    """Return the machines that a scheduler has given to this job; None when there is none.

    Raises:
        ClickException: when a file of machines cannot be read.
    """
    return _of_slurm(environment) or _of_host_file(environment)


def _of_slurm(environment: Mapping[str, str]) -> Allocation | None:
    n_hosts = environment.get("SLURM_JOB_NUM_NODES", environment.get("SLURM_NNODES", ""))
    if "SLURM_JOB_ID" not in environment or not n_hosts.isdecimal():
        return None
    asked = environment.get("SLURM_NTASKS", "")
    return Allocation("Slurm", int(asked) if asked.isdecimal() else int(n_hosts), int(n_hosts), ())


def _of_host_file(environment: Mapping[str, str]) -> Allocation | None:
    variable = next((name for name in _HOST_FILES if environment.get(name)), None)
    if variable is None:
        return None
    machines = _machines(variable, environment[variable])
    scheduler = "Kubernetes" if "KUBERNETES_SERVICE_HOST" in environment else f"the file of {variable}"
    total = sum(slots for _, slots in machines)
    return Allocation(scheduler, total, len(machines), tuple(f"{host}:{slots}" for host, slots in machines))


def _machines(variable: str, path: str) -> list[tuple[str, int]]:
    """Machines and their numbers of processes."""
    try:
        lines = [line.strip() for line in Path(path).read_text().splitlines()]
    except OSError as error:
        raise click.ClickException(
            f"launch: {variable} must name a file of machines, got {path!r} ({error.strerror})\n"
            "  hint: unset it, or give the machines by --hosts"
        ) from error
    found = [_SLOTS.fullmatch(line) for line in lines if line and not line.startswith("#")]
    machines = [(match["host"], int(match["slots"] or 1)) for match in found if match is not None]
    if not machines or len(machines) < len(found):
        raise click.ClickException(
            f"launch: each line of {path} must be a machine and its processes, 'a slots=2' or 'a:2', got {lines!r}"
        )
    return machines
