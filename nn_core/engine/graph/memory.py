"""The memory of a plan: symbolic buffers with lifetimes, and the arena that places them."""

import weakref
from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.synced import Key, Space, SyncedArray
from nn_core.engine.error_messages.refusal import fitted
from nn_core.typing import Array, ArrayDesc, Shape

#: A free block is used for a buffer only if it is at most this many times as large.
MAX_SLACK = 4


#: The source of values that a plan does not make.
Slot: TypeAlias = tuple[SyncedArray, Key]


class Buffer:
    """One array of a plan: fixed when it belongs to a variable, else placed in the arena between first and last use."""

    __slots__ = (
        "array",
        "block",
        "channels_last",
        "dtype",
        "keep",
        "last",
        "lends",
        "narrow",
        "rigid",
        "shape",
        "shown_by",
        "slot",
        "space",
        "strided",
        "target",
        "view",
    )

    def __init__(self, shape: Shape, dtype: str, space: Space, array: Array | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.space = space
        self.array = array
        self.block: Block | None = None
        self.channels_last = False
        #: whether the array shows a part of memory that others write to as well
        self.narrow = False
        self.keep = False
        self.last = -1
        self.target: Buffer | None = None
        #: shows the array in that of `target`; None: it is the same memory in another shape
        self.view: Callable[[Array], Array] | None = None
        #: whether it shows memory in another order, of which only the last axis is dense; who takes C order copies it
        self.strided = False
        #: those that show parts of this array, or all of it in another order
        self.shown_by: list[Buffer] = []
        #: whether there are such ones of the memory
        self.lends = False
        #: whether an operation has it that takes C order only
        self.rigid = False
        #: the array and the copy of it whose values the plan finds here; None for what the plan makes itself
        self.slot: Slot | None = None

    def desc(self) -> ArrayDesc:
        """Return description of the array for kernels."""
        strides = channels_last_strides(self.shape, self.dtype) if self.channels_last else None
        return ArrayDesc(self.shape, self.dtype, strides)

    def root(self) -> "Buffer":
        """Return the buffer whose memory this one shares (itself, unless it is an alias)."""
        buffer = self
        while buffer.target is not None:
            buffer = buffer.target
        return buffer

    def show_in(self, whole: "Buffer", view: Callable[[Array], Array]) -> None:
        """Be what `view` shows of the array of `whole`, from now on and in operations that were added before."""
        self.target, self.view, self.strided = whole, view, True
        whole.shown_by.append(self)
        root = whole.root()
        root.lends = True
        root.last = max(root.last, self.last)

    def stand_alone(self) -> None:
        """Undo `show_in`."""
        assert self.target is not None
        self.target.shown_by.remove(self)
        self.target, self.view, self.strided = None, None, False

    @property
    def is_movable(self) -> bool:
        """Whether the memory may still be chosen, and in another order: all operations so far take that."""
        is_plain = self.array is None and self.target is None and self.slot is None
        return is_plain and not (self.rigid or self.channels_last)

    @property
    def is_shared(self) -> bool:
        """Whether other arrays have the same memory, in another order or as a part of theirs."""
        return self.root().lends

    def sketch(self) -> Array:
        """Return an array with the shape and the strides, in elements; its memory must not be touched."""
        if self.target is not None and self.view is not None:
            return self.view(self.target.sketch())
        strides = [1] * len(self.shape)
        for axis in range(len(self.shape) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * self.shape[axis]
        return np.lib.stride_tricks.as_strided(np.empty(1, np.int8), self.shape, strides, writeable=False)

    def used(self, index: int) -> None:
        """Note a use by the operation at `index`."""
        # of the memory: as long as one alias is read, it is in use
        root = self.root()
        root.last = max(root.last, index)

    def resolve(self, arena: "Arena") -> Array:
        """Return the raw array, taken from the arena at the first use."""
        if self.array is None:
            if self.target is not None:
                memory = self.target.resolve(arena)
                self.array = memory.reshape(self.shape) if self.view is None else self.view(memory)
            else:
                self.block = arena.take(self.space, n_bytes_of(self), self.keep)
                self.array = self._shaped(self.block.raw)
        return self.array

    def _shaped(self, raw: Array) -> Array:
        flat = raw[: n_bytes_of(self)].view(dtype_of(self.dtype))
        return as_channels_last(flat, self.shape) if self.channels_last else flat.reshape(self.shape)


def is_contiguous(array: Array) -> bool:
    """Return whether a raw array is C-contiguous (arrays of namespaces without flags are)."""
    flags = getattr(array, "flags", None)
    return True if flags is None else bool(flags.c_contiguous)


def as_channels_last(memory: Array, shape: Shape) -> Array:
    """C-contiguous `memory` as an array of `shape` whose second axis is innermost."""
    batch, channels, *spatial = shape
    n_axes = len(shape)
    return memory.reshape((batch, *spatial, channels)).transpose((0, n_axes - 1, *range(1, n_axes - 1)))


def channels_last_strides(shape: Shape, dtype: str) -> tuple[int, ...]:
    """Strides in bytes with the second axis innermost in memory."""
    strides = [0] * len(shape)
    step = dtype_of(dtype).itemsize
    for axis in (1, *range(len(shape) - 1, 1, -1), 0):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


class Block:
    """A piece of memory in one space."""

    __slots__ = ("n_bytes", "raw", "space")

    def __init__(self, space: Space, n_bytes: int) -> None:
        self.space = space
        self.n_bytes = n_bytes
        self.raw = space.empty((n_bytes,), "uint8")


class Arena:
    """Memory of a plan, handed out and taken back while the plan is compiled; nothing is allocated when it runs."""

    __slots__ = ("__weakref__", "_borrows", "_free", "_sizes", "n_bytes", "n_bytes_by_space")

    def __init__(self) -> None:
        self._free: dict[tuple[Space, int], list[Block]] = {}
        self._sizes: dict[Space, list[int]] = {}  # of blocks that are or were free, ascending
        self._borrows = False
        self.n_bytes = 0
        self.n_bytes_by_space: dict[Space, int] = {}
        _ARENAS.add(self)

    def take(self, space: Space, n_bytes: int, keep: bool = False) -> Block:
        """Return the free block that fits best and was given back last, or a new one.

        Args:
            space: In which memory.
            n_bytes: How large at least.
            keep: Whether the values outlast the pass, so that they must not be where another plan writes.
        """
        # what is borrowed is overwritten by the next run of its owner: not a place for values that are kept
        sizes = self._sizes.get(space, []) if not (keep and self._borrows) else []
        for position in range(bisect_left(sizes, n_bytes), len(sizes)):
            if sizes[position] > max(MAX_SLACK * n_bytes, 256):
                break
            blocks = self._free[space, sizes[position]]
            if blocks:
                # given back last, so probably still in a cache of the processor
                return blocks.pop()
        self.n_bytes += n_bytes
        self.n_bytes_by_space[space] = self.n_bytes_by_space.get(space, 0) + n_bytes
        return Block(space, n_bytes)

    def borrow(self, other: "Arena") -> None:
        """Use the free blocks of `other` too: its plan overwrites them before it reads them."""
        self._borrows = True
        for blocks in other._free.values():
            for block in blocks:
                self.give(block)

    def give(self, block: Block) -> None:
        """Take back a block whose buffer has had its last use."""
        key = (block.space, block.n_bytes)
        if key not in self._free:
            self._free[key] = []
            insort(self._sizes.setdefault(block.space, []), block.n_bytes)
        self._free[key].append(block)


def n_bytes_of(buffer: Buffer) -> int:
    """Return the number of bytes of an array."""
    size = dtype_of(buffer.dtype).itemsize
    for length in buffer.shape:
        size *= length
    return size


_ARENAS: Final["weakref.WeakSet[Arena]"] = weakref.WeakSet()


@fitted
def plan_memory(array_class: str, device_id: str = "0") -> list[int]:
    """Return the bytes that each plan of this process has taken for its values in the memory of one device.

    A plan keeps its memory as long as it exists. Memory that a backward pass uses after its forward pass is counted once.

    Args:
        array_class: Class of the arrays.
        device_id: Number of the device.

    Returns:
        A number for each plan with values there.

    Example:
        >>> from nn_core.ext import plan_memory
        >>> plan_memory("ArrayOfNoPlan")
        []
    """
    name = f"{array_class}:{device_id}"
    taken = [n for arena in list(_ARENAS) for space, n in list(arena.n_bytes_by_space.items()) if space.name == name]
    return sorted(taken, reverse=True)
