"""Run an unmodified program that was written for NNabla."""

import io
import multiprocessing
import pkgutil
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from multiprocessing import spawn
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from nn_core.compat.dropped import add_hint
from nn_core.compat.unchanged import run_unchanged

#: Exit status of a program that Ctrl-C ended, as shells report it.
_INTERRUPTED = 130


def run_program(program: str, arguments: Sequence[str], *, is_module: bool = False) -> int:
    """Run a script (or a module, as ``python -m`` does) as ``__main__``, with nn_core under NNabla's names.

    ``sys.argv`` and ``sys.path`` are what the interpreter would set. An exception is printed as the interpreter would
    print it, without the frames that started the program; one about a name that NumPy 2 has dropped says what to write.
    Processes that `multiprocessing` starts, by any method, and other interpreters that inherit the environment find the
    same names; see `nn_core.compat.unchanged`.

    Args:
        program: path of a script, or of a folder or archive with ``__main__.py``; name of a module.
        arguments: what follows the program's name in ``sys.argv``.
        is_module: whether `program` names a module.

    Returns:
        The exit status, unless the program ends with SystemExit, which is passed on.
    """
    run_unchanged()
    _install_in_children()
    sys.argv = [program, *arguments]
    is_safe = getattr(sys.flags, "safe_path", False)  # then the first place is none of the interpreter's
    sys.path[: not is_safe] = [str(Path.cwd() if is_module else Path(program).resolve().parent)]
    try:
        if is_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        elif program.endswith(".pyc") or pkgutil.get_importer(program) is not None:
            runpy.run_path(program, run_name="__main__")
        else:
            _run_script(Path(program).absolute())
    except SystemExit:
        raise
    except BaseException as error:  # the interpreter reports every kind, too
        add_hint(error)
        own = _without_our_frames(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(own), own)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run_script(path: Path) -> None:
    """Run a file as the interpreter does: it knows its whole path, also after it has changed the folder."""
    module = ModuleType("__main__")
    vars(module).update(__file__=str(path), __loader__=SourceFileLoader("__main__", str(path)), __cached__=None)
    with io.open_code(str(path)) as file:
        code = compile(file.read(), str(path), "exec", dont_inherit=True)
    sys.modules["__main__"] = module
    exec(code, vars(module))


def _without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
        traceback = traceback.tb_next
    return traceback


def _install_in_children() -> None:
    """Let the children of `multiprocessing` install the names before they import the program.

    A child that is not forked reads what the parent has prepared, and imports the program next. What is added here is
    installed while it is read. The server of the method forkserver prepares nothing but the names, since it would
    import the program without them.
    """
    if not isinstance(spawn.get_preparation_data, _Preparation):
        spawn.get_preparation_data = _Preparation(spawn.get_preparation_data)
        multiprocessing.set_forkserver_preload(["nn_core.compat.nnabla"])


class _Preparation:
    """The function that prepares a child process, with the names of NNabla added."""

    def __init__(self, prepare: Callable[[str], dict[str, Any]]) -> None:
        self._prepare = prepare

    def __call__(self, name: str) -> dict[str, Any]:
        return {"nn_core.compat": _Installing(), **self._prepare(name)}


class _Installing:
    """Calls `run_unchanged` where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return run_unchanged, ()
