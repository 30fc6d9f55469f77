"""Normalizations are exactly beta where x is the mean: a sign or a comparison after them shows every rounding."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.testing.assertions import require

rng = np.random.default_rng(0)
MEAN = rng.standard_normal(33).astype(np.float32)
VARIANCE = rng.uniform(0.01, 3, 33).astype(np.float32)
BETA = rng.standard_normal(33).astype(np.float32)
GAMMA = rng.uniform(-2, 2, 33).astype(np.float32)

#: Image shapes: channels with and without pixels, and where channels-last images are laid out.
SHAPES = [(5, 33), (3, 33, 1, 1), (2, 33, 3, 5), (1, 33, 40, 40)]


def variable(values: Any) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.asarray(values, np.float32))


def parameters(shape: tuple[int, ...], *arrays: Any) -> list[nn.Variable | None]:
    place = (1, 33) + (1,) * (len(shape) - 2)
    return [None if array is None else variable(array.reshape(place)) for array in arrays]


def exact(y: nn.Variable, beta: Any, relu: bool, **flags: bool) -> None:
    y.forward(**flags)
    expected = np.zeros(33, np.float32) if beta is None else beta
    expected = np.maximum(expected, 0) if relu else expected
    shape = (1, 33) + (1,) * (y.ndim - 2)
    np.testing.assert_array_equal(y.d, np.broadcast_to(expected.reshape(shape), y.shape))


@pytest.mark.parametrize("flags", [{}, {"clear_buffer": True}], ids=["forward", "inference"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("beta", "gamma"), [(None, None), (BETA, None), (None, GAMMA), (BETA, GAMMA)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_by_running_statistics(shape: tuple[int, ...], beta: Any, gamma: Any, relu: bool, flags: dict[str, bool]) -> None:
    x = variable(np.broadcast_to(MEAN.reshape(1, 33, *[1] * (len(shape) - 2)), shape))
    y = F.batch_normalization(x, *parameters(shape, beta, gamma, MEAN, VARIANCE), batch_stat=False)
    exact(F.relu(y) if relu else y, beta, relu, **flags)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fused_with_a_sum_and_a_relu(shape: tuple[int, ...]) -> None:
    x = variable(np.broadcast_to(MEAN.reshape(1, 33, *[1] * (len(shape) - 2)), shape))
    given = parameters(shape, BETA, GAMMA, MEAN, VARIANCE)
    exact(F.fused_batch_normalization(x, *given, batch_stat=False), BETA, relu=True)
    exact(F.fused_batch_normalization(x, *given, variable(np.zeros(shape)), batch_stat=False), BETA, relu=True)


def rows(n: int) -> Any:
    """Rows of equal numbers, whose mean is that number."""
    return np.repeat(rng.standard_normal((40, 1)), n, axis=1).astype(np.float32)


NORMALIZATIONS: dict[str, Callable[[Any], nn.Variable]] = {
    "batch": lambda x: F.batch_normalization(variable(x.T), None, None, None, None),
    "layer": lambda x: F.layer_normalization(variable(x), None, None),
    "instance": lambda x: F.instance_normalization(variable(x[np.newaxis]), None, None),
    "group": lambda x: F.group_normalization(variable(np.repeat(x, 4, axis=0)[np.newaxis]), None, None, 40),
    "tensor": lambda x: F.tensor_normalization(variable(x), 0),
    "weight": lambda x: F.weight_standardization(variable(x)),
}


@pytest.mark.parametrize("n", [1, 3, 7, 16, 100, 513, 5000])
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_equal_numbers_are_their_own_mean(name: str, n: int) -> None:
    y = NORMALIZATIONS[name](rows(n))
    y.forward()
    require(not y.d.any(), f"{name}: 0 for equal numbers, got up to {abs(y.d).max()}")


def test_bfloat16() -> None:
    mean = (np.arange(33, dtype=np.float32) - 16) / 8  # what bfloat16 holds
    with nn.context_scope(nn.Context(["cpu:bfloat16"])):
        x = variable(np.broadcast_to(mean.reshape(1, 33, 1), (2, 33, 7)))
        y = F.batch_normalization(x, *parameters((2, 33, 7), None, GAMMA, mean, VARIANCE), batch_stat=False)
        y.forward()
        require(not y.d.astype(np.float32).any(), "0 where x is the mean")


@pytest.mark.parametrize("batch_stat", [True, False])
def test_the_scale_of_a_channel_is_rounded_once(batch_stat: bool) -> None:
    # the mean is 0 and x is 1 or -1, so that y is the scale
    x = np.stack([np.ones(33), -np.ones(33)])
    zeros, ones = np.zeros(33, np.float32), np.ones(33, np.float32)
    beta, gamma, mean, variance = parameters((2, 33), zeros, GAMMA, zeros, ones)
    y = F.batch_normalization(variable(x), beta, gamma, mean, variance, batch_stat=batch_stat)
    y.forward()
    scale = GAMMA.astype(np.float64) / np.sqrt(1 + np.float64(np.float32(1e-5)))
    np.testing.assert_array_equal(y.d[0], scale.astype(np.float32))
