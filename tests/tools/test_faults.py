"""Saving that fails: some faults in the tests, more by ``python -m tools.lanes.faults``; a planted fault is found."""

import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
from nn_core.files import Entry, formats
from tools.lanes import faults

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs limits on files, fork() and /proc"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.mark.parametrize("extension", faults.EXTENSIONS)
@pytest.mark.parametrize("fault", list(faults.FAULTS))
def test_a_save_that_fails_leaves_a_whole_file_and_nothing_else(fault: str, extension: str) -> None:
    assert list(faults.check(fault, extension, 10, 1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("extension", faults.EXTENSIONS)
@pytest.mark.parametrize("fault", list(faults.FAULTS))
def test_many_saves_that_fail(fault: str, extension: str) -> None:
    assert list(faults.check(fault, extension, 200, 2)) == []


@pytest.mark.parametrize("extension", faults.EXTENSIONS)
def test_a_folder_that_cannot_be_written_to(extension: str) -> None:
    with pytest.raises(OSError, match="/proc"):
        nn.save_parameters(Path(f"/proc/file{extension}"), {"w": nn.Variable((2,))})


def test_a_writer_that_overwrites_the_old_file_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def overwriting(target: Path, n_bytes: int = 0):
        with Path(target).open("wb") as file:
            yield file

    monkeypatch.setattr(formats, "atomic_writer", overwriting)
    monkeypatch.setattr(faults, "_mean", lambda path: float(np.fromfile(path, np.uint8).size))
    assert any("has become another" in text for text in faults.check("full disk", ".npz", 3, 1))
    assert isinstance(faults._entries(1)["layer0/w"], Entry)
