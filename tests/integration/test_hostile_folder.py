"""Commands and readers in a folder of hostile modules: nothing is imported from the current directory."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from nn_core.engine.runtime.children import module_command, python_command, repeated_command

ROOT = Path(__file__).parents[2]
#: Modules that children of nn_core import: of the standard library, of packages, and those that Python itself looks for.
NAMES = (
    *("resource", "json", "runpy", "signal", "tempfile", "subprocess", "ctypes", "pathlib", "zipfile", "ast", "typing"),
    *("multiprocessing", "socket", "selectors", "threading"),
    *("numpy", "h5py", "yaml", "pluggy", "click", "importlib_metadata", "mpi4py", "pytest", "nn_core", "nn_ext_cpu"),
    *("sitecustomize", "usercustomize"),
)
LOAD = "import nn_core as nn; nn.load_parameters('foreign.h5'); print(*nn.get_parameters())"
#: Reads samples in a worker process.
WORKERS = """
import numpy as np
from nn_core.data.iterator import DataIterator
from nn_core.data.source import SimpleDataSource

def load(index):
    return (np.array([index]),)

if __name__ == "__main__":
    with DataIterator(SimpleDataSource(load, 2), 2, workers=1, worker_type="process") as samples:
        print(samples.next()[0].tolist())
"""
#: Arguments of nn-core, and a word of the answer.
COMMANDS = [
    (("doctor", "nnp", "mpi"), "nnp"),
    (("info",), "nn-core"),
    (("ops", "tanh"), "tanh"),
    (("explain", "Tanh"), "Tanh"),
    (("dump", "foreign.h5"), "Parameters: 1"),
    (("new-extension", "acme", "--kind", "functions"), ""),
]


@pytest.fixture
def hostile(tmp_path):
    """Return a folder of modules that leave their names in a file when they are imported."""
    folder, ran = tmp_path / "hostile", tmp_path / "ran"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write('{name} ')\nraise SystemExit(9)\n")
    with h5py.File(folder / "foreign.h5", "w") as file:
        file.create_dataset("conv/W", data=np.ones((2, 3), np.float32), chunks=(1, 3), compression="gzip")  # read on trial
    yield folder
    assert not ran.exists(), f"imported from the current directory: {ran.read_text()}"


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-I",), ("-I", "-OO"), ("-E", "-W", "error")], ids=" ".join)
def test_parameters_of_another_program(hostile, flags):
    started = python_command(LOAD)
    done = run(hostile, started[0], *flags, *started[started.index("-c") :])
    assert "conv/W" in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("words", "answer"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_commands(hostile, words, answer):
    done = run(hostile, sys.executable, "-I", "-m", "nn_core", *words)
    assert answer in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="nn_ext_mpi is not installed")
def test_launch(hostile, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, nn_core; sys.stdout.write(' '.join(sys.argv[1:]) + ';')\n")
    done = run(hostile, sys.executable, "-I", "-m", "nn_core", "launch", "--root", "-n", "2", str(program), "a", "b")
    assert done.stdout.count("a b;") == 2, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multiprocessing.py", "socket/__init__.py", "selectors.pyc"])
def test_workers_of_a_data_iterator_are_refused_where_they_would_import_a_module_by_mistake(hostile, tmp_path, name):
    for path in [*hostile.glob("*.py")]:
        path.unlink()
    (hostile / name).parent.mkdir(exist_ok=True)
    (hostile / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')")
    (program := tmp_path / "program.py").write_text(WORKERS)
    done = run(hostile, sys.executable, str(program))
    assert "the current directory must have no modules called like those of Python" in done.stderr, done.stderr
    (hostile / name).unlink()
    assert run(hostile, sys.executable, str(program)).stdout == "[[0], [1]]\n"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no switch -P")
def test_workers_of_a_data_iterator_have_the_switch_of_their_parent(hostile, tmp_path):
    (program := tmp_path / "program.py").write_text(WORKERS)
    done = run(hostile, sys.executable, "-P", str(program))
    assert done.stdout == "[[0], [1]]\n", done.stderr


def test_a_child_has_the_search_path_and_the_switches_of_its_parent(hostile, monkeypatch, tmp_path):
    monkeypatch.chdir(hostile)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), "", str(hostile), *sys.path])
    monkeypatch.setattr(sys, "warnoptions", ["ignore::UserWarning"])
    command = python_command("print(sys.path); print(sys.warnoptions, sys.argv)", "one", paths=["zero"])
    path, rest = run(hostile, *command).stdout.splitlines()
    expected = ["zero", str(tmp_path / "first"), *(name for name in sys.path[3:] if name)]
    assert path == repr(expected)
    assert rest == "['ignore::UserWarning'] ['-c', 'one']"


def test_a_checkout_that_is_the_current_directory_is_searched_last(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    found = run(ROOT, *python_command("print(sys.path[-1])")).stdout.strip()
    assert found == str(ROOT)


def test_modules_run_as_programs(tmp_path):
    (tmp_path / "acme_tool.py").write_text("import sys; print(__name__, sys.argv[1:])\n")
    done = run(tmp_path.parent, *module_command("acme_tool", "-v", paths=[str(tmp_path)]))
    assert done.stdout == "__main__ ['-v']\n"
    assert repeated_command()[1:] == sys.orig_argv[1:]


def test_every_child_is_started_by_these_commands():
    """The only other mention of the interpreter is the rank of ``nn-core launch``, which has the folder of its program."""
    allowed = {"nn_core/engine/runtime/children.py": 2, "extensions/nn_ext_mpi/nn_ext_mpi/command.py": 1}
    packages = [ROOT / "nn_core", *ROOT.glob("extensions/nn_ext_*/nn_ext_*")]
    found = {}
    for path in (path for package in packages for path in sorted(package.rglob("*.py"))):
        starts = re.findall(r"[\[(]\s*sys\.executable\s*,", path.read_text())
        if starts:
            found[path.relative_to(ROOT).as_posix()] = len(starts)
    assert found == allowed
