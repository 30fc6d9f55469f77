"""The graph package stays readable: every module has a place among the layers, and none is long."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for path in (ROOT / "nn_core" / "engine" / "graph").glob("*.py") if path.stem != "__init__")


def test_every_module_is_named_in_the_contract_of_layers():
    layers = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition('type = "layers"')[2]
    named = set(re.findall(r"nn_core\.engine\.graph\.(\w+)", layers))
    assert named == {path.stem for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_module_is_above_500_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500
