"""Conversions between dtypes and memories, as runners of a plan."""

from nn_core.engine.arrays.casting import cast
from nn_core.engine.arrays.synced import HOST, Key, convert
from nn_core.typing import Array


class Conversion:
    """Runner that converts one raw array into another."""

    __slots__ = ("_exact", "_source", "_target")

    def __init__(self, source: Key, target: Key, exact: bool) -> None:
        self._source = source
        self._target = target
        self._exact = exact

    def __call__(self, *arrays: Array) -> None:
        source, target = arrays
        if self._source[0] is HOST and self._target[0] is HOST:
            cast(source, target, self._exact)
        elif self._source[0] is self._target[0]:
            target[...] = source
        else:
            convert(self._source, source, self._target, target, self._exact)
