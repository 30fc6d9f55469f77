"""The changelog and the fragments that the next release adds to it."""

import re
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="reading pyproject.toml needs Python 3.11")

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
KINDS = [kind["directory"] for kind in SETTINGS["type"]]


def project(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"]


def wrong_fragments(folder):
    """Return files that are not ``<package>/+<topic>.<kind>.md``, and those that are no bullet."""
    packages = {section["path"] for section in SETTINGS["section"]}
    found = [path for path in folder.rglob("*") if path.is_file() and path.name not in SETTINGS["ignore"]]
    pattern = re.compile(rf"({'|'.join(packages)})/\+[a-z0-9-]+\.({'|'.join(KINDS)})\.md")
    texts = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}
    return [name for name, text in texts.items() if not pattern.fullmatch(name) or not text.strip() or text[0] in "-#* "]


def test_fragments_name_a_package_and_a_kind():
    assert wrong_fragments(ROOT / "changes") == []


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("nn-core/+a-topic.fixed.md", "One line.\n", True),
        ("nn-core/a-topic.fixed.md", "One line.\n", False),
        ("nn-core/+a-topic.feature.md", "One line.\n", False),
        ("other/+a-topic.fixed.md", "One line.\n", False),
        ("nn-core/+a-topic.fixed.md", "- a bullet\n", False),
    ],
)
def test_wrong_fragments_are_found(tmp_path, name, text, right):
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(text)
    assert (wrong_fragments(tmp_path) == []) is right


def test_every_package_has_a_section():
    projects = [ROOT / "pyproject.toml", *ROOT.glob("extensions/*/pyproject.toml")]
    assert {section["path"] for section in SETTINGS["section"]} == {project(path) for path in projects}


def test_bullets_are_sorted_by_kind():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert SETTINGS["start_string"] in text
    for release in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        before, *parts = re.split(r"^### ", release, flags=re.MULTILINE)
        assert "- " not in before.partition("\n")[2]
        titles = [part.partition("\n")[0].lower() for part in parts]
        assert titles == [kind for kind in KINDS if kind in titles]
