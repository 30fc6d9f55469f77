"""Streams, events and recorded graphs of the stand-in for CuPy: they are recorded, not run in parallel."""

import sys
import threading
import time
from typing import ClassVar


def current_device():
    return sys.modules["cupy"].cuda.runtime.getDevice()


def device_if_there():
    return current_device() if "cupy" in sys.modules else 0


class CUDARuntimeError(RuntimeError):
    pass


def require_outside_capture(what):
    if Graph.recording is not None:
        raise CUDARuntimeError(f"cudaErrorStreamCaptureUnsupported: {what}")


def _of_thread(default):
    """A property that each thread has for itself; `default` makes what it is at first."""
    values = threading.local()

    def get(owner):
        value = getattr(values, "value", None)
        return default() if value is None else value

    def set_(owner, value):
        values.value = value

    # what pytest puts in place is taken away again
    return property(get, set_, lambda owner: set_(owner, None))


class _Recording(type):
    """Streams are captured by one thread each: what another one launches meanwhile runs."""

    recording = _of_thread(lambda: None)


class Graph(metaclass=_Recording):
    """Launches that were recorded while a stream was capturing."""

    fails_with = None

    def __init__(self, calls):
        self.calls = calls
        self.replays = 0
        self.device_id = current_device()

    @classmethod
    def note(cls, call):
        if cls.recording is None:
            call()
        else:
            if cls.fails_with is not None:
                raise cls.fails_with
            cls.recording.append(call)

    def launch(self, stream=None):
        assert self.device_id == current_device(), "a graph was launched on another device than it was recorded on"
        self.replays += 1
        for call in self.calls:
            call()


class _Current(type):
    """Each thread has a current stream."""

    current = _of_thread(lambda: _NULL_STREAM)


class Stream(metaclass=_Current):
    #: (stream of a consumer of memory, stream that it waits for)
    waited_for: ClassVar = []

    def __init__(self, *, non_blocking=False, null=False, ptr=0):
        self.non_blocking = non_blocking
        self.ptr = ptr or (id(self) if non_blocking else 0)
        self.device_id = device_if_there()
        self._before = []

    def __enter__(self):
        self._require_device()
        self._before.append(Stream.current)
        Stream.current = self
        return self

    def __exit__(self, *_):
        Stream.current = self._before.pop()

    def _require_device(self):
        own = current_device()
        assert not self.ptr or self.device_id == own, f"a stream of device {self.device_id} was used on device {own}"

    def wait_event(self, event):
        assert event.stream is not self, "a stream is in its own order anyway"
        Stream.waited_for.append((self, event.stream))

    def begin_capture(self, mode=None):
        assert Graph.recording is None
        self._require_device()
        Graph.recording = []

    def end_capture(self):
        calls, Graph.recording = Graph.recording, None
        return Graph(calls)

    def is_capturing(self):
        return Graph.recording is not None

    def synchronize(self):
        assert Graph.recording is None, "synchronize while capturing"


_NULL_STREAM = Stream(null=True)


class Event:
    """An event that has happened after it was asked for three times."""

    synchronized = 0

    def __init__(self, *, disable_timing=False):
        self._asked = 0

    def record(self, stream=None):
        self._is_recorded = Graph.recording is not None
        self.time, self.stream = time.perf_counter(), stream

    @property
    def done(self):
        assert not self._is_recorded, "an event that is looked at cannot be recorded in a graph"
        self._asked += 1
        return self._asked > 3

    def synchronize(self):
        Event.synchronized += 1
