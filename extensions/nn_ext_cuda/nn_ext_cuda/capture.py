"""CUDA graphs: neighbouring steps of a plan are recorded once and replayed as one launch.

A step can be recorded if it says ``capturable``: it allocates nothing, waits for nothing, and works on the same memory
each time. What it needs from the host before each run (random keys) is its ``before``, which is run before a replay too.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from nn_core.ext import Step
from nn_ext_cuda import blas
from nn_ext_cuda.runtime import cupy

_LOGGER: Final = logging.getLogger("nn_core.cuda")
#: One capture at a time in a process: CUDA takes whatever happens on the device meanwhile for a part of it.
_LOCK: Final = threading.Lock()
_STREAMS = threading.local()
_enabled = True
_reasons: list[str] = []


class Capturable(Protocol):
    """A step that can be recorded; `before` runs on the host each time, `run` only launches."""

    capturable: bool
    before: Callable[[], object] | None

    def run(self) -> None: ...

    def __call__(self) -> object: ...


def use_graphs(enabled: bool = True) -> None:
    """Record plans as CUDA graphs, or run them launch by launch; plans that are recorded already stay as they are."""
    global _enabled  # noqa: PLW0603 -- one setting of the process
    _enabled = bool(enabled)


def capture_failures() -> list[str]:
    """Why steps could not be recorded, one line each; they run launch by launch instead."""
    return list(_reasons)


def merged(steps: Sequence[Step]) -> list[Step]:
    """Steps with each run of neighbours that can be recorded made one."""
    result: list[Step] = []
    group: list[Any] = []
    for step in (*steps, None):
        if step is not None and getattr(step, "capturable", False):
            group.append(step)
            continue
        result += [Recorded(group)] if len(group) > 1 else group
        group = []
        if step is not None:
            result.append(step)
    return result


class Recorded:
    """Steps that run one by one the first time, are recorded the second time, and are replayed from then on."""

    __slots__ = ("_befores", "_graph", "_steps", "_tries")

    def __init__(self, steps: Sequence[Capturable]) -> None:
        self._steps = tuple(steps)
        self._befores = [step.before for step in steps if step.before is not None]
        self._graph: Any = None
        self._tries = 0

    def __call__(self) -> None:
        for before in self._befores:
            before()
        if self._graph is None and self._tries == 1 and _enabled:
            self._record()
        if self._graph is not None:
            self._graph.launch()
            return
        self._tries += self._tries == 0
        for step in self._steps:
            step.run()

    def _record(self) -> None:
        """Record the steps on a stream of their own; nothing runs yet. Where that fails they go on one by one."""
        self._tries = 2
        stream = _stream()
        with _LOCK, stream:
            if any(getattr(step, "uses_blas", False) for step in self._steps):
                blas.handle()  # its workspace must not be allocated while the stream is captured
            stream.begin_capture()
            try:
                for step in self._steps:
                    step.run()
            except Exception as error:  # whatever cannot be recorded: the reason is kept, and the plan goes on
                self._give_up(stream, error)
                return
            try:
                self._graph = stream.end_capture()
            except Exception as error:  # CUDA tells some failures only now
                _note(error)

    @staticmethod
    def _give_up(stream: Any, error: Exception) -> None:
        _note(error)
        try:
            stream.end_capture()
        except Exception:  # the capture is invalid already, and is over now
            _LOGGER.debug("a broken capture was ended")


def _stream() -> Any:
    """The stream of this thread and device on which steps are recorded; the default stream cannot be captured."""
    device = cupy.cuda.Device().id
    streams: dict[int, Any] = _STREAMS.__dict__
    if device not in streams:
        streams[device] = cupy.cuda.Stream(non_blocking=True)
    return streams[device]


def _note(error: Exception) -> None:
    reason = str(error).partition("\n")[0]
    _reasons.append(reason)
    _LOGGER.warning("steps run one by one, because they could not be recorded as a CUDA graph: %s", reason)
