"""Fourier transforms beside the reference: lengths of many factors, several axes, and more frames than fit together."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def normal(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("function", [F.fft, F.ifft], ids=["fft", "ifft"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 12, 30, 49, 61, 64, 122, 1000, 4096])
def test_lengths(assert_alike: Compare, n: int, function: Callable[..., nn.Variable], normalized: bool) -> None:
    assert_alike(lambda x: function(x, 1, normalized), normal(19, n, 2))


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_axes(assert_alike: Compare, n_axes: int, isa: str) -> None:
    assert_alike(lambda x: F.fft(x, n_axes), normal(3, 8, 15, 14, 2))
    assert_alike(lambda x: F.ifft(x, n_axes), normal(3, 8, 15, 14, 2))


FRAMES: list[dict[str, Any]] = [
    {"window_size": 16, "stride": 4, "fft_size": 16},
    {"window_size": 20, "stride": 7, "fft_size": 30},
    {"window_size": 15, "stride": 5, "fft_size": 15, "window_type": "hamming"},
    {"window_size": 16, "stride": 4, "fft_size": 16, "center": False, "window_type": "rectangular"},
    {"window_size": 16, "stride": 4, "fft_size": 32, "pad_mode": "constant"},
]


@pytest.mark.parametrize("settings", FRAMES, ids=lambda row: f"{row['fft_size']}-{row['stride']}")
@pytest.mark.parametrize("samples", [40, 301])
def test_frames_there_and_back(assert_alike: Compare, samples: int, settings: dict[str, Any]) -> None:
    assert_alike(lambda x: F.stft(x, **settings), normal(3, samples))
    n_frames = samples // settings["stride"] + 2
    spectra = normal(2, settings["fft_size"] // 2 + 1, n_frames)
    assert_alike(lambda a, b: F.istft(a, b, **settings), spectra, -spectra, tolerance=1e-3)


def test_lengths_of_large_primes_are_refused() -> None:
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = F.fft(nn.Variable.from_numpy_array(normal(2, 134, 2)), 1)
        y.forward()
    assert any("prime factors of at most 61" in str(fallback) for fallback in nn.fallback_report())
