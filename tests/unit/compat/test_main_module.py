"""The main module, the arguments and the search path of programs under ``nn-core run``, compared with the interpreter."""

import os
import py_compile
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

#: Prints what the program knows of itself, imports a file beside it, and does both again in another folder.
PROGRAM = """
import os, sys
def told():
    main = sys.modules["__main__"]
    spec = main.__spec__ and (main.__spec__.name, main.__spec__.origin)
    loader = type(main.__loader__).__name__
    names = [__name__, main.__file__, main.__package__, main.__cached__]
    return [sys.path[0], sys.argv, names, spec, loader, sorted(vars(main))]
print(told(), sys.modules["__main__"].__dict__ is globals(), "__mp_main__" in sys.modules)
os.chdir(os.sep)
{imports}
print(sibling.__file__, told())
import multiprocessing
print(sys.modules["__mp_main__"] is sys.modules["__main__"])
raise ValueError("the end")
"""
SCRIPT = PROGRAM.format(imports="import sibling")
WAYS = [
    ["main.py"],
    ["folder/main.py"],
    ["folder/../folder/main.py"],
    ["folder/without_suffix"],
    ["folder/compiled.pyc"],
    ["link.py"],
    ["linked/main.py"],
    ["folder"],
    ["linked"],
    ["."],
    ["app.zip"],
    ["-m", "main"],
    ["-m", "package"],
    ["-m", "package.module"],
    ["-m", "folder.main"],  # a folder without __init__.py
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("programs").resolve()
    for name in ("folder", "package"):
        (root / name).mkdir()
        (root / name / "sibling.py").write_text("", encoding="utf-8")
    for name in ("main.py", "__main__.py", "folder/main.py", "folder/__main__.py", "folder/without_suffix"):
        (root / name).write_text(SCRIPT, encoding="utf-8")
    for name in ("__init__", "__main__", "module"):
        text = "" if name == "__init__" else PROGRAM.format(imports="from . import sibling")
        (root / "package" / f"{name}.py").write_text(text, encoding="utf-8")
    (root / "sibling.py").write_text("", encoding="utf-8")
    py_compile.compile(str(root / "folder" / "main.py"), cfile=str(root / "folder" / "compiled.pyc"))
    with zipfile.ZipFile(root / "app.zip", "w") as archive:
        archive.writestr("__main__.py", SCRIPT)
        archive.writestr("sibling.py", "")
    return root


def test_a_program_is_told_what_the_interpreter_tells_it(root, command, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    ways = WAYS
    if hasattr(os, "symlink") and sys.platform != "win32":
        (root / "link.py").symlink_to(root / "folder" / "main.py")
        (root / "linked").symlink_to(root / "folder")
    else:
        ways = [way for way in ways if "link" not in way[0]]
    for way in ways:
        words = [*way, "x", "--epochs"]
        expected = subprocess.run([sys.executable, *words], cwd=root, capture_output=True, text=True, check=False)
        assert (expected.returncode, expected.stdout.count("\n")) == (1, 3), (way, expected.stderr)
        found = command.run(["run", *words], root)
        assert found.stdout.replace("True True", "True False", 1) == expected.stdout, way
        assert (found.returncode, _own(found.stderr)) == (1, _own(expected.stderr)), way


def _own(traceback: str) -> tuple[str, str]:
    """Return the last place of a traceback, which starts with runpy where the interpreter runs a module, and the error."""
    lines = traceback.splitlines()
    return [line for line in lines if line.startswith("  File")][-1], lines[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "absent"], "No module named absent"),
        (["-m", "json"], "No module named json.__main__; 'json' is a package and cannot be directly executed"),
        (["-m", "sys"], "No code object available for sys"),
        (["empty"], "can't find '__main__' module in"),
    ],
)
def test_what_cannot_be_run_is_said_as_the_interpreter_does(tmp_path, command, words, message):
    (tmp_path / "empty").mkdir()
    python = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    result = command.run(["run", *words], tmp_path)
    assert message in python.stderr
    assert message in result.stderr
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("way", [["program.py"], ["-m", "program"]])
def test_instances_of_a_programs_classes_come_back_from_spawned_workers(tmp_path, command, way):
    code = """
        import multiprocessing, os
        class Point:
            def __init__(self, x):
                self.x = x
        def work(point):
            return Point(point.x + 1), os.path.basename(__file__)
        if __name__ == "__main__":
            os.chdir(os.sep)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                point, name = pool.apply_async(work, (Point(3),)).get(timeout=120)
            print(type(point) is Point, point.x, name)
    """
    Path(tmp_path, "program.py").write_text(textwrap.dedent(code), encoding="utf-8")
    result = command.run(["run", *way], tmp_path)
    assert (result.stdout, result.returncode) == ("True 4 program.py\n", 0), result.stderr
