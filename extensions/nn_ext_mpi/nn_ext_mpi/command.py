"""``nn-core launch``."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from nn_ext_mpi.library import INSTALL, Found, find, n_cores


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-n", "size", type=click.IntRange(1), required=True, help="Number of processes.")
@click.option("--hosts", default="", help="Machines, with commas between them; they need the same files and packages.")
@click.option("--root", is_flag=True, help="Let Open MPI run as root, which it refuses otherwise.")
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is the name of a module.")
@click.option("--dry-run", is_flag=True, help="Print the command and end.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def launch(
    size: int, hosts: str, root: bool, is_module: bool, dry_run: bool, program: str, arguments: Sequence[str]
) -> None:
    """Start PROGRAM, a Python script, with ARGUMENTS as several processes that find each other.

    The mpiexec is the one that belongs to the library of mpi4py. Processes are not bound to single cores, and share the
    cores of the machine evenly (NN_CORE_NUM_THREADS, unless it is set). An exception in one of them ends all; the exit
    status is that of mpiexec.
    """
    if not is_module and not Path(program).exists():
        raise click.UsageError(f"launch: PROGRAM must be a file, got {program!r}")
    found = find()
    command = [*mpiexec_command(found, size, hosts, root=root), sys.executable, "-m", "mpi4py"]
    command += [*(["-m"] if is_module else []), program, *arguments]
    variables = launch_variables(size, hosts)
    if dry_run:
        click.echo(" ".join([*(f"{name}={value}" for name, value in variables.items()), *command]))
        return
    sys.stdout.flush()
    sys.exit(subprocess.run(command, env={**os.environ, **variables}, check=False).returncode)


def mpiexec_command(found: Found, size: int, hosts: str = "", *, root: bool = False) -> list[str]:
    """The command that starts `size` processes, up to the program.

    Raises:
        ClickException: when library or launcher is missing, they do not belong together, or Open MPI refuses root.
    """
    if not found.library:
        raise click.ClickException(f"launch: a library of MPI must be found, got: {found.problem}\n  hint: {INSTALL}")
    if found.mpiexec is None:
        raise click.ClickException(f"launch: mpiexec must be beside Python or on PATH, got none\n  hint: {INSTALL}")
    if found.mixed:
        raise click.ClickException(
            f"launch: library and launcher must belong together, got: {found.mixed}\n"
            f"  hint: keep one of the wheels {', '.join(found.wheels) or 'of MPI'}, or set MPI4PY_LIBMPI"
        )
    command = [str(found.mpiexec), "-n", str(size)]
    machines = [host.strip() for host in hosts.split(",") if host.strip()]
    if found.family != "Open MPI":
        return [*command, *(["-hosts", ",".join(machines)] if machines else [])]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        if not root and "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM" not in os.environ:
            raise click.ClickException(
                "launch: Open MPI runs for users other than root, got root\n"
                "  hint: --root allows it, in a container for example"
            )
        command.append("--allow-run-as-root")
    command += ["--bind-to", "none", "--oversubscribe"]
    return [*command, *(["--host", ",".join(machines)] if machines else [])]


def launch_variables(size: int, hosts: str = "") -> dict[str, str]:
    """Return the variables that the processes get in addition to the environment of this one."""
    n_hosts = max(1, len([host for host in hosts.split(",") if host.strip()]))
    if "NN_CORE_NUM_THREADS" in os.environ:
        return {}
    share = max(1, n_cores() // -(-size // n_hosts))
    return {name: str(share) for name in ("NN_CORE_NUM_THREADS", "OMP_NUM_THREADS") if name not in os.environ}
