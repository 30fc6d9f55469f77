"""The Makefile: short parts by subject, targets that are listed with a line of help, and no host of an index."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = sorted(ROOT.glob("make/*.mk"))


def text_of(path):
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [ROOT / "Makefile", *PARTS], ids=lambda path: path.name)
def test_a_part_is_short_and_names_its_targets(path):
    text = text_of(path)
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", text, re.MULTILINE))
    assert text.count("\n") <= 120
    assert set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split()) == targets
    assert set(re.findall(r"^([a-z][a-z-]*):.* ## \w", text, re.MULTILINE)) == targets
    assert not re.search(r"https?://|\bpypi\b", text, re.IGNORECASE)


def test_every_part_is_included():
    (included,) = re.findall(r"^include (.*)$", text_of(ROOT / "Makefile"), re.MULTILINE)
    assert sorted(included.split()) == [f"make/{path.name}" for path in PARTS]


def test_help_lists_the_targets_by_group():
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in PARTS:
        title = text_of(path).splitlines()[0].removeprefix("##@ ")
        group = shown.split(f"\n{title}\n")[1].split("\n\n")[0]
        assert {line.split()[0] for line in group.splitlines()} == set(
            re.findall(r"^([a-z-]+):.* ## ", text_of(path), re.MULTILINE)
        )


def test_interpreters_that_tests_start_keep_what_they_compile():
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    program = 'include Makefile\nshown: ; @echo "got=$$PYTHONDONTWRITEBYTECODE."\n'
    done = subprocess.run(
        ["make", "-s", "-f", "-", "shown"],
        cwd=ROOT,
        env=environment,
        input=program,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "got=."
