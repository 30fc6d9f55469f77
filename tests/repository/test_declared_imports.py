"""Every package declares what it imports, and what its tests import: installed alone it works, and says what it lacks."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.markdown import ROOT

tomllib = pytest.importorskip("tomllib", reason="reads pyproject.toml")

FOLDERS = [ROOT, *sorted(path.parent for path in ROOT.glob("extensions/*/pyproject.toml"))]
#: The projects of modules that are called otherwise than their project.
PROJECTS = {
    "PIL": "pillow", "google": "protobuf", "sklearn": "scikit-learn", "yaml": "pyyaml", "cv2": "opencv-python",
    "cupy": "cupy-cuda13x", "tensorboardX": "tensorboardx",
}  # fmt: skip
#: Files whose imports a package need not declare, each with the reason.
EXEMPT = {
    "nn_core/cli/bench/programs": "started for frameworks that are installed",
    "nn_core/pyinstaller": "PyInstaller itself reads the hook",
    "nn_core/testing": "the conformance kit is a plugin of pytest, and who writes tests has it",
    "extensions/nn_ext_onnx/nn_ext_onnx/table.py": "writes docs/support.md of this repository",
    "extensions/nn_ext_cuda/nn_ext_cuda/device/runtime.py": "imported where the extra cuda12 or cuda13 was found",
    "extensions/nn_ext_cuda/nn_ext_cuda/nccl/engine.py": "imported where the extra cuda12 or cuda13 was found",
    "extensions/nn_ext_cuda/nn_ext_cuda/nvtx.py": "imported where the extra cuda12 or cuda13 was found",
    "extensions/nn_ext_caffe/tests/beside_opencv.py": "a program that compares layers with OpenCV's, by hand",
    "tests/nnabla_programs": "programs for NNabla, whose environment is another one",
    "tests/integration/test_tasks.py": "asks for frameworks by their names in a table",
    "tests/tools/test_mutations.py": "mutates the files of all packages of this repository",
}
#: Functions that say whether a module is there, or skip a test where it is not.
ASKING = ("find_spec", "importorskip")


class Import(NamedTuple):
    """One import: the first part of the module's name, the line, and whether it may fail."""

    module: str
    line: int
    is_guarded: bool


def imports(tree: ast.AST, guarded: frozenset[str] | None = frozenset()) -> Iterator[Import]:
    """Yield the imports of a file; `guarded` are the modules that were asked for before, None: all."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in modules_of(node):
                yield Import(name, node.lineno, guarded is None or name in guarded)
        elif isinstance(node, ast.Try) and any(catches_import_errors(handler) for handler in node.handlers):
            yield from imports(node, None)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports(ast.Module(node.orelse, []), guarded)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from imports(node, None if guarded is None else guarded | asked(node))
        else:
            yield from imports(node, guarded)


def modules_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [] if node.level or not node.module else [node.module.partition(".")[0]]


def catches_import_errors(handler: ast.ExceptHandler) -> bool:
    caught = "Exception" if handler.type is None else ast.unparse(handler.type)
    return re.search(r"\b(ImportError|ModuleNotFoundError|Exception)\b", caught) is not None


def asked(tree: ast.AST) -> set[str]:
    """Return the modules that a function or a file asks for before it imports them."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    names = [(ast.unparse(call.func).rpartition(".")[2], call.args[0]) for call in calls]
    return {
        str(argument.value).partition(".")[0]
        for name, argument in names
        if name in ASKING and isinstance(argument, ast.Constant)
    }


def skipped(tree: ast.Module) -> set[str]:
    """Return the modules without which a whole file of tests is skipped."""
    return {name for node in tree.body if isinstance(node, (ast.Expr, ast.Assign)) for name in asked(node)}


def project_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=~!;\s]", requirement)[0]).lower()


def declared(folder: Path, *extras: str) -> set[str]:
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project.get("optional-dependencies", {})
    return {
        project_of(text)
        for text in [*project["dependencies"], *(text for extra in extras for text in optional.get(extra, ()))]
    }


def undeclared(folder: Path, files: Path, known: set[str], own: set[str]) -> list[str]:
    """Return the imports of `files`, each with its place, that are neither in `known` nor guarded."""
    found = []
    for path in sorted(files.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if any(place.startswith(prefix) for prefix in EXEMPT):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for entry in imports(tree, frozenset(skipped(tree))):
            project = project_of(PROJECTS.get(entry.module, entry.module))
            if not (entry.module in sys.stdlib_module_names or entry.module in own or project in known or entry.is_guarded):
                found.append(f"{place}:{entry.line}: {project}")
    return found


def name_of(folder: Path) -> str:
    return "nn_core" if folder == ROOT else folder.name


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_package_declares_what_it_imports(folder):
    own = name_of(folder)
    assert undeclared(folder, folder / own, declared(folder), {own}) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_package_declares_what_its_tests_import(folder):
    # the tests are those of the repository: they share helpers, those in folders without __init__.py by a bare name
    helpers = {path.stem for one in FOLDERS for path in (one / "tests").rglob("*.py")}
    helpers |= {"tests", "tools", "examples", "benchmarks", "extensions"}
    if folder == ROOT:  # the tests of the core run beside all packages of this repository
        helpers |= {path.name for path in FOLDERS} | {path.stem for path in ROOT.glob("tools/**/*.py")}
    assert undeclared(folder, folder / "tests", declared(folder, "test"), {name_of(folder), "nn_core", *helpers}) == []


@pytest.mark.parametrize("prefix", EXEMPT)
def test_every_exemption_is_needed(prefix):
    path = ROOT / prefix
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    found = {entry.module for file in files for entry in imports(ast.parse(file.read_text(encoding="utf-8")))}
    assert found - set(sys.stdlib_module_names) - {"nn_core", "numpy"}


def test_undeclared_imports_are_found():
    found = list(imports(ast.parse(
        "import a.b\n"
        "if TYPE_CHECKING:\n    import typed\n"
        "try:\n    import c\nexcept ImportError:\n    c = None\n"
        "def f():\n    import d\n"
        "def g():\n    if find_spec('e.x') is None: raise ValueError\n    import e, f\n"
    )))  # fmt: skip
    assert [(entry.module, entry.is_guarded) for entry in found] == [
        ("a", False), ("c", True), ("d", False), ("e", True), ("f", False),
    ]  # fmt: skip
