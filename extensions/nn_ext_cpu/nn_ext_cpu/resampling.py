"""Functions that compute each axis by itself: an element along it is a weighted sum of a few elements, its taps.

Interpolation, padding by elements of the array and shifting are of this kind, and so are their gradients, with the taps
the other way round.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes, refuse_empty

Numbers: TypeAlias = np.ndarray[Any, Any]


class Taps(NamedTuple):
    """The taps of an axis: those of place i are ``starts[i]`` up to ``starts[i + 1]``."""

    starts: Numbers
    indices: Numbers
    weights: Numbers

    def transposed(self, length: int) -> "Taps":
        """Return the taps that give each of `length` elements the weighted sum of the places that read it."""
        places = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        order = np.argsort(self.indices, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(self.indices, minlength=length))))
        return Taps(starts, places[order], self.weights[order])


#: ``taps(axis, length, places, args)``: taps of `places` places on an axis of this length; None where nothing changes.
TapsOf: TypeAlias = Callable[[int, int, int, Mapping[str, Any]], Taps | None]


def _uniform(indices: Numbers, weights: Numbers) -> Taps:
    """Equally many taps for each place, given as arrays (places, taps)."""
    return Taps(np.arange(0, indices.size + 1, indices.shape[1]), indices.reshape(-1), weights.reshape(-1))


class Resampling:
    """A function of x and y of one rank.

    Args:
        taps: Those of one axis of y on that of x.
        transposed: The function is the gradient of that one: its input is as long as y, and its output as x.
    """

    def __init__(self, taps: TapsOf, *, transposed: bool) -> None:
        self._taps = taps
        self._transposed = transposed

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, and arrays without elements."""
        if not forward_arrays(call)[0].shape:  # type: ignore[union-attr]  # x is always there
            return Refusal("takes arrays with at least one axis")
        return refuse_empty(call) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the sums."""
        return self._prepared(call, forward_arrays(call), [0, 1], self._transposed)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the sums the other way round."""
        return self._prepared(call, backward_arrays(call, wanted), [2, 3], not self._transposed)

    def _prepared(self, call: Call, arrays: Sequence[ArrayDesc | None], places: Sequence[int], transposed: bool) -> Runner:
        source, target = (arrays[place] for place in places)
        assert source is not None and target is not None
        found = self._found(call, source.shape, target.shape, transposed)
        if not found:
            same = np.arange(target.shape[0])[:, None]
            found = [(0, _uniform(same, np.ones(same.shape)))]
        if target.size > source.size:
            found.reverse()  # the innermost axis is the slowest one, and so comes when there are fewer elements
        settings: dict[str, Any] = {
            "axes": [axis for axis, _ in found],
            "starts": np.concatenate([taps.starts for _, taps in found]).tolist(),
            "indices": np.concatenate([taps.indices for _, taps in found]).tolist(),
            "weights": np.concatenate([taps.weights for _, taps in found]).astype(float).tolist(),
        }
        runner: Runner = _native.prepare("resample", arrays, places=list(places), **settings)
        return runner

    def _found(self, call: Call, source: Shape, target: Shape, transposed: bool) -> list[tuple[int, Taps]]:
        """Return the axes that are resampled, with their taps."""
        args = {**call.args, "ndim": len(source)}
        found: list[tuple[int, Taps]] = []
        for axis, (length, n_places) in enumerate(zip(source, target, strict=True)):
            taps = self._taps(axis, n_places, length, args) if transposed else self._taps(axis, length, n_places, args)
            if taps is not None:
                found.append((axis, taps.transposed(n_places) if transposed else taps))
        return found


def _interpolated(axis: int, length: int, places: int, args: Mapping[str, Any]) -> Taps | None:
    """Taps of Interpolate. A coordinate is numerator / denominator in whole numbers, so that no rounding moves a tap."""
    first = args["ndim"] - args["n_spatial"] - bool(args["channel_last"])
    if not first <= axis < first + args["n_spatial"]:
        return None
    nearest, place = args["mode"] == "nearest", np.arange(places)
    if nearest and args["half_pixel_for_nn"]:
        numerator, denominator = (2 * place + 1) * length, 2 * places
    elif places == 1:
        numerator, denominator = place, 1
    elif args["align_corners"]:
        numerator, denominator = place * (length - 1), places - 1
    elif args["half_pixel"]:
        numerator, denominator = (2 * place + 1) * length - places, 2 * places
    else:
        numerator, denominator = place * length, places
    numerator = np.clip(numerator, 0, (length - 1) * denominator)
    low = numerator // denominator
    if nearest:
        return _uniform(low[:, None], np.ones((places, 1)))
    fraction = (numerator - low * denominator) / denominator
    high = np.clip(low + 1, 0, length - 1)
    return _uniform(np.stack((low, high), axis=1), np.stack((1 - fraction, fraction), axis=1))


def _spatial(name: str) -> TapsOf:
    """Interpolation of as many axes as the argument `name` has lengths."""
    return lambda axis, length, places, args: _interpolated(axis, length, places, {**args, "n_spatial": len(args[name])})


def _picked(positions: Numbers) -> Taps:
    return _uniform(positions[:, None], np.ones((positions.size, 1)))


def _nearest(positions: Numbers, length: int) -> Numbers:
    return np.clip(positions, 0, length - 1)


def _mirrored(positions: Numbers, length: int) -> Numbers:
    """At the edges of the outer elements: ... 1 0 | 0 1 2 | 2 1 ..."""
    turned = positions % (2 * length)
    return np.minimum(turned, 2 * length - 1 - turned)


def _reflected(positions: Numbers, length: int) -> Numbers:
    """At the outer elements themselves: ... 2 1 | 0 1 2 | 1 0 ..."""
    turned = positions % max(2 * length - 2, 1)
    return np.minimum(turned, 2 * length - 2 - turned)


#: How positions outside of an axis are brought inside, by the mode of padding, and by that of shifting.
_PADDINGS: Final = {"reflect": _reflected, "repeat": _nearest}
_BORDERS: Final = {"reflect": _mirrored, "nearest": _nearest}


def _padded(axis: int, length: int, places: int, args: Mapping[str, Any]) -> Taps | None:
    """Pairs of widths belong to the last axes; the mode constant picks nothing outside."""
    widths = args["pad_width"]
    first = 2 * (axis - args["ndim"]) + len(widths)
    if first < 0 or not any(widths[first : first + 2]):
        return None
    positions = np.arange(places) - widths[first]
    if args["mode"] in _PADDINGS:
        return _picked(_PADDINGS[args["mode"]](positions, length))
    inside = (positions >= 0) & (positions < length)
    return Taps(np.concatenate(([0], np.cumsum(inside))), positions[inside], np.ones(length))


def _shifted(axis: int, length: int, places: int, args: Mapping[str, Any]) -> Taps | None:
    """Shifts belong to the last axes."""
    shifts = args["shifts"]
    first = axis - args["ndim"] + len(shifts)
    if first < 0 or not shifts[first]:
        return None
    return _picked(_BORDERS[args["border_mode"]](np.arange(places) - shifts[first], length))


#: Padding by elements of the array; the mode constant has a value of its own and goes elsewhere.
PADDING: Final = Resampling(_padded, transposed=False)

RESAMPLING: Final[Mapping[str, Kernel]] = {
    "Interpolate": Resampling(_spatial("output_size"), transposed=False),
    "InterpolateBackward": Resampling(_spatial("input_size"), transposed=True),
    "PadBackward": Resampling(_padded, transposed=True),
    "Shift": Resampling(_shifted, transposed=False),
    "ShiftBackward": Resampling(_shifted, transposed=True),
}
