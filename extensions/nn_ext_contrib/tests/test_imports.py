"""The package imports what third parties may import, and no other module of nn_core."""

import ast
from pathlib import Path

import nn_ext_contrib

FOLDER = Path(nn_ext_contrib.__file__).parent
#: By the end of the path of a file: samples are for the conformance kit.
ALLOWED = {"samples.py": ("nn_core.ext", "nn_core.testing", "nn_core.testing.drawing")}


def modules_of_the_core(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "nn_core")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "nn_core":
            yield from ([node.module] if node.module != "nn_core" else [f"nn_core.{alias.name}" for alias in node.names])


def test_the_door_is_all_that_is_imported_of_nn_core():
    wrong = {
        f"{path.relative_to(FOLDER)}: {name}"
        for path in FOLDER.rglob("*.py")
        for name in modules_of_the_core(ast.parse(path.read_text("utf-8")))
        if name not in ALLOWED.get(path.name, ("nn_core.ext",))
    }
    assert wrong == set()


def test_other_imports_are_found():
    tree = ast.parse("import nn_core.functions as F\nfrom nn_core import ext, variable\nfrom nn_core.ext import gradient")
    assert [*modules_of_the_core(tree)] == ["nn_core.functions", "nn_core.ext", "nn_core.variable", "nn_core.ext"]
