"""The benchmarks for devices run on the CPU in a small configuration: what is left for a GPU is to be measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nn_core.ext_utils import list_extensions

ROOT = Path(__file__).parents[2]


def run(*words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NN_CORE_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.gpu", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_large_workload_runs_in_a_small_configuration(tmp_path):
    context = "cpu" if "cpu" in list_extensions() else "reference"
    result = run("-c", context, "--tiny", "-r", "1", "-p", "nn_core", "-p", "nn_core_together", "-o", str(tmp_path))
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    (figures,) = [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]
    assert [row["workload"] for row in figures["rows"]] == ["mlp_tiny", "resnet50", "gpt2_small"]
    assert all(set(row["figures"]) == {"nn_core", "nn_core_together"} for row in figures["rows"])
    (page,) = [path.read_text() for path in tmp_path.glob("*.md")]
    assert page.count("| gpt2_small |") == 1 and f"| context | {context} |" in page


@pytest.mark.slow
def test_a_framework_that_fails_is_told_and_the_rest_is_measured():
    result = run("-c", "absent", "--tiny", "-r", "1", "-p", "nn_core", "mlp_tiny")
    assert result.returncode == 1
    assert "mlp_tiny: nn_core: the worker ended with status 1" in result.stderr
    assert "got 'absent'" in result.stderr
