"""The targets of the Makefile for machines with a GPU, as far as they can be looked at without one."""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
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


PIECES = ("gpu-smoke", "gpu-sanitize", "gpu-cudnn", "gpu-layouts", "gpu-cuda", "bench-gpu")


def test_pieces_run_the_packages_of_this_folder(tmp_path):
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\necho "$PYTHONPATH|$*" >> {tmp_path}/calls\n')
    python.chmod(0o755)
    command = ["make", *PIECES, "test-gpu", "TIER=smoke", f"GPU_PYTHON={python}", "SANITIZER=", "CASES=mlp_tiny -r 2"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment["PYTHONPATH"] = "before"
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    calls = [line.split("|") for line in (tmp_path / "calls").read_text().splitlines()]
    extensions = ROOT / "extensions"
    assert {path for path, _ in calls} == {f"{ROOT}:{extensions}/nn_ext_cuda:{extensions}/nn_ext_cudnn:before"}
    words = [arguments.split() for _, arguments in calls]
    assert ["-m", "tools.release.smoke", "-c", "cudnn", "--short", "--unpooled"] in words
    assert ["-m", "benchmarks.gpu", "mlp_tiny", "-r", "2", "-c", "cudnn", "-o", "benchmarks/results"] in words


def test_all_plans_of_the_true_cudnn_are_made_nightly():
    assert "test-engines EVERY=1" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    words = [word for line in commands("test-engines") for word in line]
    assert "extensions/nn_ext_cudnn/tests/test_engines.py" in words
    assert words[words.index("-m", words.index("-c")) + 1] == "slow"


def documented():
    """The commands in docs/cuda.md, as lists of words."""
    found = re.findall(r"`((?:make|python -m|nn-core|nsys|compute-sanitizer) [^`]*)`", (ROOT / "docs" / "cuda.md").read_text())
    return [shlex.split(text) for text in found]


def test_documented_targets_and_files_exist():
    targets = [words for words in documented() if words[0] == "make"]
    assert set(PIECES) <= {words[1] for words in targets}
    for words in targets:
        assert commands(*words[1:], "GPU_PYTHON=python3"), words
    for words in documented():
        modules = {following for word, following in itertools.pairwise(words) if word == "-m"}
        for name in modules - {"pytest", "conformance"}:
            assert find_spec(name) is not None, words
        for path in (word for word in words if word.startswith(("extensions/", "examples/", "tests/"))):
            assert (ROOT / path).exists(), words


def selections():
    """(options of pytest) of each command that selects conformance cases by their names."""
    pieces = [words for piece in ("gpu-cudnn", "gpu-layouts") for words in commands(piece, "GPU_PYTHON=python3")]
    return [words[words.index("pytest") + 1 :] for words in (*pieces, *documented()) if "pytest" in words and "-k" in words]


@pytest.mark.slow
def test_names_select_some_cases():
    """On the emulated device; collecting shows that options are known, too."""
    emulation = ROOT / "extensions" / "nn_ext_cudnn" / "tests" / "emulation"
    paths = [str(emulation), str(ROOT), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    found = selections()
    assert len(found) > 1
    for options in found:
        own = ["-p", "no:xdist", "-p", "no:cacheprovider", "-p", "emulated_cudnn", "--collect-only", *_without_jobs(options)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *own], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (options, done.stdout[-2000:] + done.stderr[-2000:])
        assert re.search(r"test_conformance.py(: |::)", done.stdout), options


def _without_jobs(options):
    place = options.index("-n") if "-n" in options else len(options)
    return [*options[:place], *options[place + 2 :]]
