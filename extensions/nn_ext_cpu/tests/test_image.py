"""Images sampled at points beside the reference: more points than are treated together, and every kind of padding."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def uniform(*shape: int, limit: float = 1.0) -> np.ndarray[Any, Any]:
    """Random numbers around 0."""
    return np.random.default_rng(len(shape)).uniform(-limit, limit, shape).astype(np.float32)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize("padding", ["zero", "repeat", "reflect"])
def test_points_of_a_grid(assert_alike: Compare, padding: str, channel_last: bool, align_corners: bool) -> None:
    settings: dict[str, Any] = {"padding_mode": padding, "align_corners": align_corners, "channel_last": channel_last}
    image = uniform(1, 9, 7, 5) if channel_last else uniform(1, 5, 9, 7)
    assert_alike(lambda x, grid: F.warp_by_grid(x, grid, **settings), image, uniform(1, 20, 23, 2, limit=2.5), tolerance=1e-3)


def test_points_of_volumes(assert_alike: Compare) -> None:
    assert_alike(F.warp_by_grid, uniform(3, 2, 4, 5, 6), uniform(3, 5, 8, 9, 3, limit=1.2), tolerance=1e-3)


def test_displaced_pixels(assert_alike: Compare) -> None:
    assert_alike(F.warp_by_flow, uniform(2, 3, 17, 19), uniform(2, 2, 17, 19, limit=4.0), tolerance=1e-3)


def test_nearest_pixels(assert_alike: Compare) -> None:
    grid = uniform(2, 8, 9, 2, limit=1.5)
    assert_alike(lambda x: F.warp_by_grid(x, nn.Variable.from_numpy_array(grid), mode="nearest"), uniform(2, 3, 6, 5))


def test_points_that_are_no_numbers_leave_other_points_alone() -> None:
    grid = uniform(1, 4, 4, 2)
    grid[0, 1, 2] = np.nan
    with nn.context_scope(nn.Context(["cpu"])):
        y = F.warp_by_grid(nn.Variable.from_numpy_array(uniform(1, 2, 5, 5)), nn.Variable.from_numpy_array(grid))
        y.forward()
    bad = np.isnan(y.d)
    assert bad[0, :, 1, 2].all() and bad.sum() == 2
