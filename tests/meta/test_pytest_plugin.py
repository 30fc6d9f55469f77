"""The kit as a third party uses it: a package, one file of tests, one command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.conftest import BACKEND, install

pytestmark = pytest.mark.slow

FILE = """
from nn_core.testing.conformance import *

BACKENDS = ("planted",)
"""
KERNEL = """
class Tanh:
    def refuse(self, call):
        return None if call.dtype == "float32" else Refusal("takes float32 only")
    def forward(self, call):
        return lambda x, y: np.multiply(np.tanh(x), {factor}, out=y)
    def backward(self, call, wanted):
        return None
"""
OPERATOR = '''
from nn_core.ext import FunctionPackage, gradient, hookimpl, kernel

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1"
SPEC = """
- name: planted.Square
  api: planted_square
  topic: arithmetic
  doc: Square.
  inputs:
    x: {doc: Any array.}
  outputs:
    y: {doc: Array of the shape of x.}
  shape: same_as x
  backward: {needs: [x]}
  tags: [pointwise]
"""

@kernel("planted.Square")
def square(xp, x):
    return x * x

@gradient("planted.Square")
def square_gradient(F, g):
    return g.grad * g.x * SLOPE

@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=SPEC)]
'''


@pytest.fixture
def run(tmp_path):
    """Installs a plugin and runs pytest on one file of conformance tests."""

    def run(plugin: str, file: str = FILE, *options: str, xfails: str = "") -> subprocess.CompletedProcess[str]:
        install(tmp_path / "site", "planted_package", plugin, "planted")
        tests = tmp_path / "tests"
        tests.mkdir()
        (tests / "test_conformance.py").write_text(file)
        (tests / "xfails.txt").write_text(xfails)
        root = Path(__file__).parents[2]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "nn_core.testing.pytest_plugin",
            "-q",
            "-p",
            "no:cacheprovider",
        ]
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{root}"}
        return subprocess.run(
            [*command, *options, "test_conformance.py"],
            cwd=tests,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def backend(factor: float) -> str:
    text = "from nn_core.ext import Refusal\n" + BACKEND + KERNEL.format(factor=factor)
    return text.replace("self.kernels = {}", 'self.kernels = {"Tanh": Tanh()}')


def test_a_backend_passes_and_the_summary_says_what_was_done(run):
    result = run(backend(1), FILE, "--backend=planted", "-k", "Tanh or xfails")
    assert result.returncode == 0, result.stdout
    assert "planted     float32              1" in result.stdout
    assert "checks with" in result.stdout
    assert "forward 8" in result.stdout


def test_known_failures_are_listed_in_a_file(run):
    samples = ["matrix", "scalar", "long", "image", "far", "very_long", "special"]
    known = "\n".join(f"test_forward[planted-Tanh-float32-{name}]  2026-01-31  too large" for name in samples)
    result = run(backend(1.01), FILE, "--backend=planted", "-k", "test_forward and Tanh or xfails", xfails=known)
    assert result.returncode == 0, result.stdout
    assert "7 xfailed" in result.stdout


def test_a_known_failure_that_passes_or_does_not_exist_is_a_failure(run):
    known = """
# reasons
test_forward[planted-Tanh-float32-matrix]  2026-01-31  was too large once
test_forward[planted-Tanh-float32-matriks]  2026-01-31  misspelt
"""
    result = run(backend(1), FILE, "--backend=planted", "-k", "test_forward and Tanh or xfails", xfails=known)
    assert result.returncode == 1
    assert "[XPASS(strict)] 2026-01-31: was too large once" in result.stdout
    assert "every id must name a test, got test_forward[planted-Tanh-float32-matriks]" in result.stdout


@pytest.mark.parametrize(("options", "count"), [((), 8), (("--tier=smoke",), 1), (("-o", "nn_core_tier=smoke"), 1)])
def test_without_the_option_all_samples_run_unless_a_tier_is_chosen(run, options, count):
    result = run(backend(1), FILE, "-k", "test_forward", *options)
    assert result.returncode == 0, result.stdout
    assert f"forward {count}" in result.stdout


def unavailable() -> str:
    probe = 'probe=lambda: Refusal("no such device"), load=Planted'
    return "from nn_core.ext import Refusal\n" + BACKEND.replace("load=Planted", probe)


def test_an_unavailable_backend_is_skipped_with_the_reason_of_its_probe(run):
    result = run(unavailable(), FILE, "-rs")
    assert result.returncode == 0, result.stdout
    assert "no such device" in result.stdout


def test_an_unavailable_backend_that_is_required_is_a_failure(run):
    result = run(unavailable(), FILE, "--require-backend=planted", "-k", "test_forward")
    assert result.returncode == 1
    assert "no such device" in result.stdout


def test_a_backend_that_is_not_installed_is_skipped_unless_it_is_asked_for(run):
    result = run(backend(1), FILE.replace("planted", "absent"), "-rs", "-k", "test_forward")
    assert result.returncode == 0, result.stdout
    assert "got 'absent'" in result.stdout


def test_a_backend_that_is_asked_for_must_be_installed(run):
    result = run(backend(1), FILE, "--backend=plantd")
    assert result.returncode == 4
    assert "--backend: a backend must be installed" in result.stderr
    assert "got 'plantd'" in result.stderr


FUNCTIONS = """
from nn_core.testing.conformance import *

BACKENDS = ("reference",)
FUNCTIONS = ("planted.Square",)
"""


@pytest.mark.parametrize("slope", [2, 3])
def test_a_package_of_functions_names_them(run, slope):
    result = run(OPERATOR.replace("SLOPE", str(slope)), FUNCTIONS, "--backend=all")
    assert (result.returncode == 0) == (slope == 2), result.stdout
    assert "description 1," in result.stdout
