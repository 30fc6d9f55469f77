"""Metadata for packagers and indexes: licences, authors, keywords and classifiers, of the core and of every extension."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="part of Python from 3.11 on")

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT, *sorted(path.parent for path in ROOT.glob("extensions/*/pyproject.toml"))]


def project(package):
    """Read the table of a package's project file."""
    return tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_says_who_wrote_it_and_under_which_terms(package):
    found = project(package)
    assert found["license"] == "Apache-2.0"
    assert found["license-files"][0] == "LICENSE"
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert all((package / name).is_file() for name in found["license-files"])
    assert found["authors"]
    assert len(found["keywords"]) > 1


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_classifiers_are_known_and_true(package):
    known = pytest.importorskip("trove_classifiers", reason="comes with hatchling").classifiers
    classifiers = project(package)["classifiers"]
    assert set(classifiers) <= known
    assert "Typing :: Typed" in classifiers
    module = "nn_core" if package == ROOT else package.name
    assert (package / module / "py.typed").is_file()


#: Tests of the repository as a whole, or of other packages, which an sdist of the core does not hold.
OTHER_TESTS = {"integration", "packaging", "repository", "tools", "typing"}


def test_the_sdist_of_the_core_holds_its_own_tests_and_nothing_of_other_packages(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        paths = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    assert {path.parts[0] for path in paths if len(path.parts) > 1} == {"docs", "examples", "nn_core", "tests", "tools"}
    assert [path for path in paths if path.parts[0] == "tools"] == [Path("tools/nnabla/nnabla_names.txt")]
    folders = {path.parts[1] for path in paths if path.parts[0] == "tests" and len(path.parts) > 2}
    own = {path.parent.name for path in ROOT.glob("tests/*/*.py")} - OTHER_TESTS
    assert own <= folders and not folders & OTHER_TESTS


def test_the_licence_is_in_the_wheel(tmp_path):
    package = ROOT / "extensions" / "nn_ext_sklearn"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=package, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
        assert archive.read(name) == (ROOT / "LICENSE").read_bytes()
