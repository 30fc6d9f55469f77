"""Free-threaded interpreters."""

import sys

import pytest

import nn_core
from nn_core.engine.runtime.gil import require_gil


def test_an_interpreter_with_its_lock_is_accepted(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    require_gil()


def test_a_free_threaded_interpreter_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(ImportError, match=r"(?s)must run with its global interpreter lock, got .*hint: set PYTHON_GIL=1"):
        require_gil()
    assert nn_core._require_gil is require_gil
