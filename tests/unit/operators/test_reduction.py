"""Reductions and running sums: truth of every kernel and gradient rule."""

import math
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import SHAPE_RULES
from nn_core.testing.operators import check_forward, check_gradient, check_table, run, run_gradient, spec_of

RNG = np.random.default_rng(21)
X = RNG.normal(size=(2, 3, 4))
AXES = [None, (), (1,), (-1,), (0, 2), (2, 0), (1, 2), (0, 1, 2)]


def test_every_function_of_the_topic_has_its_attachments() -> None:
    check_table("reduction")


def p_norm(p: float) -> Any:
    return lambda x, axis, keepdims: np.sum(np.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1 / p)


REDUCTIONS: list[tuple[str, Any, dict[str, float]]] = [
    ("Sum", np.sum, {}),
    ("Mean", np.mean, {}),
    ("Prod", np.prod, {}),
    ("Max", np.max, {}),
    ("Min", np.min, {}),
    ("Norm", p_norm(2), {}),
    ("Norm", p_norm(1), {"p": 1}),
    ("Norm", p_norm(3.5), {"p": 3.5}),
]


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize(("name", "truth", "args"), REDUCTIONS, ids=[f"{row[0]}{row[2]}" for row in REDUCTIONS])
def test_reductions_along_axes(name: str, truth: Any, args: dict[str, float], axes: Any, keep_dims: bool) -> None:
    args = {**args, **({} if axes is None else {"axes": axes})}
    check_forward(name, [X], lambda x: truth(x, axis=axes, keepdims=keep_dims), keep_dims=keep_dims, rtol=1e-3, **args)
    check_gradient(name, [X], keep_dims=keep_dims, **args)


@pytest.mark.parametrize(("name", "truth"), [("ReduceSum", np.sum), ("ReduceMean", np.mean)])
def test_reductions_to_a_scalar(name: str, truth: Any) -> None:
    for x in (X, np.array(3.0)):
        check_forward(name, [x], truth)
        check_gradient(name, [x])


@pytest.mark.parametrize("name", ["Sum", "Mean", "Prod", "Max", "Min", "Norm"])
def test_reductions_of_a_0d_array(name: str) -> None:
    check_forward(name, [np.array(3.0)], np.array(3.0))
    check_gradient(name, [np.array(3.0)])


EMPTY = [("Sum", 0.0), ("Mean", math.nan), ("Prod", 1.0), ("Norm", 0.0)]


@pytest.mark.parametrize(("name", "value"), EMPTY)
def test_reductions_of_nothing(name: str, value: float) -> None:
    check_forward(name, [np.zeros((0, 3))], np.full(3, value), axes=(0,))
    check_forward(name, [np.zeros((0, 3))], np.zeros(0), axes=(1,))
    assert run_gradient(name, np.zeros((0, 3)), axes=(0,))[0].shape == (0, 3)


def test_half_precision_accumulates_in_float32() -> None:
    x = np.full(4096, 1.0, np.float16)
    assert run("Sum", x)[0] == 4096
    assert run("Mean", x * np.float16(60000))[0] == 60000
    assert run("CumSum", x)[0][-1] == 4096
    np.testing.assert_allclose(run("Norm", np.full(4, 1000, np.float16))[0], 2000)


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        (lambda x: F.sum(x, axis=0), lambda x: x.sum(0)),
        (lambda x: F.mean(x, axis=0), lambda x: x.mean(0)),
        (lambda x: F.cumsum(x, axis=0), lambda x: x.cumsum(0)),
        (lambda x: F.norm(x, axis=0), lambda x: np.sqrt((x**2).sum(0))),
        (lambda x: F.std(x, axis=0), lambda x: x.std(0)),
        (lambda x: F.logsumexp(x, axis=0), lambda x: np.log(np.exp(x).sum(0))),
        (
            lambda x: F.batch_normalization(x, None, None, *_statistics(), output_stat=True)[1],
            lambda x: x.mean(0, keepdims=True),
        ),
    ],
    ids=["sum", "mean", "cumsum", "norm", "std", "logsumexp", "mean of a normalization"],
)
def test_sums_of_many_rows_lose_no_digits(function: Any, truth: Any) -> None:
    x = np.random.RandomState(0).rand(2**19, 2).astype(np.float32)
    with nn.context_scope(nn.Context(["reference:float"])):
        y = function(nn.Variable.from_numpy_array(x))
        y.forward()
    np.testing.assert_allclose(y.d, truth(x.astype(np.float64)), rtol=1e-6)


def _statistics() -> tuple[nn.Variable, nn.Variable]:
    return nn.Variable.from_numpy_array(np.zeros((1, 2))), nn.Variable.from_numpy_array(np.ones((1, 2)))


def test_bias_gradients_of_many_rows_lose_no_digits() -> None:
    dy = np.random.RandomState(0).rand(2**19, 2).astype(np.float32)
    with nn.context_scope(nn.Context(["reference:float"])):
        b = nn.Variable.from_numpy_array(np.zeros(2), need_grad=True)
        y = F.affine(nn.Variable(dy.shape), nn.Variable((2, 2)), b)
        y.forward()
        y.backward(dy)
    np.testing.assert_allclose(b.g, dy.astype(np.float64).sum(0), rtol=1e-6)


@pytest.mark.parametrize(("name", "locate"), [("Max", np.argmax), ("Min", np.argmin)])
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_place_of_extrema_in_the_flattened_axes(name: str, locate: Any, axes: Any, keep_dims: bool) -> None:
    reduced = tuple(range(3)) if axes is None else tuple(sorted(axis % 3 for axis in axes))
    kept = tuple(axis for axis in range(3) if axis not in reduced)
    rows = X.transpose(*kept, *reduced).reshape(*(X.shape[axis] for axis in kept), -1)
    args = {"keep_dims": keep_dims, **({} if axes is None else {"axes": axes})}
    (value,) = run(name, X, **args)
    index = locate(rows, axis=-1).reshape(value.shape)
    check_forward(name, [X], (value, index), dtypes=["float64"], with_index=True, **args)
    for with_index in (False, True):
        results = run(name, X, with_index=with_index, only_index=True, **args)
        assert len(results) == 1
        assert results[0].dtype == np.int64
        np.testing.assert_array_equal(results[0], index)
    check_gradient(name, [X], with_index=True, **args)


TIES = np.array([[1.0, 3.0, 3.0, 1.0], [5.0, 5.0, 2.0, 2.0]])


@pytest.mark.parametrize(("name", "places"), [("Max", [1, 0]), ("Min", [0, 2])])
def test_the_first_of_equal_elements_counts(name: str, places: list[int]) -> None:
    np.testing.assert_array_equal(run(name, TIES, axes=(1,), with_index=True)[1], places)
    np.testing.assert_array_equal(run_gradient(name, TIES, axes=(1,))[0], np.eye(4)[places])
    (dx,) = run_gradient(name, TIES)
    assert dx.sum() == 1
    assert dx.reshape(-1)[run(name, TIES, only_index=True)[0]] == 1


@pytest.mark.parametrize("name", ["Max", "Min"])
def test_nan_is_the_extremum(name: str) -> None:
    value, index = run(name, np.array([1.0, np.nan, 2.0]), with_index=True)
    assert np.isnan(value)
    assert index == 1


@pytest.mark.parametrize("name", ["Max", "Min"])
def test_index_alone_has_no_gradient(name: str) -> None:
    assert run_gradient(name, X, only_index=True) == (None,)


@pytest.mark.parametrize("name", ["Max", "Min"])
def test_extremum_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ShapeError, match=r"x must have an element along the reduced axes \(0,\), got shape \(0, 3\)"):
        run(name, np.zeros((0, 3)), axes=(0,))
    assert run(name, np.zeros((0, 3)), axes=(1,), with_index=True)[1].shape == (0,)


def test_norm_at_zero_and_its_order() -> None:
    np.testing.assert_array_equal(run_gradient("Norm", np.zeros(3))[0], np.zeros(3))
    np.testing.assert_array_equal(run_gradient("Norm", np.array([1.0, -2.0, 0.0]), p=1)[0], [1, -1, 1])
    spec_of("Norm")
    with pytest.raises(ArgumentError, match="p must be finite, got inf"):
        SHAPE_RULES["Norm"]((2,), p=math.inf, axes=(0,), keep_dims=False)
    with pytest.raises(ArgumentError, match="p must be at least 1"):
        run("Norm", X, p=0.5)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
def test_product_gradient_is_exact_at_zeros(axes: tuple[int, ...]) -> None:
    check_gradient("Prod", [np.array([[0.0, 2.0, 3.0], [4.0, 0.0, 5.0]])], axes=axes)
    check_gradient("Prod", [np.array([[0.0, 2.0], [0.0, 3.0], [4.0, 5.0]])], axes=axes)


def scan(x: np.ndarray, accumulate: Any, start: float, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    """Running results, one by one."""
    rows = np.moveaxis(x, axis, 0)
    y = np.empty_like(rows)
    for place in range(len(rows)):
        part = rows[place + exclusive :] if reverse else rows[: place + (not exclusive)]
        y[place] = accumulate(part, axis=0, initial=start)
    return np.moveaxis(y, 0, axis)


SCANS = [("CumSum", np.sum, 0.0), ("CumProd", np.prod, 1.0)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("name", "accumulate", "start"), SCANS, ids=[row[0] for row in SCANS])
def test_running_results(name: str, accumulate: Any, start: float, axis: int, exclusive: bool, reverse: bool) -> None:
    args = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    check_forward(name, [X], lambda x: scan(x, accumulate, start, **args), **args)
    check_forward(name, [np.zeros((2, 0, 3))], np.zeros((2, 0, 3)), **args)
    check_gradient(name, [X], **args)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("row", [[2.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, 3.0], [2.0, 3.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
def test_running_product_gradient_is_exact_at_zeros(row: list[float], exclusive: bool, reverse: bool) -> None:
    check_gradient("CumProd", [np.array(row)], exclusive=exclusive, reverse=reverse)


def test_running_results_need_an_axis() -> None:
    with pytest.raises(ArgumentError, match="axis must be in"):
        run("CumSum", np.array(1.0))
