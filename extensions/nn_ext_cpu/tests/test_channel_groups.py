"""Group and instance normalization of images that lie channels-last, as convolutions leave them."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def images(*shape: int) -> np.ndarray[Any, Any]:
    """Return numbers far from 0, so that a variance that cancels shows."""
    return (np.random.default_rng(0).standard_normal(shape) * 2 + 7).astype(np.float32)


def parameters(channels: int, n_spatial: int) -> list[np.ndarray[Any, Any]]:
    """beta and gamma."""
    return list(np.random.default_rng(1).standard_normal((2, 1, channels, *(1,) * n_spatial)).astype(np.float32))


@pytest.mark.parametrize(("groups", "with_parameters"), [(1, True), (4, True), (8, False)])
@pytest.mark.parametrize("shape", [(3, 8, 9, 7), (1, 8, 30), (2, 8, 3, 4, 5)])
def test_group_normalization_between_convolutions(
    assert_alike: Compare, shape: tuple[int, ...], groups: int, with_parameters: bool
) -> None:
    n_spatial = len(shape) - 2
    weight = np.random.default_rng(2).standard_normal((8, 8, *(3,) * n_spatial)).astype(np.float32) * 0.2

    def function(x: nn.Variable, w: nn.Variable, beta: nn.Variable, gamma: nn.Variable) -> nn.Variable:
        h = F.convolution(x, w, pad=(1,) * n_spatial)
        shift, scale = (beta, gamma) if with_parameters else (None, None)
        h = F.relu(F.group_normalization(h, shift, scale, num_groups=groups))
        return F.convolution(h + 0 * F.sum(beta * gamma), w, pad=(1,) * n_spatial)

    assert_alike(function, images(*shape), weight, *parameters(8, n_spatial), tolerance=1e-4)


def test_instance_normalization_between_convolutions(assert_alike: Compare, two_threads: None) -> None:
    weight = np.random.default_rng(2).standard_normal((6, 6, 1, 1)).astype(np.float32)

    def function(x: nn.Variable, w: nn.Variable, beta: nn.Variable, gamma: nn.Variable) -> nn.Variable:
        return F.convolution(F.instance_normalization(F.convolution(x, w), beta, gamma), w)

    assert_alike(function, images(4, 6, 40, 40), weight, *parameters(6, 2), tolerance=1e-4)


def test_the_mean_of_equal_elements_is_exact() -> None:
    x = nn.Variable.from_numpy_array(np.full((2, 4, 5, 6), 0.1, np.float32))
    w = nn.Variable.from_numpy_array(np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1))
    beta, gamma = (nn.Variable.from_numpy_array(a) for a in parameters(4, 2))
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = F.convolution(F.group_normalization(F.convolution(x, w), beta, gamma, 2), w)
    y.forward()
    np.testing.assert_array_equal(y.d, np.broadcast_to(beta.d, y.shape))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_in_its_group(value: float) -> None:
    x = images(2, 4, 5, 6)
    x[1, 3, 2, 2] = value
    w = nn.Variable.from_numpy_array(np.ones((4, 1, 1, 1), np.float32))
    with nn.context_scope(nn.Context(["cpu:float"])):
        h = F.convolution(nn.Variable.from_numpy_array(x), w, group=4)
        y = F.convolution(F.group_normalization(h, None, None, 2), w, group=4)
    y.forward()
    assert np.isnan(y.d[1, 2:]).all()
    assert np.isfinite(y.d[0]).all() and np.isfinite(y.d[1, :2]).all()
