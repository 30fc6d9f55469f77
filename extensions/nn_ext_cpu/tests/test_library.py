"""Threads that wait for each other sleep early, unless the user or another library has said otherwise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nn_ext_cpu import library
from nn_ext_cpu.library import SPINS

PROGRAM = """
import os
from nn_core.ext_utils import get_extension_context
import nn_core as nn, nn_core.functions as F
before = dict(os.environ)
nn.set_default_context(get_extension_context("cpu"))
F.relu(nn.Variable((2, 3))).forward()
assert dict(os.environ) == before
"""


def spins(**settings: str) -> str:
    """Return the spin count of the OpenMP runtime in a program that computes with these settings of the environment."""
    environment = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    shown = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "OMP_DISPLAY_ENV": "VERBOSE", **settings},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    (line,) = (line for line in shown.splitlines() if "GOMP_SPINCOUNT" in line)
    return line.split("'")[1]


@pytest.mark.skipif(sys.platform != "linux", reason="reads what the OpenMP runtime of GCC shows")
@pytest.mark.parametrize(
    ("settings", "expected"), [({}, str(SPINS)), ({"GOMP_SPINCOUNT": "77"}, "77"), ({"OMP_WAIT_POLICY": "PASSIVE"}, "0")]
)
def test_the_spin_count_of_the_openmp_runtime(settings: dict[str, str], expected: str) -> None:
    assert spins(**settings) == expected


def test_onednn_is_found_by_its_package(tmp_path: Path) -> None:
    """The search path inside the native library leads to oneDNN only where both are in one environment."""
    shutil.copytree(Path(library.__file__).parent, tmp_path / "nn_ext_cpu")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from nn_ext_cpu.library import load_native; "
    program += "print(load_native().__file__)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(str(tmp_path))
