"""Public functions written by hand: results against NumPy, and their refusals."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(1)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def dynamic() -> Iterator[None]:
    with nn.auto_forward():
        yield


def var(values: Any) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=True)


def close(result: nn.Variable, expected: Any) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result.d, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("axis", [None, 1, -1, (0, 2), [-1, 0]])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
def test_reductions_take_the_axes_of_numpy(name: str, axis: Any) -> None:
    wanted = tuple(axis) if isinstance(axis, list) else axis
    close(getattr(F, name)(var(X), axis), getattr(np, name)(X, axis=wanted))
    close(getattr(F, name)(var(X), axis=axis, keepdims=True), getattr(np, name)(X, axis=wanted, keepdims=True))


def test_norm_is_euclidean_by_default() -> None:
    close(F.norm(var(X), axis=1), np.sqrt((X**2).sum(1)))
    close(F.norm_normalization(var(X), axes=1), X / np.sqrt((X**2).sum(1, keepdims=True)))


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_give_their_places(name: str) -> None:
    place = getattr(np, f"arg{name}")(X, axis=1)
    value, index = getattr(F, name)(var(X), axis=1, with_index=True)
    close(value, getattr(X, name)(1))
    assert index.d.tolist() == place.tolist()
    only = getattr(F, name)(var(X), axis=1, only_index=True)
    assert only.d.tolist() == place.tolist() and only.d.dtype == np.int64


def test_sort_gives_values_places_or_both() -> None:
    values, places = F.sort(var(X), axis=1, with_index=True)
    close(values, np.sort(X, 1))
    assert places.d.tolist() == np.argsort(X, 1).tolist()
    assert F.sort(var(X), axis=1, only_index=True).d.tolist() == places.d.tolist()
    close(F.sort(var(X), reverse=True), -np.sort(-X))


def test_reduce_knows_sum_and_mean() -> None:
    close(F.reduce(var(X)), X.sum())
    close(F.reduce(var(X), "mean"), X.mean())
    with pytest.raises(ArgumentError, match="reduce: op must be 'sum' or 'mean', got 'max'"):
        F.reduce(var(X), "max")


def test_slices_take_none_and_fewer_axes() -> None:
    close(F.slice(var(X), start=(0, None, -1), stop=(2, -1, None), step=(1, None, -2)), X[0:2, :-1, -1::-2])
    close(F.slice(var(X), start=(1,)), X[..., 1:])
    close(F.slice(var(X)), X)
    with pytest.raises(ArgumentError, match="slice: start, stop and step must have one length of at most 3, got"):
        F.slice(var(X), start=(0, 1), stop=(1,))


def test_tile_takes_a_number() -> None:
    close(F.tile(var(X), 2), np.tile(X, 2))
    close(F.tile(var(X), (2, 1, 1, 3)), np.tile(X, (2, 1, 1, 3)))


def test_indices_may_be_lists_and_numpy_arrays() -> None:
    index = [[0, 1], [2, 0]]
    close(F.gather_nd(var(X), index), X[tuple(index)])
    array = F.gather_nd(nn.NdArray.from_numpy_array(X), np.array(index))
    assert array.data.tolist() == X[tuple(index)].tolist()
    expected = np.zeros((2, 3), np.float32)
    expected[tuple(index)] = [5, 6]
    close(F.scatter_nd(var([5, 6]), index, shape=(2, 3)), expected)
    close(F.scatter_nd(var([5, 6]), index, out=var(np.ones((2, 3)))), np.where(expected > 0, expected, 1))


@pytest.mark.parametrize(("shape", "out", "given"), [(None, None, "none"), ((3,), True, "both")])
def test_scatter_nd_takes_shape_or_out(shape: Any, out: Any, given: str) -> None:
    message = f"scatter_nd: exactly one of shape and out must be given, got {given}"
    with pytest.raises(ArgumentError, match=message):
        F.scatter_nd(var([1]), [[0]], shape=shape, out=var([0, 0, 0]) if out else None)


def test_values_are_clipped_by_numbers_and_arrays() -> None:
    close(F.clip_by_value(var(X), -0.5, 0.5), X.clip(-0.5, 0.5))
    low = np.full((1, 3, 1), -0.1, np.float32)
    close(F.clip_by_value(var(X), var(low), var(-low)), X.clip(low, -low))


def test_norms_are_clipped() -> None:
    norm = np.sqrt((X**2).sum(1, keepdims=True))
    close(F.clip_by_norm(var(X), 1.0, axis=1), X / np.maximum(norm, 1))
    close(F.clip_by_norm(var(X), var([1.0]), axis=1), X / np.maximum(norm, 1))
    with pytest.raises(ArgumentError, match=r"clip_by_norm: clip_norm must be positive, got -1"):
        F.clip_by_norm(var(X), -1)


def test_the_gradient_of_a_clipped_zero_is_finite() -> None:
    x = var(np.zeros(3))
    F.clip_by_norm(x, 2.0).backward()
    assert x.g.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("a", "b"), [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 5, 3), (4, 3, 2)), ((3,), (2, 3, 4)), ((), (2,))]
)
def test_dot_is_that_of_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = RNG.standard_normal(a).astype(np.float32), RNG.standard_normal(b).astype(np.float32)
    close(F.dot(var(left), var(right)), np.dot(left, right))


def test_dot_scales_and_fills_outputs() -> None:
    close(F.dot(var(X), 2.0), 2 * X)
    close(F.dot(3, var(X)), 3 * X)
    a = nn.NdArray.from_numpy_array(np.eye(2, dtype=np.float32))
    out = nn.NdArray((2, 2))
    assert F.dot(a, a, out) is out and out.data.tolist() == [[1, 0], [0, 1]]
    end = nn.Variable((2, 2))
    assert F.dot(var(np.eye(2)), var(np.eye(2)), end) is end and end.parent is not None


def test_dot_refuses_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"dot: the last axis of a must equal the second-to-last one of b, got"):
        F.dot(var(np.ones((2, 3))), var(np.ones((2, 3))))
    with pytest.raises(ShapeError, match=r"dot: out must have the shape of the result, got \(3,\) for \(2,\)"):
        F.dot(var(np.ones((2, 3))), var(np.ones(3)), nn.Variable((3,)))
    with pytest.raises(ShapeError, match=r"dot: a and b must fit, got shapes \(2, 3\) and \(2,\)"):
        F.dot(np.ones((2, 3)), np.ones(2))


@pytest.mark.parametrize("wrap", [nn.Variable.from_numpy_array, nn.NdArray.from_numpy_array])
def test_dot_takes_arrays_of_numpy_and_numbers(wrap: Any) -> None:
    a, b = RNG.standard_normal((2, 3)).astype(np.float32), RNG.standard_normal((3, 4)).astype(np.float32)
    for y in (F.dot(wrap(a), b), F.dot(a, wrap(b)), F.dot(a.tolist(), wrap(b))):
        assert isinstance(y, type(wrap(a)))
        if isinstance(y, nn.Variable):
            y.forward()
        np.testing.assert_allclose(y.d if isinstance(y, nn.Variable) else y.data, a @ b, rtol=1e-5)
    assert F.dot(2, 3) == 6
    np.testing.assert_array_equal(F.dot(a, b), np.dot(a, b))
    out = nn.NdArray((2, 4))
    assert F.dot(a, b, out) is out
    np.testing.assert_array_equal(out.data, np.dot(a, b))
    with pytest.raises(ShapeError, match=r"dot: out must have the shape of the result, got \(3,\) for \(2, 4\)"):
        F.dot(a, b, nn.NdArray((3,)))


@pytest.mark.parametrize("mode", ["clear_buffer", "clear_no_need_grad", "backward", "dynamic"])
def test_a_sink_keeps_its_inputs(mode: str) -> None:
    x = nn.Variable.from_numpy_array(X, need_grad=True)
    with nn.auto_forward(mode == "dynamic"):
        for _ in range(3):  # the third dynamic step is a replay, if any
            hidden = F.exp(x)
            ends = [F.sin(hidden), F.tanh(hidden)]
            sink = F.sink(*ends, one_input_grad=1)
            if mode == "clear_buffer":
                sink.forward(clear_buffer=True)
            elif mode != "dynamic":
                sink.forward(clear_no_need_grad=True)
            if mode in ("backward", "dynamic"):
                sink.backward(clear_buffer=True)
            np.testing.assert_allclose(ends[0].d, np.sin(np.exp(X)), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(ends[1].d, np.tanh(np.exp(X)), rtol=1e-4)
            assert hidden.data.clear_called == (mode != "clear_no_need_grad")


def test_interpolate_takes_a_scale_or_a_size() -> None:
    assert F.interpolate(var(X), scale=(1.5,)).shape == (2, 3, 6)
    assert F.interpolate(var(X), scale=(2,), channel_last=True).shape == (2, 6, 4)
    assert F.interpolate(var(X), output_size=(8,), scale=(3,)).shape == (2, 3, 8)
    with pytest.raises(ArgumentError, match="interpolate: scale or output_size must be given, got neither"):
        F.interpolate(var(X))
    with pytest.raises(ArgumentError, match="interpolate: scale must have at most 2 entries"):
        F.interpolate(var(X), scale=(1, 1, 1), channel_last=True)


def test_patch_correlation_takes_both_layouts() -> None:
    x = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    first = F.patch_correlation(var(x), var(x), patch=2, shift=1, padding=(1, 0))
    assert first.shape == (2, 3, 3, 5, 4)
    last = x.transpose(0, 2, 3, 1)
    close(
        F.patch_correlation(var(last), var(last), 2, 1, padding=(1, 1, 0, 0), channel_last=True),
        first.d.transpose(0, 3, 4, 1, 2),
    )


def test_quantizers_can_be_switched_off() -> None:
    x, one = var(X), var(np.ones((1, 1, 1)))
    assert F.fixed_point_quantize(x, quantize=False) is x
    assert F.pow2_quantize(x, quantize=False) is x
    assert F.min_max_quantize(x, one, one, one, one, quantize=False) is x
    close(F.fixed_point_quantize(x, delta=0.5), np.trunc(X / 0.5 + 0.5 * np.sign(X)) * 0.5)


def test_quantize_linear_takes_a_numpy_type() -> None:
    scale, zero = var(np.full((1, 1, 1), 0.01)), var(np.full((1, 1, 1), 3))
    assert F.quantize_linear(var(X * 100), scale, zero, dtype=np.uint8).d.max() == 255
    assert F.quantize_linear(var(X * 100), scale, zero).d.min() == -128


def test_function_api_passes_the_current_context() -> None:
    @F.function_api
    def backend(ctx: nn.Context, suffix: str) -> str:
        """Name the backend."""
        return ctx.backend[0] + suffix

    with nn.context_scope(nn.Context(["reference:float"])):
        assert backend("!") == "reference:float!"
    assert backend.__doc__ == "Name the backend."


@pytest.mark.parametrize("number_type", ["half", "bfloat16", "float", "double"])
def test_attention_to_no_key_at_all_is_equal_in_every_type(number_type, rng):
    if number_type == "bfloat16":
        pytest.importorskip("ml_dtypes")
    with nn.context_scope(nn.Context([f"reference:{number_type}"])):
        x = nn.Variable.from_numpy_array(rng.normal(size=(3, 2, 4)), need_grad=True)
        weights = [nn.Variable.from_numpy_array(rng.normal(size=(4, 4))) for _ in range(4)]
        mask = nn.Variable.from_numpy_array(np.array([[1, 1, 1], [0, 0, 1]]))
        y, attention = F.multi_head_attention(x, x, x, 2, *weights, key_padding_mask=mask)
        nn.forward_all([y, attention])
        y.backward()
    found = attention.d.astype(np.float64)
    np.testing.assert_allclose(found[:2], 1 / 3, rtol=5e-3)
    assert not found[2:, :, 2].any()
    np.testing.assert_allclose(found.sum(-1), 1, rtol=2e-2)
    assert np.isfinite(x.g.astype(np.float64)).all()


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("additive", [False, True])
def test_attention_with_many_weights_equals_the_product_of_all_weights(monkeypatch, padded, additive, dropout):
    rng = np.random.default_rng(4)
    values = [rng.normal(size=shape) for shape in ((5, 2, 6), (7, 2, 6), (6, 4), (6, 4), (6, 8), (8, 3))]
    masks = {
        "additive_mask": nn.Variable.from_numpy_array(np.triu(np.full((5, 7), -np.inf), 2)) if additive else None,
        "key_padding_mask": nn.Variable.from_numpy_array([[0, 0, 0, 0, 0, 1, 1], [0] * 7]) if padded else None,
    }
    results = []
    with nn.auto_forward(False):
        for limit in (2**22, 0):
            monkeypatch.setattr(import_module("nn_core.functions.composite.attention"), "_MANY_WEIGHTS", limit)
            query, key, *weights = [nn.Variable.from_numpy_array(value, need_grad=True) for value in values]
            y, attention = F.multi_head_attention(query, key, key, 2, *weights, dropout=dropout, **masks)
            nn.seed(11)
            nn.forward_all([y, attention])
            y.backward()
            results.append([y.d, attention.d, *[variable.g for variable in (query, key, *weights)]])
    names = []
    y.visit(lambda function: names.append(function.name))
    assert ("DropoutAttention" if dropout else "ScaledDotProductAttention") in names
    assert "Softmax" not in names
    for given, expected in zip(results[1], results[0], strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-5, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_gradient_of_std_is_zero_where_it_is_zero(backend, axis):
    """As that of a norm: also from `nn.grad`, and beside a column where it is not zero."""
    values = np.full((4, 3), 0.1, np.float32)
    if axis == 0:
        values[2, 1] = 5.0
    with nn.context_scope(nn.Context([f"{backend}:float", "reference:float"])):
        x = nn.Variable.from_numpy_array(values, need_grad=True)
        y = F.std(x, axis=axis)
        (dx,) = nn.grad([y], [x])
        x.grad.zero()
        y.forward()
        dx.forward()
        y.backward(1.0)
    assert not np.delete(x.g, 1, axis=1).any()
    assert not np.delete(dx.d, 1, axis=1).any()
    assert np.isfinite(x.g).all()
    assert (x.g[:, 1] != 0).all() == (axis == 0)
    np.testing.assert_allclose(dx.d, x.g, rtol=1e-5)


def test_std_of_nothing_is_nan_as_the_variance():
    assert np.isnan(F.std(nn.NdArray((0,))).item())
    assert np.isnan(F.var(nn.NdArray((0,))).item())
