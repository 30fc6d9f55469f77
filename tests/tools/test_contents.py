"""The lanes of contents and of packages: a few of each have no finding, and planted faults are found."""

import inspect
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nn_core.training.ema import MovingAverage
from nn_core.training.loss_scale import LossScale
from tools.lanes import contents, packages


@pytest.mark.parametrize("kind", contents.KINDS)
def test_changed_contents_are_loaded_or_refused(kind: str) -> None:
    assert list(contents.check(kind, 8, 5)) == []


def test_a_state_that_is_not_checked_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LossScale, "set_state", inspect.unwrap(LossScale.set_state))
    monkeypatch.setattr(MovingAverage, "set_state", inspect.unwrap(MovingAverage.set_state))
    findings = list(contents.check("states of a program", 40, 1))
    assert findings and all("states of a program, seed 1, number" in text for text in findings)


def test_trees_are_changed_in_one_place() -> None:
    tree = {"a": [1, 2, {"b": np.zeros(3)}], "c": "text"}
    changes = [contents.changed(tree, np.random.default_rng(number)) for number in range(30)]
    assert sum(not contents._equal(change, tree) for change in changes) > 20
    assert tree["c"] == "text" and len(tree["a"]) == 3


def test_there_are_more_than_sixty_packages(tmp_path: Path) -> None:
    everything = packages.packages()
    assert len(everything) > 60
    for number, write in enumerate(everything.values()):
        write(tmp_path / str(number))
        assert list((tmp_path / str(number)).glob("*.dist-info/entry_points.txt"))


@pytest.mark.slow
def test_packages_leave_other_programs_alone() -> None:
    assert list(packages.check_together()) == []
    assert list(packages.check(1, 1)) == []


def test_a_package_that_changes_a_result_or_is_not_named_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs and doctor answer as they would if a package had got through."""

    def run(program: str, folder: str | None, **_: str) -> packages.Result:
        is_changed = folder is not None and program == packages.PROGRAM
        return subprocess.CompletedProcess([], 0, "other bits" if is_changed else "bits", "")

    monkeypatch.setattr(packages, "run", run)
    packages._undisturbed.cache_clear()
    together, (first, second) = list(packages.check_together()), list(packages.check(1, 1))
    packages._undisturbed.cache_clear()
    assert together == ["all packages together: a program gives other bits, bits without"]
    assert "a program gives other bits, bits without" in first
    assert "doctor ends with 0: bits" in second
