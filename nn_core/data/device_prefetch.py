"""Batches that are brought to a device one step ahead."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from nn_core.context import Context, checked_context, get_current_context
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.spaces import space_of
from nn_core.engine.arrays.synced import HOST, Space, ready
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import described, fitted, fitted_methods
from nn_core.errors import ArgumentError, BackendNotFoundError, BackendUnavailableError, PluginError


class Batches(Protocol):
    """An iterator over batches, such as `DataIterator`."""

    def next(self) -> Sequence[Any]: ...


@fitted_methods("next")
class DevicePrefetcher:
    """The batches of an iterator as NdArrays on a device; each is brought there while the step before it computes.

    ``next()`` gives a batch that is on its way already, and takes the following one from the iterator. Floating-point numbers
    arrive in the dtype of the context, bytes too, whole numbers as int64. ``x.d = batch[0]`` copies within the device. In a
    context of the host, batches are given as they are.

    Args:
        data: The iterator. Whatever it has besides is found here, too; its position is one batch ahead.
        context: The device; the current context by default.

    Raises:
        ArgumentError: when `data` has no method `next`.

    Example:
        >>> from nn_core.data.device_prefetch import DevicePrefetcher
        >>> from nn_core.data import data_iterator_simple
        >>> data = data_iterator_simple(lambda i: (np.full(3, i),), 4, 2, with_memory_cache=False)
        >>> ahead = DevicePrefetcher(data)
        >>> x = nn.Variable((2, 3))
        >>> x.d, = ahead.next()
        >>> x.d.tolist()
        [[0, 0, 0], [1, 1, 1]]
    """

    @fitted
    def __init__(self, data: Batches, context: Context | None = None) -> None:
        if not callable(getattr(data, "next", None)):
            raise ArgumentError(f"DevicePrefetcher: data must have a method next, as DataIterator has, got {described(data)}")
        self._data = data
        self._context = get_current_context() if context is None else checked_context("DevicePrefetcher", context)
        self._ahead: tuple[Sequence[Any] | Exception, Any] | None = None
        self._state: Any = self._position()

    def next(self) -> Sequence[Any]:
        """Return the next batch.

        Raises:
            StopIteration: when the iterator has ended.
            Exception: what the iterator raised for this batch.
        """
        batch, state = self._taken() if self._ahead is None else self._ahead
        self._ahead = None
        self._state = state
        if isinstance(batch, Exception):
            raise batch
        self._ahead = self._taken()
        return batch

    def get_state(self) -> Any:
        """Return the position after the last batch that was given; what is ahead of it does not count."""
        return self._state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        set_state: Any = getattr(self._data, "set_state")  # noqa: B009  # iterators need not have it
        set_state(state)
        self._ahead = None
        self._state = state

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return self

    def __next__(self) -> Sequence[Any]:
        return self.next()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._data, name)

    def _taken(self) -> tuple[Sequence[Any] | Exception, Any]:
        """Return the next batch of the iterator on its way to the device, or why there is none; and the position after it."""
        try:
            batch: Sequence[Any] | Exception = self._sent(self._data.next())
        except Exception as error:  # it belongs to the batch, and is raised when that is asked for
            batch = error
        return batch, self._position()

    def _position(self) -> Any:
        get_state = getattr(self._data, "get_state", None)
        return None if get_state is None else get_state()

    def _sent(self, batch: Sequence[Any]) -> Sequence[Any]:
        space = _space(self._context)
        if space is HOST:
            return batch
        return tuple([_on_device(values_of(values), space, self._context.dtype) for values in batch])


#: Kinds of NumPy's dtypes that arrive as whole numbers: bool, and signed and unsigned integers.
_WHOLE: Final = "biu"


def _on_device(values: Any, space: Space, dtype: str) -> NdArray:
    is_whole = values.dtype.kind in _WHOLE and values.dtype.itemsize > 1
    array = NdArray(values.shape)
    target = array.write(space, "int64" if is_whole else dtype)
    ready(space)
    if space.upload is not None:
        space.upload(target, values)
    else:
        target[...] = space.from_numpy(np.ascontiguousarray(values, target.dtype))
    return array


def _space(context: Context) -> Space:
    """Return the memory of the first backend of a context that can be used."""
    for name, _ in context.entries:
        try:
            return space_of(get_backend(name), context.device_id)
        except (BackendNotFoundError, BackendUnavailableError, PluginError):
            continue  # as dispatch passes over those that cannot be used
    return HOST
