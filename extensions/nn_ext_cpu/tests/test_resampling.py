"""Interpolation, padding and shifting beside the reference: every mode, and lengths that grow, shrink and stay."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def normal(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    "settings",
    [
        {"align_corners": True},
        {"align_corners": False},
        {"align_corners": False, "half_pixel": True},
        {"align_corners": False, "half_pixel": True, "half_pixel_for_nn": True},
    ],
    ids=lambda settings: "_".join(name for name, on in settings.items() if on) or "plain",
)
@pytest.mark.parametrize("size", [(9,), (4, 23), (7, 2), (5, 6), (1, 1), (3, 8, 40)], ids=str)
@pytest.mark.parametrize("channel_last", [False, True])
def test_interpolation(
    assert_alike: Compare, mode: str, settings: dict[str, bool], size: tuple[int, ...], channel_last: bool
) -> None:
    spatial = (5, 6, 17)[: len(size)]
    for channels in (3, 20):
        shape = (2, *spatial, channels) if channel_last else (2, channels, *spatial)
        assert_alike(
            lambda x: F.interpolate(x, output_size=size, mode=mode, channel_last=channel_last, **settings),
            normal(*shape),
        )


def test_gradient_of_interpolation_as_a_function(assert_alike: Compare) -> None:
    assert_alike(lambda dy: F.interpolate_backward(dy, input_size=(4, 5), mode="linear"), normal(2, 3, 11, 8))


@pytest.mark.parametrize("mode", ["reflect", "repeat"])
@pytest.mark.parametrize("width", [(1, 2), (0, 3, 2, 0), (5, 9, 7, 1), (0, 0, 2, 2, 0, 0), (0, 0, 0, 0)], ids=str)
def test_padding_by_elements_of_the_array(assert_alike: Compare, mode: str, width: tuple[int, ...]) -> None:
    assert_alike(lambda x: F.pad(x, width, mode=mode), normal(3, 4, 33))


@pytest.mark.parametrize("mode", ["constant", "reflect", "repeat"])
def test_gradient_of_padding_as_a_function(assert_alike: Compare, mode: str) -> None:
    assert_alike(lambda dy: F.pad_backward(dy, pad_width=(1, 2, 3, 0), mode=mode), normal(2, 9, 40))


@pytest.mark.parametrize("mode", ["nearest", "reflect"])
@pytest.mark.parametrize("shifts", [(2,), (0, -3), (1, 5, -9)])
def test_shift(assert_alike: Compare, mode: str, shifts: tuple[int, ...]) -> None:
    assert_alike(lambda x: F.shift(x, shifts, border_mode=mode), normal(4, 5, 6))


def test_large_arrays_are_shared_by_threads(assert_alike: Compare) -> None:
    assert_alike(lambda x: F.interpolate(x, output_size=(90, 150), mode="linear"), normal(16, 8, 45, 75))
    assert_alike(lambda x: F.interpolate(x, output_size=(700, 300), mode="linear"), normal(1, 1, 350, 600))
    assert_alike(lambda x: F.pad(x, (40, 40, 3, 3), mode="reflect"), normal(300, 500))


def test_nan_and_infinity_stay_with_the_elements_that_read_them() -> None:
    x = nn.Variable.from_numpy_array(np.array([[[1, np.nan, 3, np.inf, 5, 6]]], np.float32))
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = F.interpolate(x, output_size=(12,), mode="nearest", align_corners=False)
        z = F.pad(x, (1, 1), mode="reflect")
        nn.forward_all([y, z])
    np.testing.assert_array_equal(y.d, np.repeat(x.d, 2, axis=2))
    np.testing.assert_array_equal(z.d[0, 0], [np.nan, 1, np.nan, 3, np.inf, 5, 6, 5])


@pytest.mark.parametrize("name", ["shift", "flip"])
def test_arrays_without_axes_stay_as_they_are(name):
    with nn.context_scope(get_extension_context("cpu")):
        x = nn.NdArray.from_numpy_array(np.float32(2.5))
        assert getattr(F, name)(x).data == 2.5
