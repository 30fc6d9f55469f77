"""Programs written for NNabla print under ``nn-core run`` what NNabla printed for them.

The programs in tests/nnabla_programs are ours, in the style of NNabla's users. tools/nnabla/record_nnabla_programs.py wrote
the files ``.out``. Every word must be equal, and every number within the tolerance that a line ``# tolerance:`` of the
program states, relative to the recorded number but to 0.1 at least.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import forked_command

PROGRAMS = Path(__file__).parents[1] / "nnabla_programs"
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)(?!\w)")
TOLERANCE = 1e-4

#: Why a program does not agree yet; an agreement fails the test.
XFAILS = {
    line.split()[0]: line.partition(" ")[2].strip()
    for line in (PROGRAMS / "xfails.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}
NAMES = sorted(str(path.relative_to(PROGRAMS).with_suffix("").as_posix()) for path in PROGRAMS.glob("*/*.py"))


def tolerance_of(program):
    stated = re.search(r"^# tolerance: (\S+)$", program.read_text(encoding="utf-8"), re.MULTILINE)
    return float(stated[1]) if stated else TOLERANCE


def differences(recorded, printed, tolerance):
    """Pairs of lines that differ."""
    length = max(len(recorded), len(printed))
    padded = zip(*(lines + ["<nothing>"] * (length - len(lines)) for lines in (recorded, printed)), strict=True)
    return [f"NNabla  {theirs}\nnn_core {ours}" for theirs, ours in padded if not agree(theirs, ours, tolerance)]


def agree(theirs, ours, tolerance):
    if NUMBER.sub("#", theirs) != NUMBER.sub("#", ours):
        return False
    pairs = zip(map(float, NUMBER.findall(theirs)), map(float, NUMBER.findall(ours)), strict=True)
    return all(a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(abs(a), 0.1) for a, b in pairs)


#: Imported before the programs run.
MODULES = ("nn_core.functions", "nn_core.parametric_functions", "nn_core.solvers", "nn_core.compat.unchanged")


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Run the command `nn-core` in forks of one interpreter."""
    with forked_command(tmp_path_factory.mktemp("forked"), *MODULES) as command:
        yield command


def test_the_command_runs_a_program_in_an_interpreter_of_its_own(tmp_path):
    program = PROGRAMS / f"{NAMES[0]}.py"
    command = [sys.executable, "-m", "nn_core", "run", str(program)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(result.stdout.splitlines()) == len(program.with_suffix(".out").read_text(encoding="utf-8").splitlines()) - 1


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.xfail(reason=XFAILS[name], strict=True)] if name in XFAILS else [])
        for name in NAMES
    ],
)
def test_a_program_prints_what_it_prints_with_nnabla(name, command, tmp_path):
    program = PROGRAMS / f"{name}.py"
    result = command.run(["run", str(program)], tmp_path)
    assert result.returncode == 0, result.stderr
    versions, *recorded = program.with_suffix(".out").read_text(encoding="utf-8").splitlines()
    assert versions.startswith("# NNabla 1.")
    found = differences(recorded, result.stdout.splitlines(), tolerance_of(program))
    assert not found, "\n".join(found)


def test_the_reasons_are_about_programs_that_there_are():
    assert set(XFAILS) <= set(NAMES)
    assert all(XFAILS.values())


def test_there_are_programs_and_records_for_all():
    assert len(NAMES) >= 40
    assert len([name for name in NAMES if name.startswith("families/")]) >= 30
    assert [name for name in NAMES if not (PROGRAMS / f"{name}.out").exists()] == []


@pytest.mark.parametrize(
    ("theirs", "ours", "equal"),
    [
        ("loss 0.12345", "loss 0.12346", True),
        ("loss 0.12345", "loss 0.12445", False),
        ("loss 1e-3", "loss 0.001", True),
        ("loss 1.0", "cost 1.0", False),
        ("[nan, -inf]", "[nan, -inf]", True),
        ("[nan, -inf]", "[0.0, -inf]", False),
        ("conv1 (2, 3)", "conv2 (2, 3)", False),
        ("1 2", "1", False),
    ],
)
def test_lines_are_compared_by_words_and_numbers(theirs, ours, equal):
    assert agree(theirs, ours, TOLERANCE) is equal
