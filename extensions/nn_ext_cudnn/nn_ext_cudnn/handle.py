"""Handles of cuDNN, one for each thread and device, and the scratch memory that engines ask for."""

import ctypes
import threading
from typing import Any, ClassVar

from nn_core.ext import Array
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.launch import graphs
from nn_ext_cuda.memory.arrays import allocated
from nn_ext_cudnn import library


class Handle:
    """A handle of cuDNN: it belongs to one device, and to one thread at a time.

    Attributes:
        pointer: The ``cudnnHandle_t``.
    """

    __slots__ = ("_functions", "_stream", "pointer")

    def __init__(self) -> None:
        self._functions = library.functions(library.HANDLES)
        self.pointer = ctypes.c_void_p()
        self._functions.cudnnCreate(ctypes.byref(self.pointer))
        self._stream: int | None = 0
        if current not in graphs.BEFORE_CAPTURE:  # a step may be bound in one thread, and recorded in another
            graphs.BEFORE_CAPTURE.append(current)

    def follow(self, stream: int) -> None:
        """Work on this stream from now on."""
        if stream != self._stream:  # telling cuDNN costs microseconds even where nothing changes
            self._functions.cudnnSetStream(self.pointer, stream)
            self._stream = stream

    def leave(self) -> None:
        """Tell the stream anew at the next use: another one may have its address by then."""
        self._stream = None


class Workspace:
    """Scratch memory that the steps of one thread, device and stream share: they run one after the other.

    Attributes:
        array: The memory, as bytes; None as long as nobody has asked for any.
    """

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array: Array | None = None

    def reserve(self, n_bytes: int) -> None:
        """Make the memory at least that large. Steps that were recorded with smaller memory have to hold on to it."""
        if n_bytes and (self.array is None or self.array.nbytes < n_bytes):
            self.array = allocated((n_bytes,), "uint8")


def current() -> Handle:
    """Return the handle of this thread for the current device, on CuPy's current stream."""
    device = int(cupy.cuda.Device().id)
    handle: Handle | None = _OF_THREAD.handles.get(device)
    if handle is None:
        handle = _OF_THREAD.handles[device] = _borrowed(device)
    handle.follow(int(cupy.cuda.get_current_stream().ptr))
    return handle


def workspace(n_bytes: int = 0) -> Workspace:
    """Return the scratch memory of this thread, current device and current stream, with room for `n_bytes`.

    Ask for it when a step is bound, and read its array when the step runs: then nothing is allocated while a CUDA graph
    is captured.
    """
    key = (int(cupy.cuda.Device().id), int(cupy.cuda.get_current_stream().ptr))
    found: Workspace = _OF_THREAD.workspaces.setdefault(key, Workspace())
    found.reserve(n_bytes)
    return found


class _OfThread(threading.local):
    """The objects of a thread; when it ends, its handles wait for the next one.

    Handles are never destroyed: that waits for the device, and breaks the capture of another thread.
    """

    def __init__(self) -> None:
        self.handles = _Borrowed()
        self.workspaces: dict[tuple[int, int], Workspace] = {}


class _Borrowed(dict[int, Handle]):
    """Handles by device, given back when the thread that has them ends."""

    free: ClassVar[dict[int, list[Handle]]] = {}

    def __del__(self) -> None:
        for device, handle in self.items():
            handle.leave()
            self.free.setdefault(device, []).append(handle)


def _borrowed(device: int) -> Handle:
    try:
        return _Borrowed.free[device].pop()
    except (KeyError, IndexError):
        return Handle()


_OF_THREAD: Any = _OfThread()
