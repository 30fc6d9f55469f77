"""Index keys: which elements a key of integers and slices names, for reading and for writing them as a whole."""

from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from nn_core.typing import Array, Shape

if TYPE_CHECKING:
    from nn_core.engine.array_api_adapter.library import Library


def is_everything(key: Any) -> bool:
    """Return whether a key names the whole array."""
    return key is Ellipsis or key == () if isinstance(key, (EllipsisType, tuple)) else False


def is_basic(key: Any) -> bool:
    """Return whether a key has only integers, slices, None and an ellipsis."""
    return all(isinstance(part, (int, np.integer, slice, EllipsisType)) or part is None for part in _parts(key)) and not any(
        isinstance(part, bool) for part in _parts(key)
    )


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


@dataclass(frozen=True)
class BasicSelection:
    """The elements that a basic key selects in an array of one shape.

    Attributes:
        key: An integer, or a slice of positive step inside of the axis, for each axis of the array.
        turned: The axes that are read backwards first, because the step was negative.
        shape: Shape of the result, new axes included.
    """

    key: tuple[int | slice, ...]
    turned: tuple[int, ...]
    shape: Shape

    def read(self, library: "Library", value: Array) -> Array:
        """Return the elements of `value`."""
        if self.turned:
            value = library.flip(value, self.turned)
        return library.reshape(value[self.key] if self.key else value, self.shape)

    def write(self, library: "Library", value: Array, part: Array) -> Array:
        """`value` with `part`, of the shape of the result, in its places."""
        lengths = tuple(len(range(entry.start, entry.stop, entry.step)) for entry in self.key if isinstance(entry, slice))
        part = library.reshape(part, lengths)
        if self.turned:
            value = library.flip(value, self.turned)
        written = library.updated(value, self.key, part)
        return library.flip(written, self.turned) if self.turned else written

    def __hash__(self) -> int:  # slices have no hash before Python 3.12
        return hash(self.shape)


def basic_selection(key: Any, shape: Shape) -> BasicSelection:
    """Return the elements that a basic key selects in an array of `shape`.

    Raises:
        IndexError: when an integer is out of range, or the key has too many parts.
    """
    result = np.broadcast_to(np.empty((), "?"), shape)[key].shape
    parts = [part for part in _parts(key) if part is not None]
    dots = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    rest = len(shape) - len(parts) + (dots < len(parts))
    parts = [*parts[:dots], *[slice(None)] * rest, *parts[dots + 1 :]]
    entries: list[int | slice] = []
    turned = []
    for axis, (part, length) in enumerate(zip(parts, shape, strict=True)):
        if not isinstance(part, slice):
            entries.append(int(part) % length)
            continue
        start, stop, step = part.indices(length)
        count = len(range(start, stop, step))
        if step < 0:
            turned.append(axis)
            start, step = length - 1 - start, -step
        end = start + (count - 1) * step + 1 if count else start
        entries.append(slice(min(start, length), max(min(end, length), 0), step))
    return BasicSelection(tuple(entries), tuple(turned), result)
