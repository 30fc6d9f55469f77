"""Memory of a device: arrays, and values that are brought there while the program continues."""

import threading
from collections import deque
from typing import Any, ClassVar, Final

import numpy as np

from nn_core.ext import Array, Shape
from nn_ext_cuda.codegen.dtypes import FLOATING
from nn_ext_cuda.device.errors import failed, out_of_memory
from nn_ext_cuda.launch.streams import follow

#: Values of so many bytes may be on their way to the device; a program that is further ahead waits.
MAX_BYTES_ON_THE_WAY: Final = 1 << 28
#: Fewer bytes are copied in the stream of the computation: beside it they would need another launch, and two events.
MIN_BYTES_BESIDE: Final = 1 << 18
#: Whole numbers that every floating dtype represents exactly, in less memory.
_CONVERTED_THERE: Final = (np.dtype(np.uint8), np.dtype(np.int8))


def allocated(shape: Shape, dtype: str) -> Array:
    """Return a new uninitialised array on the current device.

    Raises:
        DeviceMemoryError: when it does not fit.
    """
    from nn_ext_cuda.device.runtime import cupy  # programs can be made without CuPy

    try:
        return cupy.empty(shape, dtype)
    except MemoryError:
        from nn_ext_cuda.memory.small_blocks import RECYCLED  # which imports this module

        RECYCLED.clear()
    try:
        return cupy.empty(shape, dtype)
    except MemoryError as error:
        free_bytes, total_bytes = cupy.cuda.runtime.memGetInfo()
        raise out_of_memory("cuda", shape, dtype, free_bytes, total_bytes) from error


class _OnTheWay(deque[tuple[Any, Any, int]]):
    """(event, memory, bytes) of copies that a thread has started; those that are under way when it ends are kept."""

    left: ClassVar[list[tuple[Any, Any, int]]] = []

    def __del__(self) -> None:
        self.left.extend(self)  # nobody else may write to their memory before they have arrived


class Uploads(threading.local):
    """Copies to the device that a thread has started, with the page-locked memory that they read."""

    def __init__(self) -> None:
        self._on_the_way = _OnTheWay()
        self._n_bytes = 0
        self._streams: dict[int, Any] = {}

    def start(self, target: Array, values: Array) -> None:
        """Write a NumPy array over a C-contiguous array of the device, converted to its dtype.

        The values are copied to page-locked memory at once, and from there to the device: few bytes in the order of the
        current stream; many into memory of their own, in a stream that runs beside it, and from there in its order. Small
        whole numbers, such as those of images, are brought as they are, and converted on the device.
        """
        from nn_ext_cuda.device.runtime import cupy  # see allocated

        dtype = values.dtype if values.dtype in _CONVERTED_THERE and target.dtype.name in FLOATING else target.dtype
        n_bytes = int(target.size) * dtype.itemsize
        if n_bytes == 0:
            return
        self._make_room(n_bytes)
        memory = cupy.cuda.alloc_pinned_memory(n_bytes)
        staged = np.frombuffer(memory, np.uint8, n_bytes).view(dtype).reshape(target.shape)
        with np.errstate(invalid="ignore"):  # NaN becomes some whole number, without a warning, as on the CPU
            np.copyto(staged, values, casting="unsafe")
        stream = cupy.cuda.get_current_stream()
        held: Any = memory
        try:
            if dtype == target.dtype and n_bytes < MIN_BYTES_BESIDE:
                target.data.copy_from_host_async(memory.ptr, n_bytes, stream)
            else:
                held = memory, self._beside(stream, memory, n_bytes, target, dtype)
            event = cupy.cuda.Event(disable_timing=True)
            event.record(stream)
        except Exception as error:  # whatever the device says is told with the sizes
            raise failed("copy to the device", error, [target]) from error
        self._on_the_way.append((event, held, n_bytes))
        self._n_bytes += n_bytes

    def on_the_way(self) -> tuple[int, int]:
        """Return number of copies that have not arrived, and their bytes in page-locked memory."""
        waiting = [n_bytes for event, _, n_bytes in self._on_the_way if not event.done]
        return len(waiting), sum(waiting)

    def _beside(self, stream: Any, memory: Any, n_bytes: int, target: Array, dtype: Any) -> Array:
        """Bring page-locked memory to the device while `stream` computes, then write it over `target` there.

        Returns:
            The memory in between, which must not be used again before `stream` has read it.
        """
        from nn_ext_cuda.device.runtime import cupy  # see allocated

        device = int(cupy.cuda.Device().id)
        beside = self._streams.get(device)
        if beside is None:
            beside = self._streams[device] = cupy.cuda.Stream(non_blocking=True)
        with beside:  # so that the pool gives memory that no other stream has used
            arrived = allocated(tuple(target.shape), dtype.name)
        arrived.data.copy_from_host_async(memory.ptr, n_bytes, beside)
        follow(stream, beside)
        target[...] = arrived
        return arrived

    def _make_room(self, n_bytes: int) -> None:
        """Forget copies that have arrived, and wait for others if too much is on its way."""
        if _OnTheWay.left:
            _OnTheWay.left[:] = [entry for entry in _OnTheWay.left if not entry[0].done]
        while self._on_the_way:
            event, _, own = self._on_the_way[0]
            if not event.done:
                if self._n_bytes + n_bytes <= MAX_BYTES_ON_THE_WAY:
                    return
                event.synchronize()
            self._on_the_way.popleft()
            self._n_bytes -= own


UPLOADS: Final = Uploads()
