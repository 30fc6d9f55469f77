"""Copies between views of arrays: the builder of the native operation ``copies``.

A view is a NumPy array of the right shape and strides over memory that is never read: indexing it, turning it and
broadcasting it gives the shape, strides and offset of the elements that a function moves.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from nn_core.ext import ArrayDesc
from nn_ext_cpu import _native
from nn_ext_cpu.describe import numpy_dtype, strides_of

#: A stand-in for an array of a call.
View: TypeAlias = np.ndarray[Any, Any]


class Copies:
    """Collects copies between the arrays of a call.

    Args:
        arrays: Descriptions of all arrays of the call, None where absent.
    """

    def __init__(self, arrays: Sequence[ArrayDesc | None]) -> None:
        self._arrays = list(arrays)
        self._views: dict[int, View] = {}
        self._fills: list[int] = []
        self._numbers: list[int] = []

    def view(self, place: int) -> View:
        """Return the whole array at `place`."""
        if place not in self._views:
            desc = self._arrays[place]
            assert desc is not None
            item = np.empty(1, numpy_dtype(desc.dtype))
            self._views[place] = as_strided(item, desc.shape, strides_of(desc), writeable=False)
        return self._views[place]

    def fill(self, place: int) -> None:
        """Set the array at `place` before anything is copied."""
        self._fills.append(place)

    def copy(self, source: int, read: View, target: int, written: View) -> None:
        """Copy what `read` shows of the array `source` to what `written` shows of `target`, with broadcasting."""
        head = [source, self._offset(source, read), target, self._offset(target, written), written.ndim]
        strides = np.broadcast_to(read, written.shape).strides + written.strides
        self._numbers += [*head, *written.shape, *[stride // written.itemsize for stride in strides]]

    def prepared(
        self, value: float = 0.0, *, among: Sequence[ArrayDesc | None] | None = None, places: Sequence[int] | None = None
    ) -> _native.Op:
        """Prepare the native operation.

        Args:
            value: The number that arrays are filled with.
            among: All arrays of the operation, where those of this object are the ones at `places`.
            places: Their positions.
        """
        settings: dict[str, Any] = {"fills": self._fills, "copies": self._numbers, "value": float(value)}
        if among is None:
            return _native.prepare("copies", self._arrays, **settings)
        return _native.prepare("copies", among, views=self._arrays, places=places, **settings)

    def _offset(self, place: int, view: View) -> int:
        """Return the distance of the first element of `view` from that of the array, in elements."""
        return (view.ctypes.data - self.view(place).ctypes.data) // view.itemsize
