"""Fourier transforms of whole signals and of short frames."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes, refuse_empty


def _refuse(call: Call, lengths: Sequence[int]) -> Refusal | None:
    """Refuse dtypes other than float32 and bfloat16, arrays without elements, and lengths with large prime factors."""
    empty = refuse_empty(call)
    if empty is not None:
        return empty
    for length in lengths:
        rest = length
        for factor in range(2, _native.LARGEST_FACTOR + 1):
            while rest % factor == 0:
                rest //= factor
        if rest > 1:
            return Refusal(f"takes lengths with prime factors of at most {_native.LARGEST_FACTOR}, got {length}")
    return refuse_dtypes(call)


class Transform:
    """The transform of the last axes; its gradient is the other one.

    Args:
        inverse: Transform back.
    """

    def __init__(self, *, inverse: bool) -> None:
        self._inverse = inverse

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what ``_refuse`` does."""
        return _refuse(call, self._lengths(call))

    def forward(self, call: Call) -> Runner:
        """Prepare the transform."""
        return self._prepared(call, forward_arrays(call), [0, 1], self._inverse, self._inverse)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the conjugate transpose, which has the factor of the transform."""
        return self._prepared(call, backward_arrays(call, wanted), [2, 3], not self._inverse, self._inverse)

    def _lengths(self, call: Call) -> Sequence[int]:
        shape, n_axes = call.outputs[0].shape, call.args["signal_ndim"]
        assert isinstance(n_axes, int)
        return shape[len(shape) - 1 - n_axes : -1]

    def _prepared(
        self, call: Call, arrays: Sequence[ArrayDesc | None], places: Sequence[int], inverse: bool, divides: bool
    ) -> Runner:
        lengths = list(self._lengths(call))
        n = math.prod(lengths)
        scale = n**-0.5 if call.args["normalized"] else (1 / n if divides else 1.0)
        settings: dict[str, Any] = {"lengths": lengths, "inverse": inverse, "scale": float(scale)}
        runner: Runner = _native.prepare("fourier", arrays, places=list(places), **settings)
        return runner


class _Framed:
    """The common part of transforms of frames. Their gradients are functions of other frames."""

    def forward(self, call: Call) -> Runner:
        """Prepare the transform."""
        runner: Runner = _native.prepare(self._operation, forward_arrays(call), **_framing(call), **self._settings(call))
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the gradient rule serves."""
        return None

    _operation: str

    def _settings(self, call: Call) -> dict[str, Any]:
        raise NotImplementedError


class Frames(_Framed):
    """Transforms of windowed frames."""

    _operation = "frames"

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what ``_refuse`` does."""
        return _refuse(call, [_size(call)])

    def _settings(self, call: Call) -> dict[str, Any]:
        transposed = bool(call.args["as_istft_backward"])
        return {"reflect": call.args["pad_mode"] == "reflect" and not transposed, "transposed": transposed}


class Overlap(_Framed):
    """Frames transformed back and added up."""

    _operation = "overlap"

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what ``_refuse`` does, and transposes of frames with padding."""
        if call.args["as_stft_backward"] and call.args["center"] and call.args["pad_mode"] == "reflect":
            return Refusal("takes transposes of stft without padding by reflection")
        return _refuse(call, [_size(call)])

    def _settings(self, call: Call) -> dict[str, Any]:
        return {"transposed": bool(call.args["as_stft_backward"])}


#: Constant and cosine part of the windows.
_WINDOWS: Final = {"hanning": (0.5, 0.5), "hamming": (0.54, 0.46), "rectangular": (1.0, 0.0)}


def _framing(call: Call) -> dict[str, Any]:
    """Return the periodic window, centred in zeros, and the positions of frames."""
    size, length = _size(call), call.args["window_size"]
    assert isinstance(length, int)
    constant, cosine = _WINDOWS[str(call.args["window_type"])]
    left = (size - length) // 2
    window = constant - cosine * np.cos(2 * np.pi / length * np.arange(length))
    padded = np.pad(window, (left, size - length - left)).tolist()
    return {"window": padded, "stride": call.args["stride"], "margin": size // 2 if call.args["center"] else 0}


def _size(call: Call) -> int:
    size = call.args["fft_size"]
    assert isinstance(size, int)
    return size


FOURIER: Final[dict[str, Kernel]] = {
    "FFT": Transform(inverse=False),
    "IFFT": Transform(inverse=True),
    "STFT": Frames(),
    "ISTFT": Overlap(),
}
