"""The memory of arrays: spaces, and arrays that keep copies of their values in several of them.

A ``SyncedArray`` keeps copies by memory space and dtype and knows which one is the latest, the one that was written
last. Plans lend their memory to arrays; a ``BufferLease`` says for how long.
"""

import itertools
import math
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.arrays.casting import NARROW, cast, dtype_of, in_dtype, is_held, misses, not_whole
from nn_core.engine.arrays.exported_views import OBSERVED as OBSERVED
from nn_core.engine.arrays.exported_views import ExportedView
from nn_core.engine.arrays.leases import UNCOMPUTED, BufferLease
from nn_core.errors import GraphError, HostMemoryError, ShapeError
from nn_core.typing import Array, Backend, Shape

ALIGNMENT_BYTES = 64


class Version:
    """Counts events that can make a compiled plan wrong: buffers replaced, another copy written, graphs rewired."""

    __slots__ = ("_numbers", "value")

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.value = 0

    def advance(self) -> None:
        """Take a value that never was taken before, whatever other threads do meanwhile."""
        self.value = next(self._numbers)


GRAPH_VERSION = Version()


def nothing() -> None:
    """Return at once: the host is always ready."""


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """One memory: the host's, or that of one device; converts from and to NumPy.

    Attributes:
        upload: ``upload(target, values)`` writes a NumPy array over one of this space; `values` may change afterwards.
        use: Makes the device the current one of this thread; called before kernels are run.
        flush: Starts what the backend has held back; called before arrays are touched other than by its steps.
        wait: Returns when what this thread has started on the device is done.
        backend: Whose array code works on this memory; None for the host.
    """

    name: str
    empty: Callable[[Shape, str], Array]
    from_numpy: Callable[[Array], Array]
    to_numpy: Callable[[Array], Array]
    upload: Callable[[Array, Array], object] | None = None
    use: Callable[[], object] = nothing
    flush: Callable[[], object] = nothing
    wait: Callable[[], object] = nothing
    backend: Backend | None = None

    def __repr__(self) -> str:
        return f"Space({self.name!r})"


def host_empty(shape: Shape, dtype: str) -> Array:
    """Return a new uninitialised C-contiguous NumPy array whose memory starts at a multiple of 64 bytes."""
    kind = dtype_of(dtype)
    n_bytes = kind.itemsize
    for length in shape:
        n_bytes *= length
    try:
        raw = np.empty(n_bytes + ALIGNMENT_BYTES, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: more than NumPy can count
        raise HostMemoryError(
            f"memory: an array must fit into what the host has left, got {n_bytes / 2**30:.1f} GiB for {shape} of {dtype}"
        ) from error
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    try:
        return raw[start : start + n_bytes].view(kind).reshape(shape)
    except ValueError as error:  # NumPy's own limit
        raise ShapeError(f"memory: an array of the host must have at most 64 axes, got {len(shape)}") from error


HOST = Space("host", host_empty, np.array, np.asarray)
#: Numbers of which every floating dtype holds one close by.
_SMALL: Final = 6e4

Key: TypeAlias = tuple[Space, str]

#: Arrays without values of which the zeros were read, by a pass for example, and that nobody need have written since.
_READ_AS_ZEROS: "Final[weakref.WeakSet[SyncedArray]]" = weakref.WeakSet()


class SyncedArray:
    """The values of one or more NdArrays: copies by (space, dtype), of which the valid ones agree."""

    __slots__ = (
        "__weakref__",
        "bound",
        "clear_called",
        "copies",
        "exported",
        "latest",
        "lease",
        "left",
        "modifications",
        "pending_fill",
        "shape",
        "valid",
    )

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        #: memory by space and dtype; what it holds counts only where the key is in `valid`
        self.copies: dict[Key, Array] = {}
        self.valid: set[Key] = set()
        #: which copy was written last; None before anything was written
        self.latest: Key | None = None
        #: a number that all elements have, and that no copy holds yet; goes before whatever is in the copies
        self.pending_fill: float | None = None
        #: None where the memory is the array's own, and in C order; else whose it is, and whether the values are still there
        self.lease: BufferLease | None = None
        self.clear_called = False
        #: whether a plan relies on the place of the values: then moving them has to advance the version of graphs
        self.bound = False
        #: counts writing that the engine sees; through an exported view a user may write unseen
        self.modifications = 0
        #: the views that users may hold, by the key of the copy
        self.exported: dict[Key, Callable[[], ExportedView | None]] | None = None
        #: memory that was left to views, the last one under each key, and their link
        self.left: dict[Key, tuple[Array, Callable[[], ExportedView | None]]] | None = None

    @property
    def dtype(self) -> str:
        """dtype of the latest copy; float32 before anything was written."""
        return self.latest[1] if self.latest is not None else "float32"

    @property
    def holds_values(self) -> bool:
        """Whether values were written, filled in or computed; False where there are zeros because nobody did."""
        is_filled = self.modifications > 0 or self.pending_fill is not None
        return is_filled or (self.latest is not None and not self.cleared and self not in _READ_AS_ZEROS)

    @property
    def cleared(self) -> bool:
        """True when a plan has reused the memory that held the values."""
        return self.lease is not None and not self.lease.alive

    def buffer(self, key: Key) -> Array:
        """Return the memory for `key`, allocated if it is not there; its content is whatever it was."""
        array = self.copies.get(key)
        if array is None:
            # no version is counted up: a plan binds copies that exist, and a new one replaces none
            array = key[0].empty(self.shape, key[1])
            self.copies[key] = array
        return array

    def read(self, key: Key, exact: bool = False) -> Array:
        """Return the values in the space and dtype of `key`; the caller must not write.

        Args:
            key: Space and dtype.
            exact: Refuse fractions where integers are read, as indices and labels are; if not, they are cut off.
        """
        if (
            key in self.valid
            and self.pending_fill is None
            and (self.lease is None or self.lease.alive)
            and (self.exported is None or self._is_up_to_date(key))
        ):
            return self.copies[key]
        self._require_alive()
        if self.pending_fill is not None or self.latest is None:
            return self._filled(key, exact)
        array = self.buffer(key)
        convert(self.latest, self.copies[self.latest], key, array, exact)
        if not self.is_exported(self.latest):  # else it may be old as soon as the view is given up
            self.valid.add(key)
        if self.lease is not None:
            self.lease.displace()  # a plan that runs again has to know that this copy will be old
        return array

    def _filled(self, key: Key, exact: bool) -> Array:
        """Return the memory for `key`, with the number that is to be filled in, or with the zeros of an array without values.

        Reading changes no dtype: the number is written in that of the copy that was the latest, and converted for readers of
        other dtypes, so that it does not matter who reads first.
        """
        value = self.pending_fill or 0.0
        if self.pending_fill is None:
            _READ_AS_ZEROS.add(self)
        if exact and value % 1 and math.isfinite(value) and dtype_of(key[1]).kind in "iu":
            raise not_whole(key[1], value)
        place = key if self.latest == key else (key[0], self._dtype_filled(value, key[1]))
        array = self.buffer(place)
        ready(place[0])
        # looking at the range takes longer than writing a small array
        fits = -_SMALL < value < _SMALL and place[1] not in NARROW
        array[...] = value if fits else in_dtype(value, place[1])
        self.move_latest(place)
        self.pending_fill = None
        return array if place == key else self.read(key, exact)

    def _dtype_filled(self, value: float, wanted: str) -> str:
        """Return the dtype in which a number is filled in for a reader of another one; float32 unless that of the reader holds
        it.
        """
        if self.latest is not None:
            return self.latest[1]
        if value == 0.0 or wanted in ("float32", "float64"):
            return wanted
        return wanted if is_held(value, wanted) else "float32"

    def _is_up_to_date(self, key: Key) -> bool:
        """Return whether nobody can have written to the latest copy since the one under `key`, a valid one, was made of it."""
        return self.latest is None or key == self.latest or not self.is_exported(self.latest)

    def rewritten(self) -> None:
        """Note that a plan has changed the latest copy in place."""
        self.modifications += 1
        if len(self.valid) != 1 and self.latest is not None:
            self.valid = {self.latest}

    def hold(self, key: Key, array: Array) -> None:
        """Let `array` be the values, before anything was written."""
        self.copies[key] = array
        self.latest = key
        self.valid = {key}

    def write(self, key: Key) -> Array:
        """Return the memory for `key`, about to be overwritten as a whole; all other copies become invalid."""
        if self.lease is not None:
            self._end_lease()
        if self.exported is not None and not OBSERVED.now:
            self._leave_to_viewers(key)
        array = self.buffer(key)
        self.pending_fill = None
        self.clear_called = False
        self.modifications += 1
        self.move_latest(key)
        return array

    def overwrite(self, key: Key) -> None:
        """`write` for a plan, which has the memory under `key` already."""
        self.pending_fill = None
        self.clear_called = False
        self.modifications += 1
        self.move_latest(key)

    def readwrite(self, key: Key) -> Array:
        """Return the values in `key`'s space and dtype, about to be changed in place."""
        array = self.read(key)
        if self.latest != key:
            self._end_lease()
        elif self.lease is not None and self.lease.shared:
            array = self._taken_out(key, array)
        self.clear_called = False
        self.modifications += 1
        self.move_latest(key)
        return array

    def _taken_out(self, key: Key, array: Array) -> Array:
        """Return a copy of values whose memory other arrays have, too, as memory of its own."""
        own = key[0].empty(self.shape, key[1])
        ready(key[0])
        own[...] = array
        self._end_lease()
        self.copies[key] = own
        return own

    def export(self, key: Key) -> Array:
        """Return the copy on the host under `key`, for a user who may write to it at any time."""
        array = self.copies[key]
        exported = self._exported(key)
        if exported is None:
            exported = ExportedView(array)
            self.exported = {**(self.exported or {}), key: weakref.ref(exported)}
        # a new view each time: it keeps `exported` alive, and so says whether somebody still looks
        view = np.asarray(exported)
        return view if view.dtype == array.dtype else view.view(array.dtype)

    def export_for_good(self, key: Key) -> None:
        """Note that others have the address of the copy under `key`, for as long as it lives."""
        exported = ExportedView(self.copies[key])
        self.exported = {**(self.exported or {}), key: lambda: exported}

    def is_exported(self, key: Key) -> bool:
        """Return whether somebody holds a view of the copy under `key`, and may write to it unseen."""
        return self._exported(key) is not None

    def _exported(self, key: Key) -> ExportedView | None:
        exported = self.exported[key]() if self.exported is not None and key in self.exported else None
        return exported if exported is not None and exported.array is self.copies.get(key) else None

    def fill(self, value: float) -> None:
        """Note that every element is `value`; carried out by the first reader."""
        if self.lease is not None:
            self._end_lease()
        if value and self.latest is not None and misses(value, self.latest[1]):
            self._forget_latest()
        if self.exported is not None and not OBSERVED.now:
            self._leave_to_viewers()
        self.pending_fill = value
        self.clear_called = False
        self.modifications += 1

    def clear(self) -> None:
        """Give the memory back; the next reader gets zeros."""
        self._end_lease()
        self.clear_called = True
        self.pending_fill = None
        self.copies.clear()
        self.valid.clear()
        self.latest = None
        if self.bound:
            GRAPH_VERSION.advance()

    def attach(self, key: Key, array: Array, lease: BufferLease) -> None:
        """Let a plan's `array` be the values, for as long as `lease` lasts."""
        # invariant: the plan that has lent the values before is told; else it would take its memory for theirs
        old = self.lease
        if old is not None and old is not lease and old.owner() is not lease.owner():
            old.displace()
            if self.latest is not None and self.latest != key:
                self.copies.pop(self.latest, None)  # it is the other plan's memory
        self.lease = lease
        self.pending_fill = None
        self.clear_called = not lease.alive
        if not lease.alive:
            if self.bound and self.latest is not None:
                GRAPH_VERSION.advance()
            self.copies.clear()
            self.valid.clear()
            self.latest = None
            return
        if self.bound and self.copies.get(key) is not array:
            GRAPH_VERSION.advance()
        self.copies[key] = array
        self.move_latest(key)

    def make_contiguous(self, key: Key) -> Array:
        """Return the values in C order in `key`, replacing a plan's strided buffer by a copy of its own."""
        array = self.read(key)
        if key[0] is HOST and not array.flags.c_contiguous:
            # the strided memory is a plan's, or its layout is marked in the lease: the copy is the array's own
            contiguous = host_empty(self.shape, key[1])
            contiguous[...] = array
            self._end_lease()
            self.copies[key] = array = contiguous
            self.valid.add(key)
            if self.bound:
                GRAPH_VERSION.advance()
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and deepcopy by value: the copy written last, on the host, whatever device it is on here."""
        if self.pending_fill is not None or (self.latest is None and not self.cleared):
            return _restored, (self.shape, self.dtype, self.pending_fill, None)
        return _restored, (self.shape, self.dtype, None, np.ascontiguousarray(self.read((HOST, self.dtype))))

    def move_latest(self, key: Key) -> None:
        # plans read the copy that was the latest when they were compiled
        if self.latest is not key and self.latest != key and self.bound:
            GRAPH_VERSION.advance()
        self.latest = key
        # invariant: after writing, the copy written is the only valid one. A new set, because a thread may be reading
        # the old
        if len(self.valid) != 1 or key not in self.valid:
            self.valid = {key}

    def _leave_to_viewers(self, written: Key | None = None) -> None:
        """Leave memory that programs look at to them, but for that under `written`: what comes now has memory of its own.

        That is NNabla's way. So the gradients that a program has collected stay what they were when the next ones are
        computed. Memory whose address others have stays.
        """
        moved = [key for key in self.exported or () if key != written and self._is_looked_at(key)]
        for key in moved:
            self._leave(key)
        if moved and self.bound:
            GRAPH_VERSION.advance()

    def _is_looked_at(self, key: Key) -> bool:
        """Return whether a program holds a view of the copy under `key`, and nobody its address."""
        return self.exported is not None and isinstance(self.exported[key], weakref.ref) and self.is_exported(key)

    def _leave(self, key: Key) -> None:
        """Leave the copy under `key` to its viewers."""
        assert self.exported is not None
        link, array = self.exported[key], self.copies.pop(key)
        self.valid = self.valid - {key}
        spare = None if self.left is None else self.left.get(key)
        if spare is not None and spare[1]() is None:  # for which plans are at hand: a program looks at one after the other
            self.copies[key] = spare[0]
        self.left = {**(self.left or {}), key: (array, link)}

    def _forget_latest(self) -> None:
        self.latest = None
        self.valid.clear()
        if self.bound:
            GRAPH_VERSION.advance()

    def _end_lease(self) -> None:
        """Leave the memory of a plan to it: the values are the array's own from now on."""
        if self.lease is not None:
            self.lease.displace()
            self.lease = None
            if self.latest is not None:
                self.copies.pop(self.latest, None)
                self.valid.discard(self.latest)
            if self.bound:
                GRAPH_VERSION.advance()

    def expect(self) -> None:
        """Note that a function will write the values, unless some were written: until then nobody may read them."""
        if self.latest is None and self.pending_fill is None and self.lease is None:
            self.lease = UNCOMPUTED

    def _require_alive(self) -> None:
        if self.lease is UNCOMPUTED and self.pending_fill is None:
            raise GraphError(
                f"an array of shape {self.shape} must be computed before it is read, got the output of a function that "
                "has not run\n  hint: call forward() first, or build the graph inside nn_core.auto_forward()"
            )
        if self.lease is not None and not self.lease.alive and self.pending_fill is None:
            raise GraphError(
                f"an array of shape {self.shape} must not be read after its memory was reused, got a read after "
                "forward or backward with clear_buffer=True or clear_no_need_grad=True\n"
                "  hint: set variable.persistent = True before the forward pass to keep the values"
            )


def zero_all(arrays: Iterable[SyncedArray]) -> None:
    """Note that every element of the arrays is 0, as `SyncedArray.fill` does; the call would take longer than the rest."""
    for array in arrays:
        if array.lease is not None or array.exported is not None:
            array.fill(0.0)
            continue
        array.pending_fill = 0.0
        array.clear_called = False
        array.modifications += 1


def _restored(shape: Shape, dtype: str, pending_fill: float | None, values: Array | None) -> SyncedArray:
    """Return an array as it was pickled, with memory of its own."""
    synced = SyncedArray(shape)
    if values is not None or dtype != synced.dtype:
        buffer = host_empty(shape, dtype)
        buffer[...] = 0 if values is None else values.reshape(shape)
        synced.hold((HOST, dtype), buffer)
    synced.pending_fill = pending_fill
    return synced


def convert(source_key: Key, source: Array, target_key: Key, target: Array, exact: bool = False) -> None:
    """Write `source`, the copy under one key, over `target`, the copy under another; `exact`: see `SyncedArray.read`."""
    source_space, target_space = source_key[0], target_key[0]
    if source_space is target_space:
        if target_space is HOST:
            cast(source, target, exact)
        else:
            ready(target_space)
            target[...] = source
        return
    host = np.asarray(source_space.to_numpy(source))
    if target_space is HOST:
        cast(host, target, exact)
        return
    ready(target_space)
    if target_space.upload is not None:
        target_space.upload(target, host)
    else:
        target[...] = target_space.from_numpy(np.ascontiguousarray(host, dtype_of(target_key[1])))


def is_ready_on_device(synced: SyncedArray) -> bool:
    """Return whether values are in the memory of a device; its space is ready for array code then."""
    latest = synced.latest
    if latest is None or latest[0] is HOST or synced.pending_fill is not None:
        return False
    ready(latest[0])
    return True


def ready(space: Space) -> None:
    """Let array code run in `space` next."""
    space.use()
    space.flush()
