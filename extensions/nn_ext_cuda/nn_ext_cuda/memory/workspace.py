"""Memory for intermediate values that all steps of a thread on one stream share, because they run one after the other.

It grows with the largest step; a step that was bound before it grew keeps the memory that it was bound to.
"""

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from nn_core.ext import Array
from nn_ext_cuda.launch.program import WithArrays
from nn_ext_cuda.memory.arrays import allocated

#: Alignment of arrays in the shared memory, in bytes.
_ALIGNMENT = 256
_OF_THREAD = threading.local()


def with_workspace(runner: Any, n_arrays: int, n_bytes: Sequence[int]) -> WithArrays:
    """Return a runner that takes arrays of these sizes, in the shared memory, after the `n_arrays` arrays of the call."""
    return WithArrays(runner, n_arrays, partial(shared, tuple(n_bytes)))


def sizes(device: int) -> list[int]:
    """Bytes of the memory of this thread on each stream of a device."""
    buffers: dict[Any, Array] = _OF_THREAD.__dict__
    return [int(buffer.size) for (number, _), buffer in buffers.items() if number == device]


def is_shared(array: Array) -> bool:
    """Return whether an array is in the memory of this thread."""
    start = int(array.data.ptr)
    buffers: dict[Any, Array] = _OF_THREAD.__dict__
    return any(0 <= start - int(buffer.data.ptr) < buffer.size for buffer in buffers.values())


def shared(sizes: Sequence[int]) -> list[Array]:
    """Arrays of bytes, one of each size, in the memory of this thread, device and stream; equal sizes give the same memory.

    Streams of one thread run at the same time, so each has memory of its own.
    """
    from nn_ext_cuda.device.runtime import cupy  # programs can be made without CuPy

    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
    buffers: dict[Any, Array] = _OF_THREAD.__dict__
    key = (int(cupy.cuda.Device().id), int(cupy.cuda.get_current_stream().ptr))
    buffer = buffers.get(key)
    if buffer is None or buffer.size < starts[-1]:
        buffer = buffers[key] = allocated((starts[-1],), "uint8")
    return [buffer[start : start + size] for start, size in zip(starts, sizes, strict=False)]
