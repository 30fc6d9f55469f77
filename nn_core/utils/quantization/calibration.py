"""Ranges of the values of a network, from inputs that are typical for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.data.iterator import DataIterator
from nn_core.errors import ArgumentError
from nn_core.variable import Variable

Array: TypeAlias = np.ndarray[Any, Any]

METHODS: Final = ("minmax", "percentile", "mse")
_BINS: Final = 2048
#: Parts of the whole range that "mse" tries.
_PARTS: Final = np.linspace(0.3, 1.0, 36)
_LEVELS: Final = 255


@dataclass(slots=True)
class Range:
    """The values of a variable in all passes of a calibration.

    Attributes:
        low: The smallest value.
        high: The largest one.
        counts: A histogram between them; None where only they are wanted.
    """

    low: float = np.inf
    high: float = -np.inf
    counts: Array | None = field(default=None, repr=False)

    def widen(self, values: Array) -> None:
        """Take values into the bounds."""
        if values.size:
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    def count(self, values: Array) -> None:
        """Count values, once the bounds are known."""
        high = self.high if self.high > self.low else self.low + 1
        found = np.histogram(values, _BINS, (self.low, high))[0]
        self.counts = found if self.counts is None else self.counts + found

    def bounds(self, method: str, percentile: float) -> tuple[float, float]:
        """Return the part of the range that levels cover, with 0 in it.

        Args:
            method: One of "minmax", "percentile" and "mse".
            percentile: The share of the values, in percent, that "percentile" leaves below the upper and above the lower end.
        """
        low, high = self.low, self.high
        if self.counts is not None and high > low and method == "percentile":
            low, high = self._percentile(percentile)
        elif self.counts is not None and high > low and method == "mse":
            low, high = self._least_error()
        return min(low, 0.0), max(high, 0.0)

    def _edges(self) -> Array:
        return np.linspace(self.low, self.high, _BINS + 1)

    def _percentile(self, percentile: float) -> tuple[float, float]:
        assert self.counts is not None
        share, outside = np.cumsum(self.counts) / self.counts.sum(), (100 - percentile) / 100
        first, last = (int(np.searchsorted(share, part)) for part in (outside, 1 - outside))
        edges = self._edges()
        return float(edges[min(first, _BINS - 1)]), float(edges[min(last, _BINS - 1) + 1])

    def _least_error(self) -> tuple[float, float]:
        assert self.counts is not None
        edges = self._edges()
        middles = (edges[:-1] + edges[1:]) / 2
        errors = []
        for part in _PARTS:
            scale, zero_point = scale_of(part * min(self.low, 0.0), part * max(self.high, 0.0))
            levels = np.clip(np.round(middles / scale) + zero_point, 0, _LEVELS)
            errors.append(float((self.counts * ((levels - zero_point) * scale - middles) ** 2).sum()))
        best = _PARTS[int(np.argmin(errors))]
        return float(best * self.low), float(best * self.high)


def scale_of(low: float, high: float) -> tuple[np.float32, int]:
    """Return scale and zero point of the 256 levels of uint8 from `low` to `high`, between which 0 is."""
    scale = np.float32((high - low) / _LEVELS)
    if not np.isfinite(scale) or scale <= np.finfo(np.float32).tiny:
        scale = np.float32(1.0)
    return scale, int(np.clip(np.round(-low / float(scale)), 0, _LEVELS))


def require_method(method: str, percentile: float) -> None:
    """Check the settings of a calibration.

    Raises:
        ArgumentError: when there is no such method, or a percentile that is out of range.
    """
    if method not in METHODS:
        raise ArgumentError(f"quantize: method must be one of {', '.join(METHODS)}, got {method!r}")
    if not 50 < percentile <= 100:
        raise ArgumentError(f"quantize: percentile must be above 50 and at most 100, got {percentile}")


def batches_of(inputs: Mapping[str, Variable], calibration: Any) -> list[dict[str, Array]]:
    """Return what each pass of a calibration is given, by name; batches have the lengths of the inputs.

    Args:
        inputs: The inputs of the network.
        calibration: Samples, an array for each input by name, or one array for the only input; or an iterable of batches,
            each such a mapping, an array, or a tuple of which the first entries are for the inputs in order. Of a data
            iterator one epoch is taken.

    Raises:
        ArgumentError: when samples have other shapes than the inputs, or there are none.
    """
    pieces = [calibration] if isinstance(calibration, Mapping) or hasattr(calibration, "shape") else calibration
    if not isinstance(pieces, Iterable) or isinstance(pieces, (str, bytes)):
        raise ArgumentError(
            f"quantize: calibration must be arrays or an iterable of batches, got {type(calibration).__name__}"
        )
    if isinstance(pieces, DataIterator):  # gives batches for ever
        pieces = itertools.islice(pieces, -(-pieces.size // pieces.batch_size))
    found: list[dict[str, Array]] = []
    for piece in pieces:
        found += _cut(inputs, _by_name(inputs, piece))
    if not found:
        raise ArgumentError("quantize: calibration must have samples, got none")
    return found


def _by_name(inputs: Mapping[str, Variable], piece: Any) -> dict[str, Array]:
    if isinstance(piece, Mapping):
        given = dict(piece)
    else:
        listed = list(piece) if isinstance(piece, (tuple, list)) else [piece]
        given = dict(zip(inputs, listed, strict=False))
    if not set(inputs) <= set(given):
        raise ArgumentError(f"quantize: calibration must have an array for each of {list(inputs)}, got {list(given)}")
    arrays = {name: np.asarray(given[name]) for name in inputs}
    for name, variable in inputs.items():
        shape = arrays[name].shape
        if len(shape) != variable.ndim or shape[1:] != variable.shape[1:]:
            raise ArgumentError(
                f"quantize: calibration of {name!r} must be samples of shape {variable.shape[1:]}, got an array of {shape}"
            )
    return arrays


def _cut(inputs: Mapping[str, Variable], arrays: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Cut samples into batches; the last one is filled up with the first samples."""
    if any(len(array) == 0 for array in arrays.values()):
        return
    count = max(-(-len(arrays[name]) // variable.shape[0]) for name, variable in inputs.items())
    for number in range(count):
        batch = {}
        for name, variable in inputs.items():
            rows = np.arange(variable.shape[0]) + number * variable.shape[0]
            batch[name] = arrays[name][rows % len(arrays[name])]
        yield batch
