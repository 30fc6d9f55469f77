"""The README is true: its code runs in a new process and does what the text says."""

import os
import subprocess
import sys

from tests.markdown import ROOT

PROGRAM = """
from pathlib import Path
from tests.markdown import ROOT, run_blocks
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


USE = """
import numpy as np, nn_core as nn, nn_core.functions as F
x = nn.Variable.from_numpy_array(np.array([0.1, 0.2], np.float32), need_grad=True)
x.grad.zero()
y = F.acme_scaled_tanh(x, a=2.0)
y.forward()
y.backward()
np.testing.assert_allclose(y.d, np.tanh(2 * x.d), rtol=1e-6)
np.testing.assert_allclose(x.g, 2 * (1 - np.tanh(2 * x.d) ** 2), rtol=1e-5)
"""


def test_the_plugin_of_the_readme_is_one(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    module = text.split("## Plugins")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "nn_ext_acme.py").write_text(module, encoding="utf-8")
    metadata = tmp_path / "nn_ext_acme-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: nn-ext-acme\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[nn_core.extensions]\nacme = nn_ext_acme\n", encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-c", USE]
    result = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_example_of_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = text.split("## Example")[1].split("```python\n")[1].split("```")[0]
    assert len([line for line in example.splitlines() if line]) <= 22


def test_the_targets_of_the_readme_exist():
    makefile = (ROOT / "make" / "tests.mk").read_text(encoding="utf-8")
    assert "\ndemo:" in makefile
    assert "\ntest:" in makefile
