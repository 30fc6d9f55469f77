"""The files that CI installs: every direct dependency, pinned with a hash, from no particular index; bounds of releases."""

import re
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = None

ROOT = Path(__file__).parents[2]
LINES = [line for line in (ROOT / "constraints" / "ci.txt").read_text().splitlines() if not line.startswith("#")]
#: Ray has a target of its own, make test-ray.
NOT_IN_CI = ("nn_ext_ray",)
PACKAGES = [ROOT / "pyproject.toml", *sorted(ROOT.glob("extensions/*/pyproject.toml"))]
PROJECTS = [path for path in PACKAGES if path.parent.name not in NOT_IN_CI]
#: Extras that CI installs; those of devices and of the documentation are left out.
EXTRAS = ("test", "lint", "examples", "viewer", "mpich")
#: A new major release of these has broken programs before, or may break the build.
BOUNDED = {
    "numpy", "pluggy", "h5py", "click", "protobuf", "onnx", "onnxruntime", "mpi4py", "ml-dtypes", "pybind11", "tensorboardx",
    "ray", "hatchling", "scikit-build-core", "cupy-cuda12x", "cupy-cuda13x", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13",
}  # fmt: skip

pytestmark = pytest.mark.skipif(tomllib is None, reason="reads pyproject.toml by tomllib")


def name_of(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def pins() -> dict[str, str]:
    return dict(line.split(" ")[0].split("==") for line in LINES)


def requirements(path: Path, *, all_extras: bool) -> list[Requirement]:
    content = tomllib.loads(path.read_text())
    texts = [*content["project"]["dependencies"], *content["build-system"]["requires"]]
    for extra, names in content["project"].get("optional-dependencies", {}).items():
        texts += names if all_extras or extra in EXTRAS else []
    found = [Requirement(text) for text in texts]
    return [entry for entry in found if not name_of(entry.name).startswith("nn-")]


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_wheels_hold_the_package_of_their_project_alone(path: Path) -> None:
    content = tomllib.loads(path.read_text())
    wheel = content.get("tool", {}).get("hatch", {}).get("build", {}).get("targets", {}).get("wheel", {})
    own = content["project"]["name"].replace("-", "_")
    assert (path.parent / own / "__init__.py").is_file()
    assert wheel.get("packages", [own]) == [own]


def test_every_line_is_a_pin_with_a_hash() -> None:
    names = list(pins())
    assert names == sorted(names)
    for line in LINES:
        assert re.fullmatch(r"[a-z0-9-]+==[A-Za-z0-9.+!]+ --hash=sha256:[0-9a-f]{64}", line), line


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_what_is_pinned_is_what_the_projects_ask_for(path: Path) -> None:
    environment = {**default_environment(), "sys_platform": "linux", "platform_machine": "x86_64"}
    for entry in requirements(path, all_extras=False):
        if entry.marker is None or entry.marker.evaluate(environment):
            assert entry.specifier.contains(pins()[name_of(entry.name)], prereleases=True), entry


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_what_may_break_has_an_upper_bound(path: Path) -> None:
    for entry in requirements(path, all_extras=True):
        if name_of(entry.name) in BOUNDED:
            assert any(bound.operator in ("<", "<=", "==") for bound in entry.specifier), entry
