"""The README is true: its code runs in a new process and does what the text says."""

import subprocess
import sys

from tests.integration.markdown import ROOT

PROGRAM = """
from pathlib import Path
from tests.integration.markdown import ROOT, run_blocks
names = run_blocks(ROOT / "README.md")
assert names["loss"].d < 0.01, names["loss"].d
assert Path("length.h5").exists()
assert names["nn_core_functions"]()[0].spec is names["SPEC"]
"""


def test_the_code_of_the_readme_runs(tmp_path):
    # A process of its own: the README sets the default context and registers an operator.
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{PROGRAM}"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "loss" in result.stdout
    assert "convolution" in result.stdout.lower()


def test_the_example_of_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = text.split("## Example")[1].split("```python\n")[1].split("```")[0]
    assert len([line for line in example.splitlines() if line]) <= 22


def test_the_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\ndemo:" in makefile
    assert "\ntest:" in makefile
