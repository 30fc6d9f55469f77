"""The NCCL engine of nn_core's communicators: collectives between devices. Imports CuPy.

Arrays of the device are sent from where they are, on the current stream: nothing is allocated and nothing waits, so that a
recorded graph may hold these calls. Arrays of the host are brought to the device and back.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

import numpy as np

from nn_core.communicators import Launch, find_launch
from nn_core.errors import CommunicationError
from nn_core.ext import ArgumentError, BackendUnavailableError, Context
from nn_core.typing import Array
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.launch import deferred
from nn_ext_cuda.nccl import rendezvous
from nn_ext_cuda.nccl.step import SumStep

#: NCCL's numbers of dtypes and reductions, which are part of its binary interface.
DTYPES: Final = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5,
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
OPS: Final = {"sum": 0, "max": 2}
#: Whole numbers of 16 bits, which NCCL does not add up, are added up in 32 bits; the lower half of the sum is the same.
_WIDENED: Final = {"int16": "int32", "uint16": "uint32"}
_SPIN_S, _PAUSE_S = 0.002, 0.0002


def library() -> Any:
    """CuPy's module for NCCL, which is not imported together with CuPy."""
    return import_module("cupy.cuda.nccl")


class Pending:
    """A collective on a stream.

    Args:
        event: Recorded after it.
        finish: Called once when it is over.
        check: Raises when NCCL has met an error meanwhile.
        keep: What must live until then.
    """

    def __init__(self, event: Any, finish: Callable[[], None] | None, check: Callable[[], None], keep: Any) -> None:
        self._event, self._finish, self._check, self._keep = event, finish, check, keep

    def done(self) -> bool:
        """Return whether it is over."""
        if not self._event.done:
            self._check()
            return False
        finish, self._finish, self._keep = self._finish, None, None
        if finish is not None:
            finish()
        return True

    def wait(self, timeout_s: float | None) -> bool:
        """Poll until it is over, or the time is."""
        start = time.monotonic()
        while not self.done():
            elapsed = time.monotonic() - start
            if timeout_s is not None and elapsed >= timeout_s:
                return False
            if elapsed > _SPIN_S:
                time.sleep(_PAUSE_S)
        return True


class NcclEngine:
    """Ranks with a device each.

    Args:
        comm: ``cupy.cuda.nccl.NcclCommunicator`` of these ranks.
        rank: Number of this one.
        hosts: Names of the machines by rank.
    """

    def __init__(self, comm: Any, rank: int, hosts: Sequence[str]) -> None:
        self._comm = comm
        self.rank, self.size, self.hosts = rank, len(hosts), tuple(hosts)
        self.local_rank = self.hosts[:rank].count(self.hosts[rank])

    # -- the eight calls -------------------------------------------------------------------------------------------

    def all_reduce(self, array: Array, op: str = "sum") -> Pending | None:
        """Replace the array by the sum or maximum over all ranks."""
        return self._reduced(array, op, lambda raw, code, stream: self._comm.allReduce(
            raw.data.ptr, raw.data.ptr, raw.size, code, OPS[op], stream))  # fmt: skip

    def reduce(self, array: Array, dst: int, op: str = "sum") -> Pending | None:
        """Replace the array of rank `dst` by the sum or maximum."""
        return self._reduced(array, op, lambda raw, code, stream: self._comm.reduce(
            raw.data.ptr, raw.data.ptr, raw.size, code, OPS[op], dst, stream), self.rank == dst)  # fmt: skip

    def broadcast(self, array: Array, src: int) -> Pending | None:
        """Replace the array by that of rank `src`."""
        with _on_device([array], [self.rank != src]) as (launch, (raw,)):
            return launch(lambda stream: self._comm.broadcast(raw.data.ptr, raw.data.ptr, raw.nbytes, 1, src, stream), self)

    def all_gather(self, send: Array, receive: Array) -> Pending | None:
        """Gather the arrays of all ranks."""
        with _on_device([send, receive], [False, True]) as (launch, (own, all_)):
            return launch(lambda stream: self._comm.allGather(own.data.ptr, all_.data.ptr, own.nbytes, 1, stream), self)

    def reduce_scatter(self, send: Array, receive: Array, op: str = "sum") -> Pending | None:
        """Reduce, and keep the own part."""
        _require_op(op)
        wide = _wide_name(send)
        with _on_device([send, receive], [False, True], wide) as (launch, (own, part)):
            return launch(lambda stream: self._comm.reduceScatter(
                own.data.ptr, part.data.ptr, part.size, DTYPES[wide], OPS[op], stream), self)  # fmt: skip

    def all_to_all(self, send: Array, receive: Array) -> Pending | None:
        """Exchange the parts."""
        with _on_device([send, receive], [False, True]) as (launch, (own, all_)):

            def exchange(stream: int) -> None:
                length = own.nbytes // self.size
                library().groupStart()
                for rank in range(self.size):
                    self._comm.send(own.data.ptr + rank * length, length, 1, rank, stream)
                    self._comm.recv(all_.data.ptr + rank * length, length, 1, rank, stream)
                library().groupEnd()

            return launch(exchange, self)

    def barrier(self) -> Pending | None:
        """Be done when every rank has called this."""
        return self.all_reduce(np.zeros(1, np.uint8), "max")

    def split(self, ranks: Sequence[int]) -> "NcclEngine | None":
        """Return the engine of some of the ranks."""
        places = list(ranks)
        text = bytes(library().get_unique_id()) if self.rank == places[0] else b""
        own = np.frombuffer(text.ljust(_ID_BYTES, b"\0"), np.uint8).copy()
        all_ = np.empty(_ID_BYTES * self.size, np.uint8)
        handle = self.all_gather(own, all_)
        if handle is not None:
            handle.wait(None)
        if self.rank not in places:
            return None
        start = places[0] * _ID_BYTES
        hosts = [self.hosts[rank] for rank in places]
        return NcclEngine(_connected(len(places), all_[start : start + _ID_BYTES].tobytes(), places.index(self.rank)),
                          places.index(self.rank), hosts)  # fmt: skip

    def abort(self, status: int = 1) -> None:
        """Let what waits for NCCL on this rank fail; the launcher ends the others."""
        self._comm.abort()
        raise SystemExit(status)

    def device_step(self, array: Array, divisor: int, before: Callable[[], None]) -> SumStep:
        """Return the sum of an array of this device over all ranks as a step of a pass; see `nn_core.communicators.Engine`."""
        code = DTYPES[_wide_name(array)]

        def launch(raw: Array, stream: int) -> None:
            self._comm.allReduce(raw.data.ptr, raw.data.ptr, raw.size, code, OPS["sum"], stream)

        return SumStep(launch, array, divisor, before)

    # -- how -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what NCCL has met in the background."""
        try:
            self._comm.check_async_error()
        except Exception as error:
            raise CommunicationError(f"nccl: every rank must be reached, got: {error}") from error

    def _reduced(self, array: Array, op: str, call: Callable[[Any, int, int], None], is_taken: bool = True) -> Pending | None:
        _require_op(op)
        wide = _wide_name(array)
        with _on_device([array], [is_taken], wide) as (launch, (raw,)):
            return launch(lambda stream: call(raw, DTYPES[wide], stream), self)


_ID_BYTES: Final = 128


def _require_op(op: str) -> None:
    if op not in OPS:
        raise ArgumentError(f"nccl: op must be one of {', '.join(OPS)}, got {op!r}")


def _wide_name(array: Array) -> str:
    name = _WIDENED.get(array.dtype.name, array.dtype.name)
    if name not in DTYPES or (name != array.dtype.name and isinstance(array, cupy.ndarray)):
        raise ArgumentError(f"nccl: arrays that are added up must be of {', '.join(DTYPES)}, got {array.dtype.name}")
    return name


Launcher = Callable[[Callable[[int], None], NcclEngine], "Pending | None"]


@contextmanager
def _on_device(arrays: Sequence[Array], are_written: Sequence[bool], wide: str = "") -> Iterator[tuple[Launcher, list[Any]]]:
    """Yield the arrays on the device, and a function that launches a collective on them and brings results to the host.

    Args:
        arrays: C-contiguous arrays, of the device or of the host.
        are_written: Which of them the collective changes on this rank.
        wide: dtype in which those of the host are sent, where it is another one.
    """
    deferred.flush()
    raws = [array if isinstance(array, cupy.ndarray) else cupy.asarray(array.astype(wide or array.dtype)) for array in arrays]

    def launch(call: Callable[[int], None], engine: NcclEngine) -> Pending | None:
        if all(raw.size == 0 for raw in raws):
            return None
        stream = cupy.cuda.get_current_stream()
        call(stream.ptr)
        copies = [
            (array, raw)
            for array, raw, is_written in zip(arrays, raws, are_written, strict=True)
            if is_written and array is not raw
        ]
        if all(array is raw for array, raw in zip(arrays, raws, strict=True)):
            return None  # what follows on the stream comes after it

        def finish() -> None:
            for array, raw in copies:
                np.copyto(array, raw.get().astype(array.dtype).reshape(array.shape))

        event = cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        return Pending(event, finish, engine.check, raws)

    yield launch, raws


def make(context: Context | None = None) -> NcclEngine:
    """Return the engine of all processes that a launcher has started, each with the device that is current in it.

    Raises:
        BackendUnavailableError: when the library is missing, or the ranks cannot find each other.
        ArgumentError: when two ranks of a machine have one device.
    """
    if not library().available:
        raise BackendUnavailableError(
            "nccl: the library must be installed, got none\n  hint: pip install nvidia-nccl-cu13 (or -cu12), as CuPy needs it"
        )
    launch = find_launch() or Launch("the user", 0, 1, 0)
    number = int(cupy.cuda.runtime.getDevice())
    own: dict[str, str] = {"host": socket.gethostname(), "device": str(cupy.cuda.runtime.deviceGetPCIBusId(number))}
    if launch.rank == 0:
        own["id"] = bytes(library().get_unique_id()).hex()
    texts = [json.dumps(own)] if launch.size == 1 else rendezvous.gather(launch, json.dumps(own))
    places = [json.loads(text) for text in texts]
    _require_own_devices(places)
    comm = _connected(launch.size, bytes.fromhex(places[0]["id"]), launch.rank)
    return NcclEngine(comm, launch.rank, [place["host"] for place in places])


def _require_own_devices(places: Sequence[dict[str, str]]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for rank, place in enumerate(places):
        first = seen.setdefault((place["host"], place["device"]), rank)
        if first != rank:
            raise ArgumentError(
                f"nccl: each rank must have a device of its own, got {place['device']} of {place['host']} for ranks {first} "
                f"and {rank}\n  hint: get_extension_context('cuda', device_id=nn_core.communicators.find_launch().local_rank)"
            )


def _connected(size: int, unique_id: bytes, rank: int) -> Any:
    return library().NcclCommunicator(size, unique_id, rank)
