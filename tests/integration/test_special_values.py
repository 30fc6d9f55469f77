"""The promise of docs/special_values.md: where NaN, infinities and the sign of zero go, on every backend."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context
from nn_core.settings import OPTIMIZATIONS, without

NAN, INF = np.nan, np.inf


@pytest.fixture(autouse=True, params=["cpu", "reference"])
def on_each_backend(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run each test on both backends."""
    with nn.context_scope(get_extension_context(request.param)):
        yield


def leaf(values: Any) -> nn.Variable:
    """A leaf with a gradient."""
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=True)


def gradients(y: nn.Variable, dy: Any, *leaves: nn.Variable) -> list[Any]:
    """The gradients of leaves for a gradient of y."""
    for x in leaves:
        x.grad.zero()
    y.forward()
    y.backward(np.broadcast_to(np.array(dy, np.float32), y.shape))
    return [x.g.copy() for x in leaves]


def assert_same(found: Any, expected: Any) -> None:
    """Numbers are equal, NaN too, and zeros have the same sign."""
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
    np.testing.assert_array_equal(np.signbit(found)[np.asarray(found) == 0], np.signbit(expected)[np.asarray(expected) == 0])


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (F.relu, [NAN, -0.0, 0.0, -INF, INF], [NAN, -0.0, 0.0, 0.0, INF]),
        (F.relu6, [NAN, -0.0, 0.0, -INF, INF], [NAN, -0.0, 0.0, 0.0, 6.0]),
        (F.tanh, [NAN, -0.0, 0.0, -INF, 1e-40], [NAN, -0.0, 0.0, -1.0, 1e-40]),
        (F.sin, [NAN, -0.0, 0.0, 1e-40, -1e-40], [NAN, -0.0, 0.0, 1e-40, -1e-40]),
        (F.round, [NAN, -0.0, 0.0, -0.3, 0.3, -0.5, INF], [NAN, -0.0, 0.0, -0.0, 0.0, -1.0, INF]),
        (F.elu, [NAN, -0.0, 0.0, -INF, INF], [NAN, -0.0, 0.0, -1.0, INF]),
        (partial(F.selu, scale=2.0, alpha=1.5), [NAN, -0.0, 0.0, -INF, INF], [NAN, -0.0, 0.0, -3.0, INF]),
        (F.sqrt, [NAN, -INF, -1.0, INF], [NAN, NAN, NAN, INF]),
        (F.rsqrt, [NAN, -INF, -1.0, INF], [NAN, NAN, NAN, 0.0]),
        (lambda x: F.pow_scalar(x, 3.0), [NAN, -INF, INF], [NAN, -INF, INF]),
    ],
)
def test_functions_of_one_element(function: Callable[..., Any], x: list[float], expected: list[float]) -> None:
    y = function(leaf(x))
    y.forward()
    assert_same(y.d, expected)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (F.relu, [-1.0, -2.0, 1.0]),
        (F.relu6, [-1.0, 7.0, 1.0]),
        (F.hard_tanh, [-2.0, 3.0, 0.5]),
        (lambda x: F.maximum_scalar(x, 0.0), [-1.0, -2.0, 1.0]),
        (lambda x: F.minimum_scalar(x, 0.0), [1.0, 2.0, -1.0]),
        (lambda x: F.reset_nan(x, 0.0), [NAN, NAN, 1.0]),
        (lambda x: F.reset_inf(x, 0.0), [INF, -INF, 1.0]),
    ],
)
def test_no_gradient_reaches_what_was_not_chosen(function: Callable[..., Any], x: list[float]) -> None:
    x = leaf(x)
    (dx,) = gradients(function(x), [NAN, INF, 2.0], x)
    np.testing.assert_array_equal(dx, [0.0, 0.0, 2.0])
    y = function(x)
    (dx,) = nn.grad([y], [x], grad_outputs=[leaf([NAN, INF, 2.0])])
    dx.forward()
    np.testing.assert_array_equal(dx.d, [0.0, 0.0, 2.0])


@pytest.mark.parametrize(("function", "places"), [(F.max, [1, 0]), (F.min, [1, 2])])
def test_the_gradient_of_an_extreme_goes_to_the_first_nan(function: Callable[..., Any], places: list[int]) -> None:
    for axis in (0, 1):
        values = np.array([[2, NAN, NAN, 1], [5, 4, 3, 4]], np.float32)
        x = leaf(values if axis == 1 else values.T)
        (dx,) = gradients(function(x, axis=axis), 3.0, x)
        dx = dx if axis == 1 else dx.T
        assert np.argwhere(dx).tolist() == [[0, places[0]], [1, places[1]]]


def test_of_two_the_gradient_goes_to_nan() -> None:
    for function in (F.maximum2, F.minimum2):
        x, y = leaf([NAN, 1.0, NAN]), leaf([1.0, NAN, NAN])
        dx, dy = gradients(function(x, y), 1.0, x, y)
        np.testing.assert_array_equal(dx, [1.0, 0.0, 1.0])
        np.testing.assert_array_equal(dy, [0.0, 1.0, 0.0])


def test_the_slope_of_prelu_keeps_nan() -> None:
    x, slope = leaf([[NAN, 1.0], [-1.0, INF]]), leaf([0.5, 0.25])
    dx, dslope = gradients(F.prelu(x, slope), 1.0, x, slope)
    np.testing.assert_array_equal(dslope, [NAN, 0.0])
    np.testing.assert_array_equal(dx, [[0.5, 1.0], [0.5, 1.0]])


def test_categorical_cross_entropy_passes_nan_to_the_label_alone() -> None:
    x = leaf([[0.5, NAN, 0.25], [NAN, 0.25, 0.5]])
    labels = nn.Variable.from_numpy_array(np.array([[0], [0]]))
    (dx,) = gradients(F.categorical_cross_entropy(x, labels), [[NAN], [1.0]], x)
    np.testing.assert_array_equal(dx, [[NAN, 0.0, 0.0], [NAN, 0.0, 0.0]])


def test_softmax_cross_entropy_passes_nothing_where_the_label_is_ignored() -> None:
    x = leaf([[1, 2], [INF, 2], [NAN, 2], [1, 2]])
    y = F.softmax_cross_entropy(x, nn.Variable.from_numpy_array([[0], [-1], [-1], [-1]]))
    (dx,) = gradients(y, [[1], [1], [1], [NAN]], x)
    assert (dx[0] != 0).all()
    assert (dx[1:] == 0).all()


@pytest.mark.parametrize("optimizations", [(), OPTIMIZATIONS])
def test_a_gradient_that_is_nan_ends_at_indices(optimizations: tuple[str, ...]) -> None:
    x = leaf([[1, 2], [3, 0]])
    with without(*optimizations):
        y = F.mul_scalar(F.max(x, axis=0, only_index=True), 2.0)
        (dx,) = gradients(y, [NAN, 1], x)
    assert_same(dx, [[0, 0], [0, 0]])


def test_windows_of_minus_infinity_pass_their_gradient_on() -> None:
    for shape in ((1, 1, 4, 4), (1, 20, 4, 4)):
        x = leaf(np.full(shape, -INF))
        (dx,) = gradients(F.max_pooling(x, (2, 2), pad=(1, 1)), 1.0, x)
        assert np.count_nonzero(dx) == 9 * shape[1]
        assert float(dx.sum()) == 9 * shape[1]


def test_nan_is_the_largest_in_order() -> None:
    x = leaf([[1.0, NAN, INF, -INF]])
    ascending, descending, first, last = (
        F.sort(x),
        F.sort(x, reverse=True),
        F.top_k_data(x, 2),
        F.top_k_data(x, 2, largest=False),
    )
    nn.forward_all([ascending, descending, first, last])
    np.testing.assert_array_equal(ascending.d, [[-INF, 1.0, INF, NAN]])
    np.testing.assert_array_equal(descending.d, [[NAN, INF, 1.0, -INF]])
    np.testing.assert_array_equal(first.d, [[NAN, INF]])
    np.testing.assert_array_equal(last.d, [[-INF, 1.0]])


def test_nan_is_first_in_long_rows() -> None:
    values = np.arange(5000, dtype=np.float32)
    values[4321] = NAN
    y, places = F.top_k_data(leaf(values[None]), 3, with_index=True)
    nn.forward_all([y, places])
    assert places.d.tolist() == [[4321, 4999, 4998]]


@pytest.mark.parametrize("n_keys", [5, 300])
@pytest.mark.parametrize("place", range(4))
def test_attention_keeps_nan(n_keys: int, place: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 4), (1, n_keys, 4), (1, n_keys, 4), (3, n_keys))
    ]
    arrays[place][(0,) * arrays[place].ndim] = NAN
    leaves = [leaf(array) for array in arrays]
    y = F.scaled_dot_product_attention(*leaves)
    found = gradients(y, 1.0, *leaves)
    rows = {0: [True, False, False], 1: [True] * 3, 3: [True, False, False]}
    if place == 2:
        np.testing.assert_array_equal(np.isnan(y.d).any(axis=(0, 1)), [True, False, False, False])
    else:
        np.testing.assert_array_equal(np.isnan(y.d).all(axis=2)[0], rows[place])
    assert np.isnan(found[0]).any()
    assert np.isnan(found[3]).any()


FLAGS: list[dict[str, bool]] = [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(("channels", "kernel"), [(3, 1), (3, 3), (32, 3)])
def test_fused_convolutions_keep_nan_and_infinities(flags: dict[str, bool], channels: int, kernel: int) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2, channels, 12, 12)).astype(np.float32)
    values[0, 0, 5, 5] = NAN
    weight = rng.standard_normal((channels, channels, kernel, kernel)).astype(np.float32)
    x, w = nn.Variable.from_numpy_array(values), nn.Variable.from_numpy_array(weight)
    statistics = [nn.Variable.from_numpy_array(np.ones((1, channels, 1, 1), np.float32)) for _ in range(4)]
    plain = F.convolution(x, w, pad=(kernel // 2,) * 2)
    normalized = F.batch_normalization(F.convolution(x, w, pad=(kernel // 2,) * 2), *statistics, batch_stat=False)
    results = [F.relu(plain), F.relu(normalized), F.relu(normalized + x), F.max_pooling(F.relu(plain * 1.0), (2, 2))]
    results += [F.fused_convolution(x, w, pad=(kernel // 2,) * 2, nonlinearity="relu")]
    for y in results:
        for _ in range(2):
            y.forward(**flags)
            assert np.isnan(y.d).any(axis=(2, 3)).tolist() == [[True] * channels, [False] * channels]


@pytest.mark.parametrize("flags", FLAGS)
def test_fused_convolutions_take_minus_infinity_for_zero(flags: dict[str, bool]) -> None:
    x = nn.Variable.from_numpy_array(np.full((1, 1, 4, 4), INF, np.float32))
    w = nn.Variable.from_numpy_array(np.array([1.0, -1.0], np.float32).reshape(2, 1, 1, 1))
    y = F.relu(F.convolution(x, w))
    y.forward(**flags)
    np.testing.assert_array_equal(y.d[0, :, 0, 0], [INF, 0.0])
