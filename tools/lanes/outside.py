"""Notice files that are touched outside of a folder, other processes and connections: by Python's audit events.

The process that tries files of HDF5 before they are read, and the one by which `platform` asks for the processor, are known,
and nobody minds them.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nn_core.files.probe_subprocess import PROGRAM

#: Events about a path, and those that there must not be at all.
_PATHS = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.listdir")
_NEVER = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "webbrowser.open")
_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: Folders that Python and its packages read from while they work.
_CODE = (sys.prefix, sys.base_prefix, Path(__file__).parents[2], "/usr")
_READABLE = tuple(os.path.realpath(path) for path in (*_CODE, "/etc", "/proc", "/sys"))


class Outside:
    """A record of events outside of a folder, which `of` names. The hook stays in the process for good.

    Attributes:
        touched: in the last use of `of`, an event and a path each.
    """

    def __init__(self) -> None:
        self.touched: list[str] = []
        self._folder: str | None = None
        sys.addaudithook(self._notice)

    @contextmanager
    def of(self, folder: Path) -> Iterator[None]:
        """Notice what is touched outside of `folder`."""
        self.touched.clear()
        writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # of modules that are imported meanwhile
        self._folder = os.path.realpath(folder)
        try:
            yield
        finally:
            self._folder, sys.dont_write_bytecode = None, writes_bytecode

    def _notice(self, event: str, args: tuple[Any, ...]) -> None:
        if self._folder is None:
            return
        if event in _NEVER:
            if event != "subprocess.Popen" or not any(word == "uname" or PROGRAM in word for word in args[1]):
                self.touched.append(f"{event} {args[:2]!r}"[:200])
        elif event == "open" or event in _PATHS:
            path = args[0]
            if not isinstance(path, (str, bytes, os.PathLike)):
                return  # a file that is open already
            if path == os.devnull:
                return
            whole = os.path.realpath(os.fsdecode(path))
            is_read = event == "os.listdir" or (event == "open" and not int(args[2] or 0) & _WRITE)
            if not _is_in(whole, self._folder) and not (is_read and self._may_be_read(whole)):
                self.touched.append(f"{event} {whole}")

    @staticmethod
    def _may_be_read(path: str) -> bool:
        return any(_is_in(path, root) for root in _READABLE)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)
