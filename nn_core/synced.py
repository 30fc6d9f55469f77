"""The memory behind arrays: spaces, and arrays that keep copies of their values in several of them.

A ``SyncedArray`` keeps copies by memory space and dtype and knows which one is the head, the copy that was written
last. Plans lend their memory to arrays; a ``Tenure`` says for how long.
"""

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from nn_core.errors import DTypeError, GraphError
from nn_core.typing import Array, Backend, Shape

ALIGNMENT_BYTES = 64


class Epoch:
    """A counter of events that can make a compiled plan wrong: buffers replaced, heads moved, graphs rewired."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


EPOCH = Epoch()


def _nothing() -> None:
    """What the host needs to be ready: nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """One memory: the host's, or that of one device; converts from and to NumPy.

    Attributes:
        upload: ``upload(target, values)`` writes a NumPy array over one of this space; `values` may change afterwards.
        use: Makes the device the current one of this thread; called before kernels are run.
        settle: Starts what the backend has held back; called before arrays are touched other than by its steps.
        backend: Whose array code works on this memory; None for the host.
    """

    name: str
    empty: Callable[[Shape, str], Array]
    from_numpy: Callable[[Array], Array]
    to_numpy: Callable[[Array], Array]
    upload: Callable[[Array, Array], object] | None = None
    use: Callable[[], object] = _nothing
    settle: Callable[[], object] = _nothing
    backend: Backend | None = None

    def __repr__(self) -> str:
        return f"Space({self.name!r})"


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype called `name`; bfloat16 comes with the package ml_dtypes."""
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError as error:
            raise DTypeError("dtype bfloat16 needs the package ml_dtypes; run: pip install ml_dtypes") from error
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


@functools.lru_cache(maxsize=64)
def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of a NumPy dtype, which NumPy puts together anew each time."""
    return dtype.name


def host_empty(shape: Shape, dtype: str) -> Array:
    """A new uninitialised C-contiguous NumPy array whose memory starts at a multiple of 64 bytes."""
    kind = dtype_of(dtype)
    n_bytes = kind.itemsize
    for length in shape:
        n_bytes *= length
    raw = np.empty(n_bytes + ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + n_bytes].view(kind).reshape(shape)


HOST = Space("host", host_empty, np.array, np.asarray)
_SPACES: dict[tuple[str, str], Space] = {}


def space_of(backend: Backend, device_id: str) -> Space:
    """The memory in which `backend` computes; all backends whose namespace is NumPy share the host's."""
    key = (backend.array_class, device_id)
    space = _SPACES.get(key)
    if space is None:
        space = HOST if backend.namespace() is np else _device_space(backend, device_id)
        _SPACES[key] = space
    return space


def _device_space(backend: Backend, device_id: str) -> Space:
    """The memory of one device; `use_device`, `settle` and `upload` are optional methods of a backend."""
    choose: Callable[[str], object] | None = getattr(backend, "use_device", None)
    settle: Callable[[], object] = getattr(backend, "settle", _nothing)
    upload: Callable[[Array, Array], object] | None = getattr(backend, "upload", None)
    if choose is None:
        use = _nothing
    else:

        def use() -> None:
            choose(device_id)

    def empty(shape: Shape, dtype: str) -> Array:
        use()
        return backend.empty(shape, dtype)

    def from_numpy(array: Array) -> Array:
        use()
        settle()
        return backend.from_numpy(array)

    def to_numpy(array: Array) -> Array:
        use()
        settle()
        return backend.to_numpy(array)

    name = f"{backend.array_class}:{device_id}"
    return Space(name, empty, from_numpy, to_numpy, upload, use, settle, backend)


class Owner(Protocol):
    """A plan that lends its buffers to arrays; it is told when one of them has been taken back."""

    displaced: bool


class Tenure:
    """The right of an array to values that lie in a plan's memory; it ends when the plan reuses the memory."""

    __slots__ = ("_owner", "alive")

    def __init__(self, owner: Owner, alive: bool) -> None:
        self._owner = weakref.ref(owner)
        self.alive = alive

    @property
    def owner(self) -> Owner | None:
        """The plan, unless it is gone. The reference is weak, so that a graph is freed as soon as nobody holds it."""
        return self._owner()

    def displace(self) -> None:
        """Tell the plan that the array has other values now."""
        owner = self._owner()
        if owner is not None:
            owner.displaced = True


class _Nobody:
    """Owner of tenures that belong to no plan."""

    displaced = False


_NOBODY = _Nobody()
#: The values were given up for good.
RELEASED = Tenure(_NOBODY, False)
#: The values are the array's own, and may lie channels-last: who needs C order has to look.
STRIDED = Tenure(_NOBODY, True)

Key: TypeAlias = tuple[Space, str]


class Lent:
    """Stands between an array of the host and the user's views of it, all of which keep it alive as long as they live.

    NumPy lets a view of a view refer to the memory itself, but not past an object that is no array.
    """

    __slots__ = ("__array_interface__", "__weakref__", "array")

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class SyncedArray:
    """The values behind one or more NdArrays: copies by (space, dtype), of which the valid ones agree."""

    __slots__ = (
        "__weakref__",
        "bound",
        "clear_called",
        "copies",
        "head",
        "lazy",
        "lent",
        "modifications",
        "shape",
        "tenure",
        "valid",
    )

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.copies: dict[Key, Array] = {}
        self.valid: set[Key] = set()
        self.head: Key | None = None
        self.lazy: float | None = None
        self.tenure: Tenure | None = None
        self.clear_called = False
        self.bound = False
        self.modifications = 0
        self.lent: dict[Key, Callable[[], Lent | None]] | None = None

    @property
    def dtype(self) -> str:
        """dtype of the head; float32 before anything was written."""
        return self.head[1] if self.head is not None else "float32"

    @property
    def cleared(self) -> bool:
        """True when a plan has reused the memory that held the values."""
        return self.tenure is not None and not self.tenure.alive

    def buffer(self, key: Key) -> Array:
        """The memory for `key`, allocated if it is not there; its content is whatever it was."""
        array = self.copies.get(key)
        if array is None:
            array = key[0].empty(self.shape, key[1])
            self.copies[key] = array
        return array

    def read(self, key: Key) -> Array:
        """The values in the space and dtype of `key`; the caller must not write."""
        if key in self.valid and self.lazy is None:
            return self.copies[key]
        self._require_alive()
        if self.lazy is not None or self.head is None:
            array = self.buffer(key)
            ready(key[0])
            array[...] = self.lazy or 0.0
            self._move_head(key)
            self.lazy = None
            return array
        array = self.buffer(key)
        convert(self.head, self.copies[self.head], key, array)
        self.valid.add(key)
        if self.tenure is not None:
            self.tenure.displace()  # a plan that runs again has to know that this copy will be old
        return array

    def hold(self, key: Key, array: Array) -> None:
        """Let `array` be the values, before anything was written."""
        self.copies[key] = array
        self.head = key
        self.valid = {key}

    def write(self, key: Key) -> Array:
        """The memory for `key`, about to be overwritten as a whole; all other copies become invalid."""
        if self.tenure is not None:
            self._end_tenure()
            if key[0] is HOST and key in self.copies and not self.copies[key].flags.c_contiguous:
                del self.copies[key]
        array = self.buffer(key)
        self.lazy = None
        self.clear_called = False
        self.modifications += 1
        self._move_head(key)
        return array

    def readwrite(self, key: Key) -> Array:
        """The values in `key`'s space and dtype, about to be changed in place."""
        array = self.read(key)
        if self.head != key:
            self._end_tenure()
        self.clear_called = False
        self.modifications += 1
        self._move_head(key)
        return array

    def lend(self, key: Key) -> Array:
        """The copy on the host under `key`, for a user who may write to it at any time."""
        array = self.copies[key]
        lent = self._lent(key)
        if lent is None:
            lent = Lent(array)
            self.lent = {**(self.lent or {}), key: weakref.ref(lent)}
        view = np.asarray(lent)
        return view if view.dtype == array.dtype else view.view(array.dtype)

    def lend_for_good(self, key: Key) -> None:
        """Note that others have the address of the copy on the host under `key`, for as long as it lives."""
        lent = Lent(self.copies[key])
        self.lent = {**(self.lent or {}), key: lambda: lent}

    def is_lent(self, key: Key) -> bool:
        """Whether somebody holds a view of the copy on the host under `key`, and may write to it unseen."""
        return self._lent(key) is not None

    def _lent(self, key: Key) -> Lent | None:
        lent = self.lent[key]() if self.lent is not None and key in self.lent else None
        return lent if lent is not None and lent.array is self.copies.get(key) else None

    def fill(self, value: float) -> None:
        """Note that every element is `value`; carried out by the first reader."""
        if self.tenure is not None:
            self._end_tenure()
        self.lazy = value
        self.clear_called = False
        self.modifications += 1

    def clear(self) -> None:
        """Give the memory back; the next reader gets zeros."""
        self._end_tenure()
        self.clear_called = True
        self.lazy = None
        self.copies.clear()
        self.valid.clear()
        self.head = None
        if self.bound:
            EPOCH.value += 1

    def attach(self, key: Key, array: Array, tenure: Tenure) -> None:
        """Let a plan's `array` be the values, for as long as `tenure` lasts."""
        old = self.tenure
        if old is not None and old is not tenure and old.owner is not tenure.owner:
            old.displace()
        self.tenure = tenure
        self.lazy = None
        self.clear_called = not tenure.alive
        if not tenure.alive:
            self.copies.clear()
            self.valid.clear()
            self.head = None
            return
        self.copies[key] = array
        self._move_head(key)

    def settle(self, key: Key) -> Array:
        """The values in C order in `key`, replacing a plan's strided buffer by a copy of its own."""
        array = self.read(key)
        if key[0] is HOST and not array.flags.c_contiguous:
            contiguous = host_empty(self.shape, key[1])
            contiguous[...] = array
            self.copies[key] = array = contiguous
            self._end_tenure()
            if self.bound:
                EPOCH.value += 1
        return array

    def _move_head(self, key: Key) -> None:
        if self.head is not key and self.head != key and self.bound:
            EPOCH.value += 1
        self.head = key
        if len(self.valid) != 1 or key not in self.valid:
            self.valid = {key}

    def _end_tenure(self) -> None:
        if self.tenure is not None:
            self.tenure.displace()
            self.tenure = None

    def _require_alive(self) -> None:
        if self.tenure is not None and not self.tenure.alive and self.lazy is None:
            raise GraphError(
                f"an array of shape {self.shape} must not be read after its memory was reused, got a read after "
                "forward or backward with clear_buffer=True or clear_no_need_grad=True\n"
                "  hint: set variable.persistent = True before the forward pass to keep the values"
            )


def convert(source_key: Key, source: Array, target_key: Key, target: Array) -> None:
    """Write `source`, which lies under one key, over `target`, which lies under another."""
    source_space, target_space = source_key[0], target_key[0]
    if source_space is target_space:
        if target_space is HOST:
            np.copyto(target, source, casting="unsafe")
        else:
            ready(target_space)
            target[...] = source
        return
    host = np.asarray(source_space.to_numpy(source))
    if target_space is HOST:
        np.copyto(target, host, casting="unsafe")
        return
    ready(target_space)
    if target_space.upload is not None:
        target_space.upload(target, host)
    else:
        target[...] = target_space.from_numpy(np.ascontiguousarray(host, dtype_of(target_key[1])))


def ready(space: Space) -> None:
    """Let array code run in `space` next."""
    space.use()
    space.settle()
