"""Arrays that are maps of files: another process opens the file again instead of getting its bytes."""

import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nn_core.errors import FileFormatError

Array = np.ndarray[Any, Any]


class Identity(NamedTuple):
    """A file as the system knows it, and the time of its last change where it was opened for reading alone."""

    device: int
    number: int
    n_bytes: int
    changed: int | None


class MappedArray(NamedTuple):
    """An array as its place in a file.

    Attributes:
        path: The file.
        identity: The file that had this path.
        start: First byte of the map.
        n_bytes: Bytes of the map.
        offset: First byte of the array in the map.
        dtype: Its dtype.
        shape: Its shape.
        strides: Its strides.
    """

    path: str
    identity: Identity
    start: int
    n_bytes: int
    offset: int
    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def opened(self) -> Array:
        """Return the array, of a new map that cannot be written.

        Raises:
            FileFormatError: when the file is gone, was replaced, or was changed.
        """
        try:
            found = identity_of(self.path, with_time=self.identity.changed is not None)
        except OSError as error:
            raise FileFormatError(f"{self.path}: the file must still exist, got: {error}") from error
        if found != self.identity:
            raise FileFormatError(f"{self.path}: the file must be the one that was opened, got another or a changed one")
        memory = np.memmap(self.path, np.uint8, "r", self.start, (self.n_bytes,))
        array: Array = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
        return array


def without_maps(arrays: Mapping[str, Any], identities: Mapping[str, Identity | None]) -> dict[str, Any]:
    """Return arrays, those that are maps as `MappedArray`; others stay as they are.

    Args:
        arrays: The arrays by name.
        identities: The result of `identities_of` when they were new.
    """
    return {name: _place_of(array, identities.get(name)) for name, array in arrays.items()}


def with_maps(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of which `without_maps` made places.

    Raises:
        FileFormatError: when a file is gone, was replaced, or was changed.
    """
    return {name: array.opened() if isinstance(array, MappedArray) else array for name, array in arrays.items()}


def identities_of(arrays: Mapping[str, Any]) -> dict[str, Identity | None]:
    """Return the files of those arrays that are maps."""
    found: dict[str, Identity | None] = {}
    for name, array in arrays.items():
        root = _root_of(array)
        if root is not None:
            found[name] = identity_of(str(root.filename), with_time=root.mode == "r")
    return found


def identity_of(path: str | Path, status: os.stat_result | None = None, with_time: bool = True) -> Identity:
    """Return what tells a file from another one.

    Args:
        path: The file.
        status: Its status, if it is known.
        with_time: Whether a file that was changed is another one.

    Raises:
        OSError: when there is no such file.
    """
    status = Path(path).stat() if status is None else status
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns if with_time else None)


def _place_of(array: Any, identity: Identity | None) -> Any:
    root = _root_of(array)
    if root is None or identity is None:
        return array
    address = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    path = str(root.filename)
    return MappedArray(path, identity, root.offset, root.nbytes, address, array.dtype, array.shape, array.strides)


def _root_of(array: Any) -> "np.memmap[Any, Any] | None":
    """Return the map of a file that an array is part of; None where there is none, or its changes are not in the file."""
    while isinstance(array, np.ndarray):
        base = array.base
        if isinstance(array, np.memmap) and isinstance(base, mmap.mmap):
            is_shared = array.mode in ("r", "r+", "w+") and isinstance(array.filename, (str, os.PathLike))
            return array if is_shared and not array.dtype.hasobject else None
        array = base
    return None
