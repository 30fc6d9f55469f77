"""Softmax, its losses and layer normalization over many rows of few elements, and matrices that are turned."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]
LENGTHS = [1, 2, 7, 8, 13, 33, 64, 65]


def normal(*shape: int, mean: float = 0.0, scale: float = 1.0) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return (np.random.default_rng(len(shape)).standard_normal(shape) * scale + mean).astype(np.float32)


@pytest.mark.parametrize("classes", LENGTHS)
def test_softmax(assert_alike: Compare, isa: str, classes: int) -> None:
    assert_alike(lambda x: F.softmax(x, axis=1), normal(301, classes, scale=3))
    assert_alike(lambda x: F.log_softmax(x, axis=1), normal(301, classes, scale=3))


@pytest.mark.parametrize("classes", LENGTHS)
def test_cross_entropy(assert_alike: Compare, isa: str, classes: int) -> None:
    labels = np.random.default_rng(0).integers(-1, classes, (301, 1))
    assert_alike(lambda x, t: F.softmax_cross_entropy(x, t, axis=1), normal(301, classes, scale=3), labels)


def test_small_losses_keep_their_digits() -> None:
    x = np.zeros((130, 3), np.float32)
    x[:, 1] = np.linspace(8, 20, 130)
    scores = nn.Variable.from_numpy_array(x, need_grad=True)
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = F.softmax_cross_entropy(scores, nn.Variable.from_numpy_array(np.ones((130, 1), np.int64)), axis=1)
        z = F.log_softmax(scores, axis=1)
    y.forward()
    z.forward()
    scores.grad.zero()
    y.backward(1)
    rest = 2 * np.exp(-x[:, 1].astype(np.float64))  # the sum of the others, where that of the label is 1
    np.testing.assert_allclose(y.d[:, 0], np.log1p(rest), rtol=2e-6)
    np.testing.assert_allclose(z.d[:, 1], -np.log1p(rest), rtol=2e-6)
    np.testing.assert_allclose(scores.g[:, 1], -rest / (1 + rest), rtol=2e-6)


@pytest.mark.parametrize("type_config", ["float", "double", "bfloat16"])
@pytest.mark.parametrize("shape", [(6, 3), (6, 100), (6, 3, 2)])
def test_infinite_gradients_of_certain_labels_are_those_of_the_reference(shape: tuple[int, ...], type_config: str) -> None:
    margins = np.float32([2, 8, 30, 45, 60, 80])  # of the label: from 45 on, its share is 1 in float64
    values = np.zeros(shape, np.float32)
    values[:, 1] = margins.reshape(-1, *(1,) * (len(shape) - 2))
    labels = nn.Variable.from_numpy_array(np.ones((shape[0], 1, *shape[2:]), np.int64))
    found = []
    for backend in ("cpu", "reference"):
        x = nn.Variable.from_numpy_array(values, need_grad=True)
        with nn.context_scope(nn.Context([f"{backend}:{type_config}"])), np.errstate(invalid="ignore"):
            y = F.softmax_cross_entropy(x, labels, axis=1)
            y.forward()
            x.grad.zero()
            y.backward(np.full(y.shape, np.inf))
        found.append(np.float64(x.g))
    np.testing.assert_array_equal(*found)
    assert np.isnan(found[0][-1, 1]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_in_its_row(value: float) -> None:
    x = normal(200, 5)
    x[77, 2] = value
    with nn.context_scope(nn.Context(["cpu:float"])):
        scores, labels = nn.Variable.from_numpy_array(x), nn.Variable.from_numpy_array(np.zeros((200, 1), np.int64))
        results = [F.softmax(scores), F.softmax_cross_entropy(scores, labels), F.layer_normalization(scores, None, None)]
    others = np.arange(200) != 77
    for y in results:
        y.forward()
        assert np.isfinite(y.d[others]).all()
    assert np.isnan(results[2].d[77]).all()
    if value == -np.inf:
        assert np.isfinite(results[0].d[77]).all() and results[0].d[77, 2] == 0
    else:
        assert np.isnan(results[0].d[77]).all() or value == np.inf


@pytest.mark.parametrize("given", [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.parametrize("n", LENGTHS)
def test_layer_normalization(assert_alike: Compare, isa: str, n: int, given: tuple[bool, bool]) -> None:
    parameters = [normal(1, n, mean=1) if is_given else None for is_given in given]
    assert_alike(
        lambda x, b, g: F.layer_normalization(x, b, g, eps=1e-3), normal(150, n, mean=20), *parameters, tolerance=1e-4
    )


def test_the_mean_of_equal_elements_is_exact() -> None:
    x = np.repeat(normal(100, 1, mean=3), 13, axis=1)
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = F.layer_normalization(nn.Variable.from_numpy_array(x), None, None)
    y.forward()
    np.testing.assert_array_equal(y.d, np.zeros_like(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (16, 16), (33, 65), (129, 40)])
def test_turned_matrices(isa: str, shape: tuple[int, int], dtype: type) -> None:
    x: np.ndarray[Any, Any] = np.random.default_rng(0).integers(-1000, 1000, (2, *shape)).astype(dtype)
    type_config = "double" if dtype is np.float64 else "float"
    with nn.context_scope(nn.Context([f"cpu:{type_config}"])):
        y = F.transpose(nn.Variable.from_numpy_array(x), (0, 2, 1))
    y.forward()
    np.testing.assert_array_equal(y.d, x.transpose(0, 2, 1))


@pytest.mark.parametrize("n", [1, 5, 16, 28, 64, 100, 129, 300])
@pytest.mark.parametrize("small", [(1, 1, 1), (1, 1, 0), (1, 9, 1), (13, 1, 1), (13, 9, 1)])
def test_gradients_of_arrays_that_were_broadcast(
    assert_alike: Compare, isa: str, two_threads: None, small: tuple[int, int, int], n: int
) -> None:
    y = normal(*(length or n for length in small))
    assert_alike(lambda a, b: a * b + b, normal(13, 9, n), y, tolerance=1e-4)


def test_equal_lines_have_equal_sums() -> None:
    x = np.tile(normal(1, 29), (300, 1))
    scales = nn.Variable.from_numpy_array(np.ones((300, 1), np.float32), need_grad=True)
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = nn.Variable.from_numpy_array(x) * scales
    scales.grad.zero()
    y.forward()
    y.backward(1)
    assert len(np.unique(scales.g)) == 1
