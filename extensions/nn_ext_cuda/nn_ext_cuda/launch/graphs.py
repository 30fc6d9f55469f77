"""Recording of launches as a CUDA graph."""

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from nn_ext_cuda.gemm import blas, cublaslt

_LOGGER: Final = logging.getLogger("nn_core.cuda")
#: One capture at a time in a process: CUDA takes whatever happens on the device meanwhile for a part of it.
_LOCK: Final = threading.Lock()
_STREAMS = threading.local()
#: The graphs that exist, for reports.
_GRAPHS: Final["weakref.WeakSet[Graph]"] = weakref.WeakSet()


#: Functions that make what the recording thread lacks and cannot make while it records, such as handles of libraries.
BEFORE_CAPTURE: Final[list[Callable[[], object]]] = []


class Graph:
    """Recorded launches, and the pool of the memory that was taken while they were recorded.

    Nobody else gets that memory, or what is kept, as long as the graph lives, which may use it at each replay.
    """

    __slots__ = ("__weakref__", "_graph", "_kept", "device", "pool")

    def __init__(self, graph: Any, pool: Any, device: int, kept: object) -> None:
        self._graph = graph
        self._kept = kept
        self.pool = pool
        self.device = device
        _GRAPHS.add(self)

    def launch(self) -> None:
        """Replay on the current stream."""
        self._graph.launch()


def pools(device: int) -> list[Any]:
    """Return the pools of the graphs that exist on a device."""
    return [graph.pool for graph in list(_GRAPHS) if graph.device == device]


class CaptureError(Exception):
    """Steps could not be recorded.

    Attributes:
        position: Number of the step that failed; None where CUDA told of it only at the end.
    """

    def __init__(self, position: int | None, reason: str) -> None:
        super().__init__(reason)
        self.position = position


def record(runs: Sequence[Callable[[], object]], *, uses_blas: bool) -> Graph:
    """Record functions that launch something; nothing runs on the device yet.

    Raises:
        CaptureError: when one of them does what cannot be recorded.
    """
    from nn_ext_cuda.device.runtime import cupy  # solvers' rules can be read without CuPy
    from nn_ext_cuda.memory.small_blocks import RECYCLED  # as CuPy

    stream = _stream()
    pool = cupy.cuda.MemoryPool()
    position: int | None = None
    workspace: object = None
    with _LOCK, stream:
        if uses_blas:
            workspace = blas.handle().memory  # made before: neither can be while the stream is captured
            cublaslt.make_handle()
        for prepare in BEFORE_CAPTURE:
            prepare()
        with cupy.cuda.using_allocator(pool.malloc), RECYCLED.paused():
            stream.begin_capture()
            try:
                for position, run in enumerate(runs):  # noqa: B007 -- told on failure
                    run()
            except Exception as error:  # CuPy and CUDA each have exceptions of their own for what cannot be recorded
                _abandon(stream)
                raise CaptureError(position, _first_line(error)) from error
            try:
                return Graph(stream.end_capture(), pool, int(cupy.cuda.Device().id), workspace)
            except Exception as error:  # CUDA tells some failures only now
                raise CaptureError(None, _first_line(error)) from error


def _abandon(stream: Any) -> None:
    try:
        stream.end_capture()
    except Exception:  # the capture is invalid already, and is over now
        _LOGGER.debug("a broken capture was ended")


def _stream() -> Any:
    """Return the stream on which this thread records what shall run on the current one, which may be the default stream.

    Graphs that run at the same time are recorded on different streams: cuBLAS has a workspace for each.
    """
    from nn_ext_cuda.device.runtime import cupy  # see record

    key = int(cupy.cuda.Device().id), int(cupy.cuda.get_current_stream().ptr)
    streams: dict[Any, Any] = _STREAMS.__dict__
    if key not in streams:
        streams[key] = cupy.cuda.Stream(non_blocking=True)
    return streams[key]


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]
