"""The benchmarks for devices run on the CPU in a small configuration: what is left for a GPU is to be measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as gpu
from benchmarks.report import Figure, Row
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
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("  mlp_tiny: nn_core: ")]
    assert line.startswith("  mlp_tiny: nn_core: the worker ended with status 1: ")
    assert "got 'absent'" in line


def result(workload, ms, failures=()):
    row = Row(workload, {"nn_core": Figure("1", ms, (ms, ms + 1))} if ms else {})
    return gpu.Result(row, {"nn_core": {"version": "1"}}, {"nn_core": "2 graphs"}, dict(failures))


def test_cases_of_several_runs_are_on_one_page(tmp_path):
    gpu.write(tmp_path, [result("mlp_tiny", 1.5)], "cudnn", 5)
    gpu.write(tmp_path, [result("resnet50", 3.0), result("gpt2_small", 0, [("nn_core", "it ended")])], "cudnn", 5)
    gpu.write(tmp_path, [result("resnet50", 2.0)], "cudnn", 5)
    (figures,) = [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]
    assert {row["workload"]: row["figures"].get("nn_core", {}).get("ms") for row in figures["rows"]} == {
        "mlp_tiny": 1.5, "gpt2_small": None, "resnet50": 2.0
    }  # fmt: skip
    (page,) = [path.read_text() for path in tmp_path.glob("*.md")]
    assert [line.split(" | ")[:2] for line in page.splitlines() if line.startswith(("| mlp", "| gpt2", "| resnet"))] == [
        ["| mlp_tiny", "1.5 (1.5-2.5)"], ["| gpt2_small", "it ended"], ["| resnet50", "2 (2-3)"]
    ]  # fmt: skip


class Failing:
    """A worker that ends in its second round."""

    framework, version, facts = "torch", "1", {"version": "1"}

    def __init__(self, case, framework, context, *, tiny):
        self.framework, self.rounds = framework, []

    def measure(self):
        self.rounds.append([0.5])
        if self.framework == "torch" and len(self.rounds) == 2:
            raise RuntimeError("no memory is left")

    def median_ms(self):
        return 500.0

    def spread_ms(self):
        return 500.0, 500.0

    def recorded(self):
        return ""

    def stop(self):
        self.stopped = True


def test_a_framework_that_fails_later_is_told_and_the_rest_is_measured(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "DeviceWorker", Failing)
    found = gpu.measure(gpu.Case("mlp_tiny", "float32"), ["nn_core", "torch"], "cudnn", rounds=3, tiny=True)
    assert set(found.row.figures) == {"nn_core"}
    assert found.failures == {"torch": "no memory is left"}
    assert "mlp_tiny: torch: no memory is left" in capsys.readouterr().err
