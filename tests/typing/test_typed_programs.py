"""Typed programs of users run, and type checkers accept them and reject what is wrong."""

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import nn_core as nn

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_typed_programs_run(path):
    with nn.parameter_scope("program", {}):
        runpy.run_path(str(path))


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 20
    assert (HERE / "wrong" / "calls.py").read_text(encoding="utf-8").count("# rejected") >= 40


@pytest.mark.slow
def test_checkers_accept_and_reject_them():
    pytest.importorskip("mypy")
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    tool = HERE.parent.parent / "tools" / "check_types.py"
    done = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
