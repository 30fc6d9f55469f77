"""Files that are replaced as a whole, and the removal of what killed processes left of them."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from nn_core.errors import MissingFileError
from nn_core.files.entries import PathOrFile

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where files that are open cannot be removed
    fcntl = None

_PARTIAL: Final = re.compile(r"\..+\.[0-9a-f]{8}\.partial")


@contextmanager
def atomic_writer(target: PathOrFile) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `target` only when the block ends well.

    The bytes go to a new file in the same folder, which is synced and renamed; when the block raises, `target` is as it
    was. An open file is handed out as it is. What a killed process leaves is removed by `remove_leftovers`.

    Raises:
        MissingFileError: when the folder of `target` does not exist.
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
    path = Path(target)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with _opened(partial, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # while the lock is held, so that nobody takes the file for a leftover
                partial.replace(path)
        if fcntl is None:
            partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _opened(partial: Path, target: Path) -> IO[bytes]:
    try:
        return open_locked(partial)
    except FileNotFoundError as error:
        folder = os.fspath(target.parent)
        text = f"{target}: the folder must exist, got none at {folder!r}\n  hint: Path({folder!r}).mkdir(parents=True)"
        raise MissingFileError(text, folder) from error


def open_to_read(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        MissingFileError: when there is none.
    """
    try:
        return Path(path).open("rb")
    except FileNotFoundError as error:
        name = os.fspath(path)
        hint = "" if Path(path).is_absolute() else f"\n  hint: the path is relative to {Path.cwd()}"
        raise MissingFileError(f"{name}: the file must exist, got none{hint}", name) from error


def remove_leftovers(folder: Path) -> None:
    """Remove the partial files of `atomic_writer` in `folder` whose writers are dead.

    A writer holds a lock on its file until it closes it, and the system opens the locks of killed processes.
    """
    try:
        found = [entry.path for entry in os.scandir(folder) if _PARTIAL.fullmatch(entry.name)]
    except OSError:  # saving will say what is wrong with the folder
        return
    for path in found:
        with suppress(OSError):
            remove_if_unlocked(Path(path))


def open_locked(path: Path) -> IO[bytes]:
    """Create a file and lock it as long as it is open, so that other processes see that its owner is alive."""
    while True:
        file = path.open("x+b")
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
