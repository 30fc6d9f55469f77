"""The examples of training reach their results, and a second run continues from the checkpoints of the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "training").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem != "command"], ids=lambda path: path.stem)
def test_the_example_reaches_its_result(path, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(path), "-o", "out"]
    logs = []
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        logs.append((tmp_path / "out" / "log.jsonl").read_text())
    assert logs[0] == logs[1]  # the second run found that training was over
    assert (tmp_path / "out" / "plot.png").exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 80
