"""Packages written by new-extension pass their tests as they are, and check-extension tells what is wrong with others."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nn_core.__main__ import main
from nn_core.scaffold import KINDS
from tests.packaging.conftest import ROOT, Site
from tests.slow import some_slow

pytest.importorskip("tomllib", reason="reading pyproject.toml needs Python 3.11")


def nn_core(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def written(folder: Path, kind: str, name: str = "") -> Path:
    name = name or f"my{kind}"
    nn_core("new-extension", name, "--kind", kind, "--folder", str(folder))
    return folder / f"nn-ext-{name}"


def command(words: list[str], folder: Path) -> None:
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def wheel_of(package: Path) -> Path:
    """Build the wheel of a package with what is installed here; the source of the package is removed then."""
    for module in ("scikit_build_core", "pybind11") if (package / "CMakeLists.txt").exists() else ("hatchling",):
        pytest.importorskip(module, reason="builds need the packages of the extra 'test'")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-build-isolation", "--no-deps"]
    command([*pip, "--no-index", "--wheel-dir", str(package / "dist"), str(package)], package)
    shutil.rmtree(package / "src")
    (wheel,) = (package / "dist").glob("*.whl")
    return wheel


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_package_is_complete(tmp_path: Path, kind: str) -> None:
    package = written(tmp_path, kind)
    files = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    code = f"src/nn_ext_my{kind}"
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", ".github/workflows/tests.yml", ".gitlab-ci.yml"} <= files
    assert {f"{code}/plugin.py", f"{code}/py.typed"} <= files
    assert any(file.startswith("tests/test_") for file in files)
    for file in files:
        text = (package / file).read_text(encoding="utf-8")
        assert "{{" not in text.replace("${{ matrix.python }}", "")
        if file.endswith(".py"):
            compile(text, file, "exec")


#: Kinds whose guide is followed with every change; those of the others take seven seconds each, native code twenty.
QUICK = {"operators"}


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[] if kind in QUICK else [pytest.mark.slow]) for kind in KINDS])
def test_the_guide_leads_from_an_empty_folder_to_a_wheel_whose_tests_and_program_pass(
    site: Site, tmp_path: Path, kind: str
) -> None:
    package = written(tmp_path, kind, "acme")
    if kind == "operators":
        nn_core("new-operator", "HardSwish", "--folder", str(package))
        tests = package / "tests" / "test_conformance.py"
        tests.write_text(tests.read_text().replace('"acme.Cube",', '"acme.Cube", "acme.HardSwish"'))
    site.install_wheel(wheel_of(package))
    # all samples of every operator on a backend take minutes; CI of such a package runs them
    result = site.run("-m", "pytest", *(["--tier=smoke"] if kind == "backend" else []), folder=package, NN_CORE_STRICT="1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "failed" not in result.stdout and " passed" in result.stdout
    site.output(guides()[kind])


def guides() -> dict[str, str]:
    """The program of each section of the guides."""
    text = (ROOT / "docs" / "extension_guides.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\w+)\n+```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def test_there_is_a_guide_for_every_kind() -> None:
    assert list(guides()) == list(KINDS)


@pytest.mark.slow
def test_written_packages_are_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    packages = [written(tmp_path, kind) for kind in KINDS]
    names = [word for kind in KINDS for word in ("-p", f"nn_ext_my{kind}")]
    path = os.pathsep.join(str(package / "src") for package in packages)
    words = [sys.executable, "-m", "mypy", "--strict", "--no-warn-return-any", "--config-file", os.devnull, *names]
    result = subprocess.run(words, cwd=ROOT, env={**os.environ, "MYPYPATH": path}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_package_in_c_is_checked_once_it_is_installed(tmp_path: Path) -> None:
    package = written(tmp_path, "native")
    result = CliRunner().invoke(main, ["check-extension", str(package)])
    assert result.exit_code == 1
    assert "must be installed to be checked" in result.output and "nn-core check-extension mynative" in result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["new-extension", "A-b"], "NAME must be lower-case letters and digits"),
        (["new-extension", "reference"], "must not be taken by an installed plugin"),
        (["new-extension", "acme", "--kind", "wings"], "KIND must be one of operators, native"),
        (["new-operator", "hard"], "NAME must be a capital letter"),
        (["new-operator", "Hard"], "must have one src/nn_ext_"),
        (["check-extension", "nothing"], "the name of an installed plugin, got 'nothing'"),
    ],
)
def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert text in result.output


def test_an_operator_is_not_written_twice(tmp_path: Path) -> None:
    package = written(tmp_path, "operators")
    nn_core("new-operator", "HardSwish", "--folder", str(package))
    assert '"functions.myoperators_hard_swish" = "myoperators"' in (package / "pyproject.toml").read_text()
    result = CliRunner().invoke(main, ["new-operator", "HardSwish", "--folder", str(package)])
    assert "NAME must be new" in result.output
    assert CliRunner().invoke(main, ["new-extension", "myoperators", "--folder", str(tmp_path)]).exit_code == 1


def test_check_extension_reports_on_a_folder(tmp_path: Path) -> None:
    package = written(tmp_path, "operators")
    report, badge = tmp_path / "report.json", tmp_path / "badge.svg"
    output = nn_core("check-extension", str(package), "--fast", "--json", str(report), "--badge", str(badge))
    found = json.loads(report.read_text())
    assert found["ok"]
    assert found["operators"]["myoperators.Cube"]["passed"] >= 8
    assert {check["section"] for check in found["checks"]} == {"metadata", "hygiene", "load", "kit"}
    assert "operator  myoperators.Cube: " in output
    assert "conforms, " in badge.read_text()


def test_the_example_of_every_kind_conforms() -> None:
    output = nn_core("check-extension", str(ROOT / "examples" / "plugin_kinds"), "--fast")
    assert re.search(r"operator  kinds.CountPositive: \d+ passed, 0 failed", output)


def test_check_extension_runs_the_kit_on_kernels_for_operators_of_others(tmp_path: Path) -> None:
    output = nn_core("check-extension", str(written(tmp_path, "overlay")), "--fast")
    assert "kernel    Abs on reference: native in float32; reference in float64" in output
    assert re.search(r"operator  Abs: \d+ passed, 0 failed", output)


FAULTS = {
    "a wrong gradient": ("operators.py", "* (3.0 * g.scale)", "* (2.9 * g.scale)", "test_gradient_rule"),
    "a kernel that calls NumPy": (
        "operators.py",
        "    return scale * x * x * x",
        "    import numpy as np\n\n    return scale * np.power(np.asarray(x), 3)",
        "test_array_contract",
    ),
    "an argument that no sample sets": ("samples.py", ", scale=0.5", "", "test_description"),
}


@pytest.mark.parametrize("fault", some_slow(FAULTS, one_of=len(FAULTS)))
def test_check_extension_finds_faults(tmp_path: Path, fault: str) -> None:
    package = written(tmp_path, "operators")
    file, old, new, test = FAULTS[fault]
    path = package / "src" / "nn_ext_myoperators" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    result = CliRunner().invoke(main, ["check-extension", str(package), "--fast"])
    assert result.exit_code == 1
    assert f"cause     {test}: " in result.output


@pytest.mark.slow
def test_check_extension_finds_a_fusion_that_is_not_its_chain(tmp_path: Path) -> None:
    package = tmp_path / "plugin_kinds"
    shutil.copytree(ROOT / "examples" / "plugin_kinds", package)
    path = package / "nn_ext_kinds" / "graphs.py"
    text = path.read_text()
    assert 'function = "Sigmoid"' in text
    path.write_text(text.replace('function = "Sigmoid"', 'function = "Tanh"'))
    result = CliRunner().invoke(main, ["check-extension", str(package), "--fast"])
    assert result.exit_code == 1
    assert "cause     test_fusion: " in result.output


KEPT_ARRAY = """            np.abs(x, out=y)
            if hasattr(self, "kept"):
                self.kept += 1
            self.kept = y
"""
SHARED_MEMORY = """            import time

            self.memory = np.abs(x)
            time.sleep(0.01)
            y[...] = self.memory
"""
KERNEL_FAULTS = {
    "an array that is kept and changed later": (KEPT_ARRAY, "test_reuse"),
    "memory that all threads share": (SHARED_MEMORY, "test_threads"),
}


@pytest.mark.parametrize("fault", some_slow(KERNEL_FAULTS, one_of=len(KERNEL_FAULTS)))
def test_check_extension_finds_faults_of_kernels(tmp_path: Path, fault: str) -> None:
    # every sample: the one of --fast has fixed numbers, so that two threads would compute the same
    package = written(tmp_path, "overlay")
    old = "            np.abs(x, out=y)\n"
    new, test = KERNEL_FAULTS[fault]
    path = package / "src" / "nn_ext_myoverlay" / "kernels.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    result = CliRunner().invoke(main, ["check-extension", str(package)])
    assert result.exit_code == 1
    assert f"cause     {test}: " in result.output


def test_check_extension_tells_what_importing_does(tmp_path: Path) -> None:
    package = written(tmp_path, "solver")
    plugin = package / "src" / "nn_ext_mysolver" / "plugin.py"
    plugin.write_text(plugin.read_text() + '\nprint("hello")\n')
    project = package / "pyproject.toml"
    project.write_text(project.read_text().replace('"nn-core>=0.1,<1"', '"nn-core"'))
    result = CliRunner().invoke(main, ["check-extension", str(package)])
    assert result.exit_code == 1
    assert "hygiene   FAILED  importing is free of work: prints 'hello'" in result.output
    assert "metadata  FAILED  versions of nn-core: write 'nn-core>=0.1,<1'" in result.output
