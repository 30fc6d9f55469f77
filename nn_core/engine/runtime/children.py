"""Commands of child processes that run Python code of the project.

``python -c`` and ``python -m`` put the current directory first on the search path, where a file named ``numpy.py`` or
``resource.py`` would be imported. The children of this module search where their parent does, without its current directory.
Those of `multiprocessing` cannot be told to: `shadowed_module` finds what they would import by mistake.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

#: Switches of the interpreter, and the attributes of ``sys.flags`` that tell how often each was given.
_SWITCHES: Final = {
    "-I": "isolated",
    "-E": "ignore_environment",
    "-P": "safe_path",
    "-s": "no_user_site",
    "-S": "no_site",
    "-B": "dont_write_bytecode",
    "-O": "optimize",
    "-b": "bytes_warning",
}
_PACKAGES: Final = str(Path(__file__).resolve().parents[3])


def python_command(program: str, *arguments: str, paths: Sequence[str] = ()) -> list[str]:
    """Return a command that runs a program in a new interpreter, without importing from the current directory.

    The child has the switches, the warning filters and the search path of this interpreter.

    Args:
        program: The source of the program.
        arguments: Its arguments, ``sys.argv[1:]``.
        paths: Folders to search before those of this process.

    Example:
        >>> import subprocess
        >>> from nn_core.ext import python_command
        >>> command = python_command("import sys; print('.' in sys.path, sys.argv[1])", "an argument")
        >>> subprocess.run(command, capture_output=True, text=True).stdout.split()
        ['False', 'an', 'argument']
    """
    search = [*paths, *_search_path()]
    # ``sys`` is built in: nothing is imported before the search path is set.
    return [sys.executable, *_switches(), "-c", f"import sys; sys.path[:] = {search!r}\n{program}", *arguments]


def module_command(module: str, *arguments: str, paths: Sequence[str] = ()) -> list[str]:
    """Return a command that runs a module as ``python -m`` does, without importing from the current directory."""
    program = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return python_command(program, *arguments, paths=paths)


def repeated_command() -> list[str]:
    """Return the command that started this process.

    Example:
        >>> import sys
        >>> from nn_core.ext import repeated_command
        >>> repeated_command()[0] == sys.executable
        True
    """
    return [sys.executable, *sys.orig_argv[1:]]


def shadowed_module() -> str | None:
    """Return the path of a module in the current directory that a process of `multiprocessing` would import, or None.

    Such a process imports modules of the standard library before it is told the search path of its parent: these are
    among those that its parent has imported. A parent that searches the current directory itself imports what it finds there.
    """
    current = os.path.realpath(os.curdir)
    if getattr(sys.flags, "safe_path", False) or current in map(os.path.realpath, sys.path):
        return None
    for name in sorted(sys.stdlib_module_names.intersection(sys.modules)):
        found = PathFinder.find_spec(name, [current])
        if found is not None and found.origin is not None:  # a folder without __init__.py hides nothing
            return found.origin
    return None


def _search_path() -> list[str]:
    """Return the search path without the current directory, unless nn_core itself is imported from there."""
    current = os.path.realpath(os.curdir)
    found = [path for path in sys.path if path and os.path.realpath(path) != current]
    return [*found, _PACKAGES] if current == _PACKAGES else found


def _switches() -> Iterator[str]:
    """Return the switches of this interpreter that matter to its children."""
    for switch, attribute in _SWITCHES.items():
        yield from [switch] * int(getattr(sys.flags, attribute, 0))
    yield from (f"-W{option}" for option in sys.warnoptions)
    yield from ("-Xdev",) * sys.flags.dev_mode
    yield from ("-Xutf8",) * sys.flags.utf8_mode
