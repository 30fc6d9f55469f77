"""Rows of NumPy files, each read when it is asked for.

They are read rather than mapped: a process dies of a mapped file that another program makes shorter meanwhile.
"""

import os
import threading
from math import prod
from typing import Any

import numpy as np

from nn_core.data.memory_map import Identity, identity_of
from nn_core.errors import FileFormatError
from nn_core.files.atomic import open_to_read
from nn_core.files.npy import read_header, read_npy

Array = np.ndarray[Any, Any]


class StoredRows:
    """The rows of a .npy file. A pickle of them has the place of the file, which another process opens again.

    Args:
        path: The file. One in Fortran order, whose rows are scattered, is read as a whole.

    Raises:
        MissingFileError: when there is none.
        FileFormatError: when it is damaged or holds something else than numbers; when it is too short.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._open()
        size = os.fstat(self._file.fileno()).st_size
        self._identity: Identity = identity_of(self._path, os.fstat(self._file.fileno()))
        self.shape, is_fortran, self.dtype = read_header(self._file, "x")
        self._start = self._file.tell()
        self._whole: Array | None = None
        if self._start + self._row_bytes * prod(self.shape[:1]) > size:
            raise FileFormatError(f"an array of shape {self.shape} of {self.dtype} must be stored in full, got {size} bytes")
        if is_fortran and len(self.shape) > 1:
            self._file.seek(0)
            self._whole = read_npy(self._file, "x", size)

    @property
    def _row_bytes(self) -> int:
        return self.dtype.itemsize * prod(self.shape[1:])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no rows")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self._path}: array of shape {self.shape} of {self.dtype}>"

    def __getitem__(self, index: int) -> Any:
        """Return a row, which is the caller's own."""
        if self._whole is not None:
            return self._whole[index]
        number = range(len(self))[index]
        row: Array = np.empty(self.shape[1:], self.dtype)
        n_read = self._read(row.reshape(-1).view(np.uint8).data, self._start + number * self._row_bytes)
        if n_read != self._row_bytes:
            raise FileFormatError(f"{self._path}, row {number}: the row must be readable, got a file that has become shorter")
        return row if row.ndim else row[()]

    def _read(self, block: memoryview, offset: int) -> int:
        """Fill a block and return how many bytes there were; other threads and forked processes may do so at the same time."""
        try:
            if hasattr(os, "preadv"):
                return os.preadv(self._file.fileno(), [block], offset)
            with self._lock:
                self._file.seek(offset)
                return int(self._file.readinto(block))  # type: ignore[attr-defined]
        except OSError as error:
            raise FileFormatError(f"{self._path}: the file must be readable, got: {error}") from error

    def _open(self) -> None:
        self._file = open_to_read(self._path)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the place of the file."""
        return {name: value for name, value in vars(self).items() if name not in ("_file", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the file again.

        Raises:
            FileFormatError: when it is gone, was replaced, or was changed.
        """
        vars(self).update(state)
        try:
            found = identity_of(self._path)
            self._open()
        except OSError as error:
            raise FileFormatError(f"{self._path}: the file must still exist, got: {error}") from error
        if found != self._identity:
            self._file.close()
            raise FileFormatError(f"{self._path}: the file must be the one that was opened, got another or a changed one")

    def __del__(self) -> None:
        file = vars(self).get("_file")
        if file is not None:
            file.close()
