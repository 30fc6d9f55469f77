"""The file of known failures."""

import pytest

from nn_core.errors import FileFormatError
from nn_core.testing.xfails import read_xfails


def test_lines_have_id_date_and_reason(tmp_path):
    path = tmp_path / "xfails.txt"
    path.write_text("# why\n\ntest_forward[cpu-Tanh-float32-far]  2026-03-01  loses digits at 80\ntest_xfails 2026-03-01 x\n")
    found = read_xfails(path)
    assert list(found) == ["test_forward[cpu-Tanh-float32-far]", "test_xfails"]
    assert found["test_forward[cpu-Tanh-float32-far]"].reason == "loses digits at 80"


def test_no_file_is_no_failure(tmp_path):
    assert read_xfails(tmp_path / "xfails.txt") == {}


@pytest.mark.parametrize("line", ["test_a", "test_a 2026-03-01", "test_a today because", "test a[b] 2026-03-01 because"])
def test_other_lines_are_refused(tmp_path, line):
    path = tmp_path / "xfails.txt"
    path.write_text(line)
    with pytest.raises(FileFormatError, match=r"xfails.txt:1: a line must read 'id  YYYY-MM-DD  reason', got"):
        read_xfails(path)


def test_an_id_stands_once(tmp_path):
    path = tmp_path / "xfails.txt"
    path.write_text("test_a 2026-03-01 one\ntest_a 2026-03-01 two")
    with pytest.raises(FileFormatError, match="2: an id must be listed once, got 'test_a' again"):
        read_xfails(path)
