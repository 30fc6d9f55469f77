"""Words of libraries stay on one line of a message: further lines may be those of a file, and look like our advice."""

import ast

import pytest

from tests.markdown import ROOT

FOLDERS = ("nn_core", "extensions")
#: Exceptions whose words repeat nothing of a file but its path, between quotes; those of nn_core say where lines end.
OWN_WORDS = {"OSError", "FileNotFoundError", "ImportError", "ModuleNotFoundError", "UnicodeDecodeError", "KeyError"}


def caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"BaseException"}
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(one).rpartition(".")[2] for one in types}


def ours() -> set[str]:
    tree = ast.parse((ROOT / "nn_core" / "errors.py").read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def foreign_words(source: str, own: set[str]) -> list[int]:
    """Return the lines where the text of a foreign exception becomes that of a FileFormatError as it stands."""
    found = []
    for handler in ast.walk(ast.parse(source)):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None or caught(handler) <= own:
            continue
        for node in ast.walk(handler):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("FileFormatError"):
                values = [
                    value for value in ast.walk(node) if isinstance(value, ast.FormattedValue) and value.conversion == -1
                ]
                found += [
                    value.lineno for value in values if ast.unparse(value.value) in (handler.name, f"{handler.name}.__cause__")
                ]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_text_of_a_library_is_repeated_with_its_line_ends(folder):
    own = ours() | OWN_WORDS
    files = [path for path in (ROOT / folder).rglob("*.py") if "tests" not in path.relative_to(ROOT).parts]
    found = {str(path.relative_to(ROOT)): foreign_words(path.read_text(encoding="utf-8"), own) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_repeated_texts_are_found():
    start = "try:\n    parse()\nexcept {} as error:\n    raise FileFormatError(f'got: {{{}}}') from error\n"
    own = {"OSError", "FileFormatError"}
    assert foreign_words(start.format("ValueError", "error"), own) == [4]
    assert foreign_words(start.format("(OSError, yaml.YAMLError)", "error"), own) == [4]
    assert foreign_words(start.format("Exception", "error.__cause__"), own) == [4]
    assert foreign_words(start.format("ValueError", "one_line(error)"), own) == []
    assert foreign_words(start.format("(OSError, FileFormatError)", "error"), own) == []
