"""The order of streams."""

from typing import Any


def follow(stream: Any, other: Any) -> None:
    """Let what comes on `stream` from now on wait for what is on `other`."""
    from nn_ext_cuda.device.runtime import cupy  # plans can be made without CuPy

    event = cupy.cuda.Event(disable_timing=True)
    event.record(other)
    stream.wait_event(event)
