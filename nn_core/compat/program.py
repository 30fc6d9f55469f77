"""Run an unmodified program that was written for NNabla."""

import io
import multiprocessing
import pkgutil
import sys
from collections.abc import Callable, Sequence
from importlib import util
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from multiprocessing import spawn
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from nn_core.compat.dropped import add_hint
from nn_core.compat.unchanged import run_unchanged

#: Exit status of a program that Ctrl-C ended, as shells report it.
_INTERRUPTED = 130


def run_program(program: str, arguments: Sequence[str], *, is_module: bool = False) -> int:
    """Run a script (or a module, as ``python -m`` does) as ``__main__``, with nn_core under NNabla's names.

    ``sys.argv``, ``sys.path`` and ``__main__`` are what the interpreter would set. An exception is printed as the interpreter
    would print it, without the frames that started the program; one about a name that NumPy 2 has dropped says what to write.
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
    if not getattr(sys.flags, "safe_path", False):  # else the first entry is not the interpreter's
        del sys.path[0]
    try:
        module, code = _module(program) if is_module else _script(program)
        # Processes of the method spawn call the module __mp_main__, and pickle instances of its classes by that name.
        sys.modules["__main__"] = sys.modules["__mp_main__"] = module
        exec(code, vars(module))
    except SystemExit:
        raise
    except BaseException as error:  # the interpreter reports every kind, too
        add_hint(error)
        own = _without_our_frames(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(own), own)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _script(program: str) -> tuple[ModuleType, CodeType]:
    """Return the module of a file, folder or archive and its code, and search for imports there first."""
    path = str(Path(program).absolute())  # known to the program also after it has changed the folder
    importer = None if program.endswith(".pyc") else pkgutil.get_importer(path)
    if importer is not None:
        sys.path.insert(0, path)
        spec = importer.find_spec("__main__")
        if spec is None:
            raise ImportError(f"can't find '__main__' module in {path!r}")
        return _from_spec(spec)
    sys.path.insert(0, str(Path(program).resolve().parent))
    if program.endswith(".pyc"):
        loader: Any = SourcelessFileLoader("__main__", path)
        return _main(file=path, loader=loader, cached=None), loader.get_code("__main__")
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    return _main(file=path, loader=SourceFileLoader("__main__", path), cached=None), code


def _module(name: str) -> tuple[ModuleType, CodeType]:
    """Return the module that ``python -m`` would run and its code, and search for imports in the current folder first."""
    sys.path.insert(0, str(Path.cwd()))
    sys.argv[0] = "-m"  # while the packages around the module are imported
    spec = util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        package, spec = name, util.find_spec(f"{name}.__main__")
        if spec is None:
            raise ImportError(f"No module named {package}.__main__; {package!r} is a package and cannot be directly executed")
    if spec is None:
        raise ImportError(f"No module named {name}")
    sys.argv[0] = spec.origin or name
    return _from_spec(spec)


def _from_spec(spec: ModuleSpec) -> tuple[ModuleType, CodeType]:
    """Return the module of a spec under the name ``__main__``, and its code."""
    loader: Any = spec.loader
    code = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        raise ImportError(f"No code object available for {spec.name}")
    told = {"loader": loader, "package": spec.parent, "spec": spec, "file": spec.origin, "cached": spec.cached}
    return _main(**told), code


def _main(**told: Any) -> ModuleType:
    """Return an empty module ``__main__`` with attributes; one that has annotations in the interpreter has them here, too."""
    module = ModuleType("__main__")
    if "__annotations__" in vars(sys.modules["__main__"]):
        told["annotations"] = {}
    vars(module).update({f"__{name}__": value for name, value in told.items()})
    return module


def _without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__") == __name__:
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
