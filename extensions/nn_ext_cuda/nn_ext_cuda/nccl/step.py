"""Sums over the devices of all ranks as steps of a backward pass, which CUDA graphs record. Imports CuPy."""

import threading
from collections.abc import Callable
from typing import Any, Final

from nn_core.typing import Array
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.launch import deferred
from nn_ext_cuda.launch.streams import follow

_STREAMS: Final = threading.local()


class SumStep:
    """The sum of an array over all ranks, on a stream of its own: beside the launches that follow in a recorded graph.

    A graph in which steps are recorded waits for them at its end, by `join`. Called by itself it waits at once: what
    follows comes after the sum.

    Args:
        launch: Launches the sum, in place, on a stream.
        array: The array, which is also the memory of the gradients.
        divisor: The sum is divided by it.
        before: What has to happen on the host each time before.
    """

    capturable = True
    name = "all_reduce"

    def __init__(self, launch: Callable[[Array, int], None], array: Array, divisor: int, before: Callable[[], None]) -> None:
        self.before = before
        self._launch = launch
        self._array = array
        self._divisor = divisor

    def __call__(self, *arrays: Array) -> None:
        self.before()
        deferred.flush()
        self.run()
        self.join()

    def bind(self, *arrays: Array) -> "SumStep":
        """Return this step: it knows its array."""
        return self

    def run(self) -> None:
        """Launch on the own stream, after what is on the current one."""
        own = _stream()
        follow(own, cupy.cuda.get_current_stream())
        with own:
            self._launch(self._array, own.ptr)
            if self._divisor != 1:
                self._array /= self._divisor

    def join(self) -> None:
        """Let the current stream go on after the sum."""
        follow(cupy.cuda.get_current_stream(), _stream())


def _stream() -> Any:
    """Return the stream of this thread and device for sums."""
    device = cupy.cuda.Device().id
    streams: dict[Any, Any] = _STREAMS.__dict__
    if device not in streams:
        streams[device] = cupy.cuda.Stream(non_blocking=True)
    return streams[device]
