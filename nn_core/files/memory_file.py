"""Files that are read at once, and parts of what is in memory already."""

import io
import os
from typing import IO, Any

try:
    from zlib_ng.zlib_ng import crc32 as _crc32
except ImportError:
    from zlib import crc32 as _crc32

from nn_core.engine.arrays.synced import host_empty
from nn_core.engine.error_messages.refusal import fitted


def crc32(contents: Any, before: int = 0) -> int:
    """Return the CRC-32 of bytes after others whose CRC-32 is `before`; several times as fast where zlib-ng is installed.

    Example:
        >>> from nn_core.ext import crc32
        >>> crc32(b"bytes") == crc32(b"tes", crc32(b"by"))
        True
    """
    return _crc32(contents, before)


class MemoryFile(io.RawIOBase):
    """A file for reading whose bytes are in memory already and are not copied.

    Args:
        contents: Its bytes.
        name: Its name, for messages.
        is_mapped: Whether they are memory that goes with the whole file: who keeps a part of it copies that.
        is_verified: Whether they were compared with a checksum of them all, so that those of their parts say nothing more.

    Example:
        >>> from nn_core.ext import MemoryFile
        >>> MemoryFile(memoryview(b"numbers"), "numbers.txt").read(3)
        b'num'
    """

    def __init__(self, contents: memoryview, name: str = "", is_mapped: bool = False, is_verified: bool = False) -> None:
        self.contents = contents
        self.name = name
        self.is_mapped = is_mapped
        self.is_verified = is_verified
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        start = (0, self._position, len(self.contents))[whence]
        self._position = max(start + offset, 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Copy what comes next."""
        piece = self.contents[self._position : self._position + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


@fitted
def contents_of(file: IO[bytes]) -> tuple[memoryview, bool]:
    """Read all that follows the position of a file, and tell whether that is memory of its own: who keeps a part copies it.

    The file is read rather than mapped: a process dies of a mapped file that another program makes shorter meanwhile.

    Example:
        >>> import io
        >>> from nn_core.ext import contents_of
        >>> contents, is_mapped = contents_of(io.BytesIO(b"bytes"))
        >>> bytes(contents), is_mapped
        (b'bytes', False)
    """
    if isinstance(file, MemoryFile):
        return file.contents[file.tell() :], file.is_mapped
    try:
        size = os.fstat(file.fileno()).st_size - file.tell()
    except (OSError, ValueError):  # no file of the system
        size = 0
    if size <= 0 or not hasattr(file, "readinto"):
        return memoryview(file.read()), False
    block = memoryview(host_empty((size,), "uint8"))
    n_read = 0
    while n_read < size and (n_more := file.readinto(block[n_read:])):
        n_read += n_more
    return block[:n_read].toreadonly(), True
