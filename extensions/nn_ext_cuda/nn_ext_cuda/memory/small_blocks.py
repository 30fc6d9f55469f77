"""Memory of small arrays, of which the lowest free address is always given out.

So a program that makes and drops the same arrays again gets them in the same memory, whatever the order in which they were
dropped, and what was prepared for that memory is used again; see `nn_ext_cuda.launch.recurring`.
"""

import contextlib
import heapq
import math
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from nn_core.ext import Array, Shape
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.memory import preference
from nn_ext_cuda.memory.arrays import allocated

#: Launching a kernel over larger arrays takes less time than running it.
MAX_ARRAY_BYTES: Final = 1 << 20
#: When more memory is free, all of it goes back to CuPy's pool: it may be of sizes that do not come again.
MAX_FREE_BYTES: Final = 1 << 26
#: Sizes are multiples of this number, as those of CuPy's pool.
_UNIT: Final = 512

#: Device, stream and number of bytes: what is free is used again in the order of the stream in which it was used.
_Kind = tuple[int, int, int]


class _OfThread(threading.local):
    paused = False


class _Lease:
    """The use of a block; it ends with the last array that has the memory."""

    __slots__ = ("_block", "_kind", "_pool")

    def __init__(self, pool: "Recycled", kind: _Kind, block: Any) -> None:
        self._pool = pool
        self._kind = kind
        self._block = block

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():  # modules may be gone
            self._pool.take_back(self._kind, self._block)


class Recycled:
    """Blocks of memory that are free, by device, stream and size."""

    def __init__(self) -> None:
        # (address, block) as a heap; a single operation of heapq is not interrupted by other threads
        self._free: dict[_Kind, list[tuple[int, Any]]] = {}
        self._n_bytes = 0
        self._of_thread = _OfThread()

    def empty(self, shape: Shape, dtype: str) -> Array:
        """Return a new uninitialised array on the current device.

        Raises:
            DeviceMemoryError: when it does not fit.
        """
        n_bytes = math.prod(shape) * ITEM_BYTES.get(dtype, 0)
        if not 0 < n_bytes <= MAX_ARRAY_BYTES or not preference.cached or self._of_thread.paused:
            return allocated(shape, dtype)
        size = -(-n_bytes // _UNIT) * _UNIT
        kind = cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr, size
        try:
            block = heapq.heappop(self._free[kind])[1]
        except (KeyError, IndexError):  # none was dropped yet, or none is free
            block = allocated((size,), "uint8")
        else:
            self._n_bytes -= size
        memory = cupy.cuda.UnownedMemory(block.data.ptr, size, _Lease(self, kind, block), kind[0])
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))

    def take_back(self, kind: _Kind, block: Any) -> None:
        """Keep a block for the next array of its size."""
        if not preference.cached:
            return
        if self._n_bytes + kind[2] > MAX_FREE_BYTES:
            self.clear()
        self._n_bytes += kind[2]
        heapq.heappush(self._free.setdefault(kind, []), (int(block.data.ptr), block))

    def clear(self) -> None:
        """Give all free blocks back to CuPy's pool."""
        self._free, self._n_bytes = {}, 0

    def sizes(self, device: int) -> list[int]:
        """Bytes of the free blocks on a device."""
        return [size for (number, _, size), blocks in list(self._free.items()) if number == device for _ in blocks]

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Take the memory of arrays that this thread makes in the block from CuPy's allocator."""
        before, self._of_thread.paused = self._of_thread.paused, True
        try:
            yield
        finally:
            self._of_thread.paused = before


RECYCLED: Final = Recycled()
