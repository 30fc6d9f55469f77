"""Each package registers the markers of its tests, so that they also run without the options of the whole repository."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent for path in ROOT.glob("extensions/*/pyproject.toml"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_the_marker_of_slow_tests_is_registered(package):
    uses_it = any("pytest.mark.slow" in path.read_text(encoding="utf-8") for path in package.glob("tests/**/*.py"))
    registered = re.search(r'^markers = \["slow: ', (package / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert registered or not uses_it
