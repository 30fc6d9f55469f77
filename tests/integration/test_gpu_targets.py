"""The targets of the Makefile for machines with a GPU, as far as they can be looked at without one."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WARNING = """
import warnings
import numpy as np


def test_that_warns():
    warnings.warn("of CuPy", RuntimeWarning)
    np.float32(1) / np.zeros(1)
"""


def commands(*arguments):
    """The commands that make would run, as lists of words."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # of `make test`
    done = subprocess.run(["make", "-n", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return [shlex.split(line) for line in done.stdout.replace("\\\n", " ").splitlines() if line.strip()]


def test_warnings_on_a_device_fail_no_test(tmp_path):
    (tests,) = {tuple(words[1:5]) for words in commands("test-gpu", "GPU_PYTHON=python3") if words[1:3] == ["-m", "pytest"]}
    assert tests[:2] == ("-m", "pytest")
    (tmp_path / "test_warning.py").write_text(WARNING)
    ours = ["-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), str(tmp_path)]  # where warnings are errors
    shown = subprocess.run([sys.executable, *tests, *ours], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stdout
    assert "RuntimeWarning: of CuPy" in shown.stdout
    assert "divide by zero" in shown.stdout


def extras(folder):
    tomllib = pytest.importorskip("tomllib", reason="in the standard library from Python 3.11 on")
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"].get("optional-dependencies", {})


@pytest.mark.parametrize("cuda", ["12", "13"])
def test_wheels_are_those_that_are_installed(cuda):
    (wheels,) = commands("gpu-wheels", f"CUDA={cuda}")
    (install,) = commands("gpu-install", f"CUDA={cuda}", "GPU_PYTHON=python3")
    built = {re.sub(r".*/", "", word).replace("_", "-") for word in wheels[wheels.index("--wheel-dir") + 2 :]}
    installed = {word.replace("nn-core", ".") if word.startswith("nn-core") else word for word in install[-4:]}
    assert built == installed
    assert "--no-index" in install
    assert wheels[wheels.index("--wheel-dir") + 1] == install[install.index("--find-links") + 1]
    for word in wheels[wheels.index("--wheel-dir") + 2 :]:
        folder, _, names = word.rstrip("]").partition("[")
        assert (ROOT / folder / "pyproject.toml").is_file()
        assert set(names.split(",")) - {""} <= extras(folder).keys()
    assert f"cuda{cuda}" in extras("extensions/nn_ext_cuda")


def test_time_limits_choose_parts():
    words = [word for line in commands("test-gpu", "GPU_PYTHON=python3", "TIER=smoke", "SHARD=2/5", "JOBS=8") for word in line]
    assert {"--tier=smoke", "--shard=2/5", "--require-backend=cuda,cudnn"} <= set(words)
    assert words[words.index("-n") + 1] == "8"
    assert not any("test_tutorials" in word for word in words)
