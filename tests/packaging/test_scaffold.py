"""Packages written by new-extension pass their tests as they are, and check-extension tells what is wrong with others."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nn_core.__main__ import main
from nn_core.scaffold import KINDS
from tests.packaging.conftest import ROOT

pytest.importorskip("tomllib", reason="reading pyproject.toml needs Python 3.11")
PURE = [kind for kind, row in KINDS.items() if not row.native]


def nn_core(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def written(folder: Path, kind: str, name: str = "") -> Path:
    name = name or f"my{kind}"
    nn_core("new-extension", name, "--kind", kind, "--folder", str(folder))
    return folder / f"nn-ext-{name}"


def run_tests(packages: list[Path], folder: Path, *options: str) -> str:
    """Run the tests of packages that are found as if they were installed."""
    from nn_core.testing.checkup import project_of, write_metadata

    metadata = folder / "metadata"
    metadata.mkdir()
    for package in packages:
        write_metadata(project_of(package), metadata)
    path = [str(metadata), *map(str, packages), str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "NN_CORE_STRICT": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "nn_core.testing.pytest_plugin"]
    command += ["--import-mode=importlib", "-p", "no:cacheprovider", "-o", "nn_core_tier=smoke", "--rootdir", str(folder)]
    command += ["-c", os.devnull, *options, *(str(package / "tests") for package in packages)]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_package_is_complete(tmp_path: Path, kind: str) -> None:
    package = written(tmp_path, kind)
    files = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    code = f"nn_ext_my{kind}"
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", ".github/workflows/tests.yml", f"{code}/py.typed"} <= files
    assert f"{code}/plugin.py" in files
    assert any(file.startswith("tests/test_") for file in files)
    for file in files:
        text = (package / file).read_text(encoding="utf-8")
        assert "{{" not in text.replace("${{ matrix.python }}", "")
        if file.endswith(".py"):
            compile(text, file, "exec")


@pytest.mark.slow
def test_the_tests_of_written_packages_pass(tmp_path: Path) -> None:
    packages = [written(tmp_path, kind) for kind in PURE]
    # every operator on the backend: what the kit does elsewhere
    (tmp_path / "nn-ext-mybackend" / "tests" / "test_conformance.py").unlink()
    nn_core("new-operator", "HardSwish", "--folder", str(tmp_path / "nn-ext-myoperators"))
    tests = tmp_path / "nn-ext-myoperators" / "tests" / "test_conformance.py"
    tests.write_text(tests.read_text().replace('"myoperators.Cube",', '"myoperators.Cube", "myoperators.HardSwish"'))
    assert "failed" not in run_tests(packages, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("scikit_build_core", "pybind11")),
    reason="a package in C++ is built where scikit-build-core and pybind11 are installed",
)
def test_a_native_package_is_built_and_passes(tmp_path: Path) -> None:
    package = written(tmp_path, "native")
    target = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--target", str(target)]
    command.append(str(package))
    subprocess.run(command, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(ROOT)])}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "nn_core.testing.pytest_plugin"]
    command += ["-p", "no:cacheprovider", "--import-mode=importlib", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command.append(str(package / "tests"))
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["new-extension", "A-b"], "NAME must be lower-case letters and digits"),
        (["new-extension", "reference"], "must not be taken by an installed plugin"),
        (["new-extension", "acme", "--kind", "wings"], "KIND must be one of operators, native"),
        (["new-operator", "hard"], "NAME must be a capital letter"),
        (["new-operator", "Hard"], "must have one nn_ext_"),
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("fault", list(FAULTS))
def test_check_extension_finds_faults(tmp_path: Path, fault: str) -> None:
    package = written(tmp_path, "operators")
    file, old, new, test = FAULTS[fault]
    path = package / "nn_ext_myoperators" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    result = CliRunner().invoke(main, ["check-extension", str(package), "--fast"])
    assert result.exit_code == 1
    assert f"cause     {test}: " in result.output


@pytest.mark.slow
def test_check_extension_tells_what_importing_does(tmp_path: Path) -> None:
    package = written(tmp_path, "solver")
    plugin = package / "nn_ext_mysolver" / "plugin.py"
    plugin.write_text(plugin.read_text() + '\nprint("hello")\n')
    project = package / "pyproject.toml"
    project.write_text(project.read_text().replace('"nn-core>=0.1,<1"', '"nn-core"'))
    result = CliRunner().invoke(main, ["check-extension", str(package)])
    assert result.exit_code == 1
    assert "hygiene   FAILED  importing is free of work: prints 'hello'" in result.output
    assert "metadata  FAILED  versions of nn-core: write 'nn-core>=0.1,<1'" in result.output
