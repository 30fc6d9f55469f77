"""Locks on files that are open as soon as their owner is dead, however it died."""

import json
import os
import socket
import time
import weakref
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from nn_core.files.atomic import atomic_writer
from nn_core.logger import logger

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where files that are open cannot be removed
    fcntl = None

#: Seconds in which a process writes its name after it has found a lock open; then it looks whether another one did.
_SETTLING: Final = 0.1
#: All locks of this process that are files held open, which forked children must not keep closed.
_HELD: Final["weakref.WeakSet[FileLock]"] = weakref.WeakSet()


@dataclass(frozen=True)
class Owner:
    """A process that holds a lock, and what tells it from a later process of the same number.

    Attributes:
        host: Name of the machine.
        pid: Number of the process.
        boot: What the system calls the time since it was started; empty where it has no name for it.
        started: When the process started, in the system's own unit; empty where that is not known.
    """

    host: str
    pid: int
    boot: str
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def is_alive(self) -> bool | None:
        """Return whether the process still runs; None: it is one of another machine."""
        own = this_process()
        if self.host != own.host:
            return None
        return self.boot == own.boot and _runs(self.pid) and self.started == _start_of(self.pid)


class FileLock:
    """A lock that `take_lock` has closed, until `release` or the end of the process.

    Args:
        path: Path of the file.
        handle: The open file whose lock the system keeps; None: the content of the file is the lock.
    """

    def __init__(self, path: Path, handle: int | None) -> None:
        self._path = path
        self._handle = handle
        if handle is not None:
            _HELD.add(self)

    def release(self) -> None:
        """Open the lock."""
        if self._handle is not None:
            self.forget()
        elif _owner_in(self._path) == this_process():
            with suppress(OSError):
                self._path.unlink()

    def forget(self) -> None:
        """Close the file in this process; where another one has inherited it, the lock stays closed."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _HELD.discard(self)
            os.close(handle)


def take_lock(path: Path) -> FileLock | Owner | None:
    """Close the lock of a file, which is made if it does not exist.

    The kernel holds it (``flock``) and opens it when the process dies. On file systems without such locks the file names
    its owner, which is alive if this machine, since it was started, has such a process; one of another machine
    is taken for dead, with a warning, so that nothing that is left behind blocks a later run.

    Returns:
        The lock; or who has closed it, None if that is not known.

    Raises:
        OSError: when the file cannot be made or written.
    """
    if fcntl is None:
        return _take_by_removing(path)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return _owner_in(path)
    except OSError:
        os.close(handle)
        return _take_by_content(path)
    except BaseException:
        os.close(handle)
        raise
    _write_owner(handle)
    return FileLock(path, handle)


def this_process() -> Owner:
    """Return this process as the owner of a lock."""
    return Owner(socket.gethostname(), os.getpid(), _boot(), _start_of(os.getpid()))


def _take_by_removing(path: Path) -> FileLock | Owner | None:
    try:
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except (PermissionError, FileExistsError):
        return _owner_in(path)
    _write_owner(handle)
    return FileLock(path, handle)


def _take_by_content(path: Path) -> FileLock | Owner | None:
    owner = _owner_in(path)
    if owner is not None and owner.is_alive():
        return owner
    if owner is not None and owner.is_alive() is None:
        logger.warning("%s: %s is taken for dead, since its file system has no locks", path, owner)
    with atomic_writer(path) as file:
        file.write(json.dumps(asdict(this_process())).encode())
    time.sleep(_SETTLING)  # of several that have found the lock open, the last to write its name has it
    found = _owner_in(path)
    return FileLock(path, None) if found == this_process() else found


def _write_owner(handle: int) -> None:
    os.ftruncate(handle, 0)
    os.write(handle, json.dumps(asdict(this_process())).encode())


def _owner_in(path: Path) -> Owner | None:
    try:
        content = json.loads(path.read_bytes())
        return Owner(str(content["host"]), int(content["pid"]), str(content["boot"]), str(content["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    try:
        # the name of the program, which may hold anything, ends with the last parenthesis; the start is field 22
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # a process of another user
        return True
    return True


def _forget_all() -> None:
    for lock in list(_HELD):
        lock.forget()


if hasattr(os, "register_at_fork"):
    # a worker that outlives a killed program would keep its locks closed
    os.register_at_fork(after_in_child=_forget_all)
