"""The lane of runs in folders: a few sequences have no finding, and planted faults are found."""

import os
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from nn_core.training import runs
from tools.lanes import states

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def test_runs_in_folders() -> None:
    assert list(states.check(40, 7)) == []


def _remove(folder: Any, run: Any) -> None:
    for path in folder._folder.iterdir():
        if path.is_file() and not path.name.startswith((".", "runs")):
            path.unlink()


FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "files are removed instead of moved": (runs.RunFolder, "_clear", _remove),
    "files stay where they are": (runs.RunFolder, "_clear", lambda *_: None),
    "an unfinished run is not in the way": (runs.RunFolder, "_refuse_unfinished", lambda *_: None),
    "a live run is not in the way": (runs, "take_lock", lambda path: runs.FileLock(path, None)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    assert next(states.check(200, 7), None) is not None


def test_starts_that_are_killed() -> None:
    """The model once took what a killed `overwrite` had not removed yet for files that must be kept."""
    assert not any(states.check_starts(["overwrite"], ["run"], step=4))


def test_a_start_that_cannot_be_completed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    clear = runs.RunFolder._clear

    def clear_anew(folder: Any, run: Any) -> None:
        shutil.rmtree(folder._folder / run.leaves_for, ignore_errors=True)
        clear(folder, run)

    monkeypatch.setattr(runs.RunFolder, "_clear", clear_anew)
    assert any(states.check_starts(["run"], ["run"], step=4))
