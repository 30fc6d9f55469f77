"""A stand-in for ``cupy.cuda.nccl``: ranks are threads, and a collective is over when the last of them has launched it.

Calls return at once, as those of NCCL do. What was launched is kept by thread; an event that is recorded has happened when
all of it is over.
"""

import ctypes
import threading
import types

import fake_cupy
import numpy as np

from nn_core.communicators.threads import ThreadEngine, ThreadWorld

NUMPY = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
OPS = {0: "sum", 2: "max"}
ID_BYTES = 128

MAIN = fake_cupy.Stream.current.ptr
_thread = threading.local()
_lock = threading.Lock()
_worlds = {}


def array_at(pointer, count, dtype):
    """The memory of a call."""
    n_bytes = count * np.dtype(NUMPY[dtype]).itemsize
    return np.frombuffer((ctypes.c_char * n_bytes).from_address(pointer), NUMPY[dtype])


def launched():
    """The calls of this thread: (name, stream, handle)."""
    if not hasattr(_thread, "launched"):
        _thread.launched = []
    return _thread.launched


class Event:
    """An event: it has happened when what was launched before it is over."""

    def __init__(self, *, disable_timing=False):
        self._before = []

    def record(self, stream=None):
        self.stream = stream
        self._before = [handle for _, _, handle in launched()]

    @property
    def done(self):
        return all(handle.done() for handle in self._before)


class NcclCommunicator:
    """One rank."""

    def __init__(self, ndev, commId, rank):  # CuPy's names
        assert isinstance(commId, bytes) and len(commId) == ID_BYTES
        with _lock:
            world = _worlds.setdefault(commId, ThreadWorld(ndev))
        self._engine = ThreadEngine(world, rank)
        self._letters = []
        self.broken = None

    def _launch(self, name, stream, handle):
        launched().append((name, stream, handle))

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        assert sendbuf == recvbuf
        array = array_at(recvbuf, count, datatype)

        def launch():
            handle = self._engine.all_reduce(array, OPS[op])
            self._launch("allReduce", stream, handle)
            if stream != MAIN:  # what comes next on such a stream runs at once here, and needs the sum
                assert handle.wait(60)

        fake_cupy.Graph.note(launch)

    def reduce(self, sendbuf, recvbuf, count, datatype, op, root, stream):
        assert sendbuf == recvbuf
        self._launch("reduce", stream, self._engine.reduce(array_at(recvbuf, count, datatype), root, OPS[op]))

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        assert sendbuff == recvbuff
        self._launch("broadcast", stream, self._engine.broadcast(array_at(recvbuff, count, datatype), root))

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        send, receive = array_at(sendbuf, count, datatype), array_at(recvbuf, count * self._engine.size, datatype)
        self._launch("allGather", stream, self._engine.all_gather(send, receive))

    def reduceScatter(self, sendbuf, recvbuf, recvcount, datatype, op, stream):
        send = array_at(sendbuf, recvcount * self._engine.size, datatype)
        handle = self._engine.reduce_scatter(send, array_at(recvbuf, recvcount, datatype), OPS[op])
        self._launch("reduceScatter", stream, handle)

    def send(self, sendbuf, count, datatype, peer, stream):
        _thread.group.append((self, "send", sendbuf, count, datatype, peer, stream))

    def recv(self, recvbuf, count, datatype, peer, stream):
        _thread.group.append((self, "recv", recvbuf, count, datatype, peer, stream))

    def exchange(self, calls):
        """Run the calls of a group, which send to and receive from every rank one after the other."""
        sends, receives = ([call for call in calls if call[1] == kind] for kind in ("send", "recv"))
        size = self._engine.size
        assert [call[5] for call in sends] == [call[5] for call in receives] == list(range(size))
        count, datatype, stream = sends[0][3], sends[0][4], sends[0][6]
        send, receive = (array_at(group[0][2], count * size, datatype) for group in (sends, receives))
        self._launch("exchange", stream, self._engine.all_to_all(send, receive))

    def check_async_error(self):
        if self.broken is not None:
            raise self.broken

    def abort(self):
        self._engine.abort()


def group_start():
    """Begin a group."""
    _thread.group = []


def group_end():
    """Run a group."""
    calls, _thread.group = _thread.group, None
    calls[0][0].exchange(calls)


def get_unique_id():
    """The name of a new world."""
    with _lock:
        get_unique_id.number += 1
        return get_unique_id.number.to_bytes(8, "little").ljust(ID_BYTES, b"\1")


get_unique_id.number = 0


def module():
    """A module for the place of ``cupy.cuda.nccl``."""
    return types.SimpleNamespace(
        available=True,
        NcclCommunicator=NcclCommunicator,
        get_unique_id=get_unique_id,
        groupStart=group_start,
        groupEnd=group_end,
    )
