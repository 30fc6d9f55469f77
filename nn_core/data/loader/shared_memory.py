"""Arrays that a process hands to another one without copying them.

The memory is a file without a name (``memfd``), of which the other process gets the descriptor. It exists as long as a
process has it open, so a process that is killed leaves nothing to clean up.
"""

import mmap
import os
from collections.abc import Sequence
from math import prod
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, Final, NamedTuple

import numpy as np

from nn_core.typing import Shape

#: Smaller batches go through the connection: two copies are faster than making, passing and mapping a file.
LEAST_BYTES: Final = 65536
#: Whether this system has such files.
AVAILABLE: Final = hasattr(os, "memfd_create")

#: Arrays begin at multiples of it: a cache line.
_ALIGNMENT: Final = 64
#: Maps all pages at once, where the system can; a fault for each page takes several times as long.
_FLAGS: Final = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0) if hasattr(mmap, "MAP_SHARED") else 0


class Layout(NamedTuple):
    """The places of arrays in shared memory.

    Attributes:
        n_bytes: Size of the memory.
        arrays: Shape, dtype and first byte of each array.
    """

    n_bytes: int
    arrays: tuple[tuple[Shape, np.dtype[Any], int], ...]


class SharedArrays:
    """New arrays, in shared memory if they are large enough and hold numbers.

    Attributes:
        layout: Their places; None when they are in ordinary memory.
    """

    def __init__(self) -> None:
        self.layout: Layout | None = None
        self._descriptor = -1

    def allocate(self, wanted: Sequence[tuple[Shape, np.dtype[Any]]]) -> list[np.ndarray[Any, Any]]:
        """Arrays of the given shapes and dtypes, with any values."""
        places, end = [], 0
        for shape, dtype in wanted:
            places.append((shape, dtype, end))
            end += -(-prod(shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        if not AVAILABLE or end < LEAST_BYTES or any(dtype.hasobject for _, dtype in wanted):
            return [np.empty(shape, dtype) for shape, dtype in wanted]
        self._descriptor = os.memfd_create("nn_core")
        os.ftruncate(self._descriptor, end)
        self.layout = Layout(end, tuple(places))
        return _mapped(self._descriptor, self.layout)

    def send(self, connection: Connection, pid: int) -> None:
        """Pass the memory on to the process `pid` at the other end."""
        send_handle(connection, self._descriptor, pid)

    def close(self) -> None:
        """Close the file; arrays that are alive keep the memory."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def receive(connection: Connection, layout: Layout) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that `SharedArrays.send` passed on; they keep the memory alive.

    Raises:
        EOFError, OSError, RuntimeError: when the sender has died.
    """
    descriptor = recv_handle(connection)
    try:
        return _mapped(descriptor, layout)
    finally:
        os.close(descriptor)


def _mapped(descriptor: int, layout: Layout) -> list[np.ndarray[Any, Any]]:
    memory = mmap.mmap(descriptor, layout.n_bytes, flags=_FLAGS)
    return [np.ndarray(shape, dtype, memory, offset) for shape, dtype, offset in layout.arrays]
