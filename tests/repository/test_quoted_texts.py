"""Texts in messages are cut and quoted by one function, `quoted`: cutting by hand lets long words and odd characters out."""

import ast

import pytest

from tests.markdown import ROOT

FOLDERS = ("nn_core", "extensions", "examples")


def is_cut(node: ast.expr) -> bool:
    """Return whether an expression is the start of something: ``text[:60]``."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.lower is None


def is_repr(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("repr", "ascii")


def hand_made(source: str) -> list[int]:
    """Return the lines that cut a text in order to quote it, or cut the quoted text."""
    found = []
    for node in ast.walk(ast.parse(source)):
        in_message = isinstance(node, ast.FormattedValue) and node.conversion in (ord("r"), ord("a")) and is_cut(node.value)
        cuts_first = isinstance(node, ast.Call) and is_repr(node) and len(node.args) == 1 and is_cut(node.args[0])
        quotes_first = isinstance(node, ast.Subscript) and is_cut(node) and is_repr(node.value)
        if in_message or cuts_first or quotes_first:
            found.append(node.lineno)
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_text_is_cut_by_hand_in_a_message(folder):
    files = [path for path in (ROOT / folder).rglob("*.py") if path != ROOT / "nn_core" / "errors.py"]
    assert files
    found = {str(path.relative_to(ROOT)): hand_made(path.read_text(encoding="utf-8")) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_hand_made_cuts_are_found():
    found = ['f"got {text[:60]!r}"', "repr(text[:60])", "repr(text)[:60]", 'f"got {repr(text)[:LONGEST]}"', 'f"{text[:9]!a}"']
    allowed = ['f"got {quoted(text)}"', 'f"got {text!r}"', "text[:60]", "digest(repr(text))[:32]", 'f"{names[1:]!r}"']
    assert all(hand_made(line) for line in found)
    assert not any(hand_made(line) for line in allowed)
