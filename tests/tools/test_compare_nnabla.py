"""The comparison with NNabla: its samples run here, and it finds what is planted."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nn_core.functions

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS / "nnabla"))

import compare_nnabla  # noqa: E402
from nnabla_samples import SAMPLES, Draw  # noqa: E402
from run_nnabla_cases import run  # noqa: E402


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_sample_runs_forward_and_backward(name: str) -> None:
    for repetition in range(2):
        sample = SAMPLES[name](Draw([repetition, *name.encode()]))
        case = compare_nnabla.describe(name, sample)
        results, errors = run("nn_core", case, compare_nnabla.arrays_of(sample))
        assert not errors
        assert {f"grad_{name}" for name in case["wrt"]} <= set(results)


def test_every_row_belongs_to_a_function() -> None:
    assert [name for name in SAMPLES if not hasattr(nn_core.functions, name)] == []


@pytest.mark.parametrize(
    ("given", "text"),
    [([1.0, 2.1], "out0 differs by 0.1 "), ([1.0, np.nan], "out0 has NaN at other places"), ([1.0, np.inf], "differs")],
)
def test_a_difference_isdescribe(given: list[float], text: str) -> None:
    (difference,) = compare_nnabla.differing("tanh", {"out0": np.array(given)}, {"out0": np.array([1.0, 2.0])})
    assert text in difference


def test_infinities_and_nan_at_the_same_places_agree() -> None:
    values = {"out0": np.array([np.inf, -np.inf, np.nan, 1.0])}
    assert compare_nnabla.differing("tanh", values, values) == []


def compare_with(functions: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tool with a package called nnabla whose module of functions is `functions`, made of nn_core."""
    package = folder / "nnabla"
    package.mkdir()
    (package / "__init__.py").write_text("from nn_core import Variable, auto_forward, recompute\n")
    (package / "functions.py").write_text(f"from nn_core.functions import *\n{functions}\n")
    command = [sys.executable, str(TOOLS / "nnabla" / "compare_nnabla.py"), "--nnabla-python", sys.executable, "--cases", "3"]
    paths = os.pathsep.join((str(folder), str(TOOLS.parent)))
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_equal_packages_agree(tmp_path: Path) -> None:
    done = compare_with("", tmp_path, "--only", "tanh,affine,sort")
    assert done.returncode == 0, done.stderr
    assert "3 functions compared, 3 without disagreement; 9 cases agree, 0 disagree." in done.stdout


@pytest.mark.slow
def test_a_wrong_function_a_refusal_and_a_crash_are_reported(tmp_path: Path) -> None:
    planted = """
import os
from nn_core.functions import sin as tanh
def exp(x): raise ValueError("not here")
def log(x): os._exit(3)
"""
    done = compare_with(planted, tmp_path, "--only", "tanh,exp,log,abs")
    assert done.returncode == 1, done.stderr
    assert "tanh: 3 disagree, 0 agree" in done.stdout
    assert "out0 differs by" in done.stdout
    assert "exp (3): forward: not here" in done.stdout
    assert "log (3): forward: exit status 3" in done.stdout
    assert "4 functions compared, 3 without disagreement; 3 cases agree, 3 disagree." in done.stdout
