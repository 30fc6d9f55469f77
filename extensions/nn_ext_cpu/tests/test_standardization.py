"""Layer, group and instance normalization beside the reference, over rows of all kinds."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def normal(*shape: int, mean: float = 0.0) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return (np.random.default_rng(len(shape)).standard_normal(shape) + mean).astype(np.float32)


@pytest.mark.parametrize("mean", [0.0, 30.0])
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 5), (3, 200, 64), (2, 70, 129)])
def test_layers_with_parameters_of_each_element(assert_alike: Compare, shape: tuple[int, ...], mean: float) -> None:
    x, parameters = normal(*shape, mean=mean), (normal(1, 1, shape[2]), normal(1, 1, shape[2], mean=1))
    assert_alike(lambda x, b, g: F.layer_normalization(x, b, g, batch_axis=(0, 1)), x, *parameters, tolerance=1e-4)


@pytest.mark.parametrize("given", [(False, False), (True, False), (False, True)])
def test_layers_without_some_parameters(assert_alike: Compare, given: tuple[bool, bool]) -> None:
    parameters = [normal(1, 7, 65) if is_given else None for is_given in given]
    assert_alike(F.layer_normalization, normal(5, 7, 65), *parameters)


def test_more_rows_than_add_up_in_one_block(assert_alike: Compare) -> None:
    assert_alike(F.layer_normalization, normal(700, 12), normal(1, 12), normal(1, 12))


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("space", [(), (1, 1), (11, 13)])
def test_groups_of_channels(assert_alike: Compare, groups: int, space: tuple[int, ...]) -> None:
    ones = (1,) * len(space)
    parameters = normal(1, 8, *ones), normal(1, 8, *ones, mean=1)
    assert_alike(lambda x, b, g: F.group_normalization(x, b, g, groups), normal(3, 8, *space), *parameters, tolerance=1e-4)


@pytest.mark.parametrize("samples", [1, 3])
def test_instances_with_parameters_of_each_channel_or_sample(assert_alike: Compare, samples: int) -> None:
    parameters = normal(samples, 5, 1, 1), normal(1, 5, 1, 1)
    assert_alike(F.instance_normalization, normal(3, 5, 12, 11), *parameters)


def test_weights_without_parameters(assert_alike: Compare) -> None:
    assert_alike(F.weight_standardization, normal(16, 8, 3, 3))


def test_infinity_spoils_its_own_row_only() -> None:
    x = normal(4, 33)
    x[1, 2] = np.inf
    y = F.layer_normalization(nn.Variable.from_numpy_array(x), None, None)
    y.forward()
    assert np.isnan(y.d[1]).any() and np.isfinite(y.d[[0, 2, 3]]).all()


def test_statistics_over_the_first_axes_are_refused() -> None:
    x = nn.Variable((3, 4, 5))
    with nn.context_scope(nn.Context(["cpu:float", "reference:float"])):
        text = str(nn.explain(F.tensor_normalization(x, 1, None, None)))
    assert "takes statistics over the last axes, got kept axes (1,) of 3" in text
