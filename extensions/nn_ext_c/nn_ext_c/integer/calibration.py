"""Ranges of the values in a network, from inputs that are typical for it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError
from nn_core.function import Function
from nn_ext_c.graphs import key_of
from nn_ext_c.integer.numbers import Array, dequantized, quantized, scale_of

METHODS: Final = ("minmax", "percentile", "mse")
_BINS: Final = 2048
#: Parts of the whole range that "mse" tries.
_PARTS: Final = np.linspace(0.3, 1.0, 36)


@dataclass(slots=True)
class Range:
    """The observed values of a variable: their bounds, and a histogram between them."""

    low: float = np.inf
    high: float = -np.inf
    counts: Array | None = None

    def widen(self, values: Array) -> None:
        """Take values in."""
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    def count(self, values: Array) -> None:
        """Count values once the bounds are known."""
        found = np.histogram(values, _BINS, (self.low, self.high if self.high > self.low else self.low + 1))[0]
        self.counts = found if self.counts is None else self.counts + found

    def bounds(self, method: str, percentile: float) -> tuple[float, float]:
        """Return the part of the range that integers cover."""
        if method == "minmax" or self.counts is None or self.high <= self.low:
            return self.low, self.high
        return self._percentile(percentile) if method == "percentile" else self._least_error()

    def _percentile(self, percentile: float) -> tuple[float, float]:
        assert self.counts is not None
        edges = np.linspace(self.low, self.high, _BINS + 1)
        share = np.cumsum(self.counts) / self.counts.sum()
        outside = (100 - percentile) / 100
        first = int(np.searchsorted(share, outside, side="right"))
        last = int(np.searchsorted(share, 1 - outside))
        return float(edges[min(first, _BINS - 1)]), float(edges[min(last, _BINS - 1) + 1])

    def _least_error(self) -> tuple[float, float]:
        assert self.counts is not None
        edges = np.linspace(self.low, self.high, _BINS + 1)
        middles = (edges[:-1] + edges[1:]) / 2
        errors = []
        for part in _PARTS:
            scale = scale_of(part * self.low, part * self.high)
            errors.append(float((self.counts * (dequantized(quantized(middles, scale), scale) - middles) ** 2).sum()))
        best = _PARTS[int(np.argmin(errors))]
        return float(best * self.low), float(best * self.high)


def ranges_of(
    order: Sequence[Function],
    inputs: Mapping[str, nn.Variable],
    calibration: Any,
    method: str,
    percentile: float,
) -> dict[Any, tuple[float, float]]:
    """Return the range of each input and of each result, by `key_of`.

    Raises:
        ArgumentError: when the calibration does not fit the inputs, or holds or leads to numbers that are not finite.
    """
    _check_method(method, percentile)
    arrays = _arrays(inputs, calibration)
    variables = _kept(order, inputs)
    found = {key: Range() for key in variables}
    for _ in _passes(order, inputs, arrays):
        for key, variable in variables.items():
            found[key].widen(_finite(variable))
    if method != "minmax":
        for _ in _passes(order, inputs, arrays):
            for key, variable in variables.items():
                found[key].count(_finite(variable))
    return {key: entry.bounds(method, percentile) for key, entry in found.items()}


def _kept(order: Sequence[Function], inputs: Mapping[str, nn.Variable]) -> dict[Any, nn.Variable]:
    """Return the inputs and all results, which are kept after a pass."""
    results = [output for function in order for output in function.results]
    variables = {key_of(variable): variable for variable in (*inputs.values(), *results)}
    for variable in variables.values():
        if variable.parent is not None:
            variable.persistent = True
    return variables


def _check_method(method: str, percentile: float) -> None:
    if method not in METHODS:
        raise ArgumentError(f"export: method must be one of {', '.join(METHODS)}, got {method!r}")
    if not 50 < percentile <= 100:
        raise ArgumentError(f"export: percentile must be above 50 and at most 100, got {percentile}")


def _finite(variable: nn.Variable) -> Array:
    values = np.asarray(variable.d, np.float64)
    if not np.isfinite(values).all():
        raise ArgumentError(f"export: values must be finite to be calibrated, got others in {variable!r}")
    return values


def _arrays(inputs: Mapping[str, nn.Variable], calibration: Any) -> dict[str, Array]:
    if calibration is None:
        raise ArgumentError("export: calibration must be given for int8, an array of samples for each input, got None")
    given = dict(calibration) if isinstance(calibration, Mapping) else dict.fromkeys(list(inputs)[:1], calibration)
    if set(given) != set(inputs):
        raise ArgumentError(f"export: calibration must have an array for each of {list(inputs)}, got {list(given)}")
    arrays = {name: np.asarray(values, np.float32) for name, values in given.items()}
    for name, variable in inputs.items():
        if arrays[name].shape[1:] != variable.shape[1:] or not variable.ndim or not len(arrays[name]):
            raise ArgumentError(
                f"export: calibration of {name!r} must be samples of shape {variable.shape[1:]}, got {arrays[name].shape}"
            )
    return arrays


def _passes(order: Sequence[Function], inputs: Mapping[str, nn.Variable], arrays: Mapping[str, Array]) -> Iterator[None]:
    """Compute the network on each batch; the last one is filled up with the first samples."""
    roots = [output for function in order for output in function.results]
    before = {name: np.array(variable.d) for name, variable in inputs.items()}
    sink = F.sink(*roots)
    count = max(-(-len(arrays[name]) // variable.shape[0]) for name, variable in inputs.items())
    for number in range(count):
        for name, variable in inputs.items():
            rows = (np.arange(variable.shape[0]) + number * variable.shape[0]) % len(arrays[name])
            variable.d = arrays[name][rows]
        sink.forward()
        yield
    for name, variable in inputs.items():
        variable.d = before[name]
