"""The lanes of hostile modules and hostile names: some steps of each have no finding, and planted faults are found."""

import re
from pathlib import Path

import pytest

from nn_core.__main__ import main
from nn_core.engine.runtime import terminal
from tools.lanes import hostile_modules, hostile_names

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The lane of names; its hook on audit events stays."""
    return hostile_names.Lane(tmp_path_factory.mktemp("names"))


@pytest.mark.parametrize("name", ["a parent", "an escape sequence", "NUL", "a link that leads out"])
def test_names_have_no_findings(names, name):
    cases = [
        hostile_names.Case(field, name, writer)
        for field, writer in [("OUTP", "forward"), ("NETW", "dump"), ("PARAM", "parameters to .npz")]
    ]
    assert [found for case in cases if (found := names.check(case))] == []


@pytest.mark.parametrize("name", ["a parent", "an absolute path", "NUL", "a line end", "no UTF-8", "a quote"])
def test_writers_of_programs_have_no_findings(names, name):
    cases = [hostile_names.Case(hostile_names.ARGUMENT, name, writer) for writer in hostile_names.NAMED_WRITERS]
    assert {case: found for case in cases if (found := names.check(case))} == {}


def test_a_writer_of_programs_that_leaves_its_folder_is_found_out(names, monkeypatch):
    monkeypatch.setitem(hostile_names.NAMED_WRITERS, "C", lambda name: Path("o", name).write_text("x"))
    assert "EVIL" in names.check(hostile_names.Case(hostile_names.ARGUMENT, "a parent", "C"))
    monkeypatch.setitem(hostile_names.NAMED_WRITERS, "C", lambda name: Path("o", name).touch())
    assert "ends in ValueError" in names.check(hostile_names.Case(hostile_names.ARGUMENT, "NUL", "C"))
    assert "makes the file" in names.check(hostile_names.Case(hostile_names.ARGUMENT, "a line end", "C"))


def test_what_is_written_elsewhere_or_printed_raw_is_found_out(names, monkeypatch):
    monkeypatch.setitem(hostile_names.WRITERS, "forward", lambda: Path("../evil").write_text("x"))
    case = hostile_names.Case("OUTP", "a parent", "forward")
    assert "evil" in names.check(case)
    monkeypatch.setattr(terminal, "escaped", str)
    assert "control characters" in names.check(hostile_names.Case("NETW", "an escape sequence", "dump"))


def test_every_command_that_writes_is_tried():
    tried = {words[0] for words in hostile_modules.COMMANDS}
    untried = {"upload", "create_tar", "create_image_classification_dataset", "create_object_detection_dataset"}
    untried |= {"check-extension", "new-operator"}  # slow: they install and test a package
    assert set(main.list_commands(None)) - tried - untried == set()


def test_a_module_that_is_imported_is_found_out(tmp_path):
    lane = hostile_modules.Lane(tmp_path)
    assert "imports fractions" in lane.check("import sys; sys.path.insert(0, ''); import fractions", ())


def test_commands_print_by_say():
    """Names from files reach a terminal with escapes only."""
    sources = [*ROOT.glob("nn_core/**/*.py"), *ROOT.glob("extensions/*/nn_ext_*/**/*.py")]
    own = ROOT / "nn_core" / "engine" / "runtime" / "terminal.py"
    raw = [path for path in sources if path != own and re.search(r"click\.s?echo", path.read_text(encoding="utf-8"))]
    assert raw == []
