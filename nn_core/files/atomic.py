"""Files that are replaced as a whole, and the removal of what killed processes left of them."""

import errno
import io
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError, DiskFullError, FileFormatError, HostMemoryError, MissingFileError, one_line, quoted
from nn_core.files.entries import PathOrFile

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where files that are open cannot be removed
    fcntl = None

#: Longest path that a system takes.
_LONGEST_PATH: Final = 4096
_PARTIAL: Final = re.compile(r"\..+\.[0-9a-f]{8}\.partial")
#: Characters of the name of the target in that of its partial file: with four bytes each, it still has at most 255.
_SHOWN_CHARACTERS: Final = 50
#: Error numbers of a full disk, and of a quota that is used up.
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_DEFAULT_MODE: Final = 0o666
_PRIVATE_MODE: Final = 0o600


def is_full(error: OSError) -> bool:
    """Return whether an error says that a disk is full or a quota is used up."""
    return error.errno in _FULL


@fitted
@contextmanager
def atomic_writer(target: PathOrFile, n_bytes: int = 0) -> Iterator[IO[bytes]]:
    """Open a file to write to that replaces `target` only when the block ends without an exception.

    The bytes go to a new file in the same folder, which is synced and renamed; when the block raises, `target` is
    unchanged. The new file has the mode and, where the system allows it, the owner of the file that it replaces, before its
    first byte is written. A symbolic link stays, and the file that it points to is replaced; other hard links to that file
    keep its old contents. An open file is handed out as it is. `remove_leftovers` removes the files of killed processes.

    Raises:
        ArgumentError: when `target` is something else than a file, such as a folder or a device.
        MissingFileError: when the folder of `target` does not exist.
        DiskFullError: when there is no room, or a quota is used up; `target` is as it was.
        OSError: when the file cannot be written for another reason; `target` is as it was.

    Example:
        >>> from nn_core.ext import atomic_writer
        >>> with atomic_writer("notes.txt") as file:
        ...     _ = file.write(b"complete")
        >>> np.fromfile("notes.txt", "S8").tolist()
        [b'complete']
    """
    if not isinstance(target, (str, os.PathLike)):
        yield target
        return
    path = _real_path(target)
    unfinished = path.with_name(f".{path.name[:_SHOWN_CHARACTERS]}.{secrets.token_hex(4)}.partial")
    try:
        with _opened(unfinished, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # while the lock is held, so that nobody takes the file for a leftover
                unfinished.replace(path)
        if fcntl is None:
            unfinished.replace(path)
    except BaseException as error:
        n_written = unfinished.stat().st_size if unfinished.exists() else 0
        with suppress(NotADirectoryError):  # the folder is none
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and is_full(error):
            raise _disk_full(path, n_written, n_bytes) from error
        raise
    _sync_folder(path.parent)


def _disk_full(target: Path, n_written: int, n_bytes: int) -> DiskFullError:
    """Return the error about a file for which there was no room, once its unfinished part is removed."""
    free = shutil.disk_usage(target.parent).free
    needed = f", about {max(n_bytes, n_written):,} bytes" if n_bytes else ""
    return DiskFullError(
        f"{target}: there must be room for the whole file{needed}, got none after {n_written:,} bytes\n"
        f"  hint: {free:,} bytes are free in {target.parent}, or less by a quota; nothing was changed",
        os.fspath(target),
    )


def _opened(unfinished: Path, target: Path) -> IO[bytes]:
    """Open the unfinished file with the mode and the owner of the file that it will replace."""
    replaced = target.stat() if target.exists() else None
    if replaced is not None and not stat.S_ISREG(replaced.st_mode):
        raise ArgumentError(f"{target}: it must be a file or not exist, got {_kind(replaced.st_mode)}")
    try:
        file = open_locked(unfinished, _DEFAULT_MODE if replaced is None else _PRIVATE_MODE)
    except FileNotFoundError as error:
        folder = os.fspath(target.parent)
        text = f"{target}: the folder must exist, got none at {folder!r}\n  hint: Path({folder!r}).mkdir(parents=True)"
        raise MissingFileError(text, folder) from error
    except NotADirectoryError as error:
        raise ArgumentError(f"{target}: its folder must be a folder, got a file") from error
    if replaced is not None and hasattr(os, "fchmod"):
        with suppress(PermissionError):  # only a privileged process may give files away
            os.fchown(file.fileno(), replaced.st_uid, replaced.st_gid)
        os.fchmod(file.fileno(), stat.S_IMODE(replaced.st_mode))
    return file


def _kind(mode: int) -> str:
    return "a folder" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"


def _real_path(target: str | os.PathLike[str]) -> Path:
    """Return the path that is written: that which a link points to."""
    if "\0" in os.fspath(target):
        raise ArgumentError(f"a path must have no NUL character, got {quoted(os.fspath(target))}")
    path = Path(target)
    try:
        path.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ArgumentError(f"{_shown(path)}: a path must have names that the system takes, got one too long") from error
    if not path.is_symlink():
        return path
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        raise ArgumentError(f"{_shown(path)}: a link must lead to a file or a place for one, got a link to itself")
    return real


def _shown(path: str | os.PathLike[str]) -> str:
    """Return the path as it was given; the end of one that no system takes says nothing."""
    text = os.fspath(path)
    return text if len(text) <= _LONGEST_PATH else quoted(text)


@fitted
def open_to_read(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file for reading.

    Raises:
        MissingFileError: when it does not exist.
        FileFormatError: when it is a device, a pipe or a socket, which may never end, a folder, or a path that no file has.

    Example:
        >>> from nn_core.ext import open_to_read
        >>> open_to_read("/dev/zero")
        Traceback (most recent call last):
        nn_core.errors.FileFormatError: /dev/zero: it must be a regular file, got a device, a pipe or a socket
    """
    try:
        require_regular(path)
        return io.BufferedReader(_File(os.fspath(path)))
    except FileNotFoundError as error:
        name = os.fspath(path)
        hint = "" if Path(path).is_absolute() else f"\n  hint: the path is relative to {Path.cwd()}"
        raise MissingFileError(f"{name}: the file must exist, got none{hint}", name) from error
    except (IsADirectoryError, NotADirectoryError, ValueError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{os.fspath(path)}: it must be a regular file, got: {one_line(error)}") from error
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENAMETOOLONG):  # the others, such as permissions, are not about the path
            raise
        raise FileFormatError(f"{_shown(path)}: it must be a regular file, got: {error.strerror}") from error


class _File(io.FileIO):
    """A file whose errors while it is read name it: those of the system, and a size beyond the memory, as of a sparse file."""

    def readinto(self, buffer: Any) -> int:
        """Read what fits into a buffer."""
        with self._named():
            return super().readinto(buffer)

    def readall(self) -> bytes:
        """Read all that is left."""
        with self._named():
            return super().readall()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except IsADirectoryError:  # opening refuses folders
            raise
        except OSError as error:
            raise FileFormatError(f"{_shown(self.name)}: the file must be readable, got: {error.strerror}") from error
        except MemoryError as error:
            size = os.fstat(self.fileno()).st_size
            raise HostMemoryError(
                f"{_shown(self.name)}: the file must fit into the memory of the host, got {size} bytes\n"
                "  hint: free other arrays, or read it where there is more memory"
            ) from error


def require_regular(path: str | os.PathLike[str]) -> None:
    """Refuse to read a device, a pipe or a socket; opening a pipe would wait for a writer.

    Raises:
        FileFormatError: when `path` is one; of a folder or a missing file, opening says so.
        FileNotFoundError: when it does not exist.
    """
    mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise FileFormatError(f"{os.fspath(path)}: it must be a regular file, got {_kind(mode)}")


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file; raises what `open_to_read` does."""
    with open_to_read(path) as file:
        return file.read()


def remove_leftovers(folder: Path) -> None:
    """Remove the partial files of `atomic_writer` in `folder` whose writers are dead.

    A writer holds a lock on its file until it closes it, and the system opens the locks of killed processes.
    """
    for path in _partial_files(folder):
        with suppress(OSError):
            remove_if_unlocked(path)


def has_unfinished(folder: Path) -> bool:
    """Tell whether a living process writes a file in `folder` by `atomic_writer`; those of dead ones are removed."""
    remove_leftovers(folder)
    return bool(_partial_files(folder))


def _partial_files(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder) if _PARTIAL.fullmatch(entry.name)]
    except OSError:  # saving will say what is wrong with the folder
        return []


def open_locked(path: Path, mode: int = _DEFAULT_MODE) -> IO[bytes]:
    """Create a file and lock it as long as it is open, so that other processes see that its owner is alive.

    Args:
        path: The file.
        mode: Its permissions, less the umask.
    """
    while True:
        file = open(path, "x+b", opener=partial(os.open, mode=mode))  # noqa: SIM115  # the caller closes it
        try:
            if _is_locked_in_place(file, path):
                return file
        except BaseException:
            file.close()
            path.unlink(missing_ok=True)
            raise
        file.close()


def _is_locked_in_place(file: IO[bytes], path: Path) -> bool:
    """Lock a file; False: another process took it for a leftover between its creation and the lock."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # a file system without locks, on which no leftovers are removed
        return True
    return path.exists()


def remove_if_unlocked(path: Path) -> bool:
    """Remove a file unless a living process holds its lock; whether it was removed.

    Raises:
        OSError: when the file cannot be opened, locked or removed.
    """
    if fcntl is None:
        path.unlink()
        return True
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power failure, where the system can sync folders."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        return
    finally:
        os.close(handle)
