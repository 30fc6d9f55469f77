"""Tests of the operators of the topic normalization."""

import math
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import SHAPE_RULES
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.operators import as_inputs, check_forward, check_gradient, check_table, run, run_gradient, updated
from nn_core.testing.samples.registry import numbers_of, samples_of

rng = np.random.default_rng(21)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def uniform(*shape: int) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape)


def standardized(x: np.ndarray, kept: tuple[int, ...], eps: float) -> np.ndarray:
    """The definition, one slice after the other."""
    y = np.empty_like(x)
    lengths = [x.shape[axis] for axis in kept]
    for place in np.ndindex(*lengths):
        at: list[Any] = [slice(None)] * x.ndim
        for axis, n in zip(kept, place, strict=True):
            at[axis] = n
        part = x[tuple(at)]
        mean = sum(part.ravel()) / part.size
        variance = sum((value - mean) ** 2 for value in part.ravel()) / part.size
        y[tuple(at)] = (part - mean) / math.sqrt(variance + eps)
    return y


def test_table() -> None:
    check_table("normalization")


def batch_inputs(shape: tuple, axes: tuple) -> list:
    stat = [n if axis in axes else 1 for axis, n in enumerate(shape)]
    return [normal(*shape), normal(*stat), uniform(*stat), normal(*stat), uniform(*stat)]


BATCH = [((4, 3), (1,)), ((4, 3, 2, 2), (1,)), ((4, 2, 2, 3), (3,)), ((3, 2, 4), (0, 2)), ((1, 3, 2), (1,))]


@pytest.mark.parametrize("name", ["BatchNormalization", "SyncBatchNormalization"])
@pytest.mark.parametrize(("shape", "axes"), BATCH)
def test_batch_normalization_of_the_batch(name: str, shape: tuple, axes: tuple) -> None:
    inputs = batch_inputs(shape, axes)

    def truth(x: np.ndarray, beta: np.ndarray, gamma: np.ndarray, *_: np.ndarray) -> tuple:
        others = tuple(axis for axis in range(x.ndim) if axis not in axes)
        mean, variance = x.mean(others, keepdims=True), x.var(others, keepdims=True)
        return standardized(x, axes, 1e-5) * gamma + beta, mean, variance

    check_forward(name, inputs, truth, axes=axes)
    check_gradient(name, inputs, wrt=(0, 1, 2), axes=axes)
    gradients = run_gradient(name, *inputs, axes=axes)
    assert gradients[3] is None
    assert gradients[4] is None


@pytest.mark.parametrize("name", ["BatchNormalization", "SyncBatchNormalization"])
@pytest.mark.parametrize(("shape", "axes"), BATCH)
def test_batch_normalization_by_running_statistics(name: str, shape: tuple, axes: tuple) -> None:
    inputs = batch_inputs(shape, axes)
    args = {"axes": axes, "batch_stat": False, "eps": 1e-3}

    def truth(x: np.ndarray, beta: np.ndarray, gamma: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple:
        return (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta, mean, variance

    check_forward(name, inputs, truth, **args)
    check_gradient(name, inputs, **args)
    assert run(name, *inputs, **args)[3:] == (None, None)


@pytest.mark.parametrize("batch_stat", [True, False])
def test_batch_normalization_without_parameters(batch_stat: bool) -> None:
    x, beta, gamma, mean, variance = batch_inputs((4, 3, 2), (1,))
    (plain, *_) = run("BatchNormalization", x, None, None, mean, variance, no_scale=True, no_bias=True, batch_stat=batch_stat)
    (scaled, *_) = run("BatchNormalization", x, None, gamma, mean, variance, batch_stat=batch_stat)
    (shifted, *_) = run("BatchNormalization", x, beta, None, mean, variance, batch_stat=batch_stat)
    np.testing.assert_allclose(scaled, plain * gamma)
    np.testing.assert_allclose(shifted, plain + beta)
    for parameters in ((None, None), (None, gamma), (beta, None)):
        inputs = [x, *parameters, mean, variance]
        check_gradient("BatchNormalization", inputs, wrt=[n for n in range(3) if inputs[n] is not None], batch_stat=batch_stat)


def test_batch_normalization_moves_running_statistics_by_the_unbiased_variance() -> None:
    x, beta, gamma, mean, variance = batch_inputs((4, 3, 2), (1,))
    *_, new_mean, new_variance = run("BatchNormalization", x, beta, gamma, mean, variance, decay_rate=0.7)
    np.testing.assert_allclose(new_mean, 0.7 * mean + 0.3 * x.mean((0, 2), keepdims=True))
    np.testing.assert_allclose(new_variance, 0.7 * variance + 0.3 * x.var((0, 2), keepdims=True, ddof=1))


def test_batch_normalization_of_one_element_and_of_none() -> None:
    _, beta, gamma, mean, variance = batch_inputs((4, 3), (1,))
    y, *_, new_variance = run("BatchNormalization", normal(1, 3), beta, gamma, mean, variance)
    np.testing.assert_array_equal(y, beta)
    np.testing.assert_allclose(new_variance, 0.9 * variance)
    y, batch_mean, _, *running = run("BatchNormalization", normal(0, 3), beta, gamma, mean, variance)
    assert y.shape == (0, 3)
    np.testing.assert_array_equal(batch_mean, np.zeros((1, 3)))
    assert running == [None, None]
    check_gradient("BatchNormalization", [normal(0, 3), beta, gamma, mean, variance], wrt=(0, 1, 2))


def test_batch_normalization_takes_statistics_of_half_precision_in_single() -> None:
    x = np.full((4096, 1), 100, np.float16)
    x[::2] += 1
    half = [np.float16(value).reshape(1, 1) for value in (0, 1, 0, 1)]
    _, mean, variance, *_ = run("BatchNormalization", x, *half)
    assert (mean.item(), variance.item()) == (100.5, 0.25)


@pytest.mark.parametrize("batch_stat", [True, False])
@pytest.mark.parametrize("with_z", [True, False])
def test_fused_batch_normalization(batch_stat: bool, with_z: bool) -> None:
    inputs = [*batch_inputs((4, 3, 2), (1,)), normal(4, 3, 2) if with_z else None]
    z = inputs[5] if with_z else 0

    plain = run("BatchNormalization", *inputs[:5], batch_stat=batch_stat)
    fused = run("FusedBatchNormalization", *inputs, batch_stat=batch_stat)
    np.testing.assert_allclose(fused[0], np.maximum(plain[0] + z, 0))
    for given, expected in zip(fused[1:], plain[1:], strict=True):
        np.testing.assert_array_equal(given, expected)
    wrt = [n for n in range(6) if inputs[n] is not None and not (batch_stat and n in (3, 4))]
    check_gradient("FusedBatchNormalization", inputs, wrt=wrt, batch_stat=batch_stat)


BN_ARGS = {"axes": (1,), "batch_stat": True}


@pytest.mark.parametrize(
    ("shapes", "args", "error", "message"),
    [
        (((2, 3), (3,), None, None, None), {}, ShapeError, r"beta must have shape \(1, 3\), got \(3,\)"),
        (((2, 3), None, (1, 4), None, None), {}, ShapeError, r"gamma must have shape \(1, 3\), got \(1, 4\)"),
        (((2, 3), None, None, (2, 1), None), {}, ShapeError, r"mean must have shape \(1, 3\), got \(2, 1\)"),
        (((2, 3), None, None, None, (2, 1)), {}, ShapeError, r"variance must have shape \(1, 3\), got \(2, 1\)"),
        (((2, 3), None, None, None, None), {"axes": ()}, ArgumentError, r"axes must name at least one axis, got \(\)"),
        (
            ((2, 3), None, None, (1, 3), None),
            {"batch_stat": False},
            ArgumentError,
            "mean and variance must be given when batch_stat is False, got None",
        ),
        (
            ((2, 3), None, (1, 3), None, None),
            {"no_scale": True},
            ArgumentError,
            r"gamma must be None when no_scale is True, got shape \(1, 3\)",
        ),
        (
            ((2, 3), (1, 3), None, None, None),
            {"no_bias": True},
            ArgumentError,
            r"beta must be None when no_bias is True, got shape \(1, 3\)",
        ),
    ],
)
def test_batch_normalization_refuses(shapes: tuple, args: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        SHAPE_RULES["BatchNormalization"](*shapes, **{**BN_ARGS, **args})


def test_fused_batch_normalization_refuses_another_shape_of_z() -> None:
    with pytest.raises(ShapeError, match=r"z must have the shape of x, got \(1, 3\) and \(2, 3\)"):
        SHAPE_RULES["FusedBatchNormalization"]((2, 3), *[(1, 3)] * 4, (1, 3), **BN_ARGS)


# name, shape of x, shape of beta and gamma, axes kept, args
SAMPLE = [
    ("LayerNormalization", (4, 3, 2), (1, 3, 2), (0,), {}),
    ("LayerNormalization", (2, 3, 4), (1, 1, 4), (0, 1), {"batch_axis": (0, 1), "eps": 0.1}),
    ("LayerNormalization", (3, 4), (3, 1), (1,), {"batch_axis": (1,)}),
    ("InstanceNormalization", (2, 3, 4, 2), (1, 3, 1, 1), (0, 1), {}),
    ("InstanceNormalization", (2, 3, 4), (2, 3, 1), (0, 1), {}),
    ("InstanceNormalization", (2, 4, 3), (1, 1, 3), (0, 2), {"channel_axis": 2}),
    ("TensorNormalization", (4, 3, 2), (1, 3, 1), (1,), {"axes": (1,)}),
    ("TensorNormalization", (4, 3, 2), (4, 3, 1), (0, 1), {"axes": (0, 1)}),
    ("TensorNormalization", (4, 3), (1, 1), (), {"axes": ()}),
]


@pytest.mark.parametrize(("name", "shape", "parameter_shape", "kept", "args"), SAMPLE)
def test_normalization_of_samples(name: str, shape: tuple, parameter_shape: tuple, kept: tuple, args: dict) -> None:
    inputs = [normal(*shape), normal(*parameter_shape), uniform(*parameter_shape)]
    others = tuple(axis for axis in range(len(shape)) if axis not in kept)

    def truth(x: np.ndarray, beta: np.ndarray, gamma: np.ndarray) -> tuple:
        y = standardized(x, kept, args.get("eps", 1e-5)) * gamma + beta
        return y, x.mean(others, keepdims=True), x.var(others, keepdims=True)

    check_forward(name, inputs, truth, **args)
    check_gradient(name, inputs, **args)
    check_gradient(name, [inputs[0], None, None], wrt=(0,), **args)
    check_gradient(name, [inputs[0], inputs[1], None], wrt=(0, 1), **args)


@pytest.mark.parametrize("name", ["LayerNormalization", "InstanceNormalization", "TensorNormalization", "GroupNormalization"])
def test_normalization_of_an_empty_batch(name: str) -> None:
    check_forward(name, [normal(0, 4, 2), None, None], np.zeros((0, 4, 2)))
    check_gradient(name, [normal(0, 4, 2), None, None], wrt=(0,))


@pytest.mark.parametrize(
    ("shape", "args", "groups"),
    [
        ((2, 6, 3), {"num_groups": 3}, (2, 3, 2, 3)),
        ((2, 6, 2, 2), {"num_groups": 1}, (2, 1, 6, 2, 2)),
        ((2, 4), {"num_groups": 4}, (2, 4, 1)),
        ((2, 3, 6), {"num_groups": 2, "channel_axis": 2}, (2, 3, 2, 3)),
        ((6, 2, 3), {"num_groups": 2, "channel_axis": 0, "batch_axis": (1, 2)}, (2, 3, 2, 3)),
    ],
)
def test_group_normalization(shape: tuple, args: dict, groups: tuple) -> None:
    channel = args.get("channel_axis", 1)
    parameter_shape = [n if axis == channel else 1 for axis, n in enumerate(shape)]
    inputs = [normal(*shape), normal(*parameter_shape), uniform(*parameter_shape)]
    kept = tuple(sorted((channel, *(axis + (axis > channel) for axis in args.get("batch_axis", (0,))))))

    def truth(x: np.ndarray, beta: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        return standardized(x.reshape(groups), kept, 1e-5).reshape(shape) * gamma + beta

    check_forward("GroupNormalization", inputs, truth, **args)
    check_gradient("GroupNormalization", inputs, **args)
    check_gradient("GroupNormalization", [inputs[0], None, None], wrt=(0,), **args)


@pytest.mark.parametrize(
    ("name", "shapes", "args", "message"),
    [
        (
            "LayerNormalization",
            ((2, 3), (3,), None),
            {"batch_axis": (0,)},
            r"beta must have shape \(1, 3\), got \(3,\)",
        ),
        (
            "TensorNormalization",
            ((2, 3), None, (2, 1)),
            {"axes": (1,)},
            r"gamma must have shape \(1, 3\), got \(2, 1\)",
        ),
        (
            "InstanceNormalization",
            ((2, 3, 4), (2, 1, 1), None),
            {"batch_axis": (0,), "channel_axis": 1},
            r"beta must have shape \(1, 3, 1\) or \(2, 3, 1\), got \(2, 1, 1\)",
        ),
        (
            "GroupNormalization",
            ((2, 6, 4), None, None),
            {"batch_axis": (0,), "channel_axis": 1, "num_groups": 4},
            "the channels of x must be a multiple of num_groups, got 6 and 4",
        ),
    ],
)
def test_normalization_of_samples_refuses(name: str, shapes: tuple, args: dict, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        SHAPE_RULES[name](*shapes, no_scale=False, no_bias=False, **args)


@pytest.mark.parametrize(("shape", "channel_axis"), [((3, 4, 2), 0), ((3, 4, 2), 1), ((4, 3), -1)])
def test_weight_standardization(shape: tuple, channel_axis: int) -> None:
    check_forward(
        "WeightStandardization",
        [normal(*shape)],
        lambda w: standardized(w, (channel_axis % w.ndim,), 1e-5),
        channel_axis=channel_axis,
    )
    check_gradient("WeightStandardization", [normal(*shape)], channel_axis=channel_axis)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 2.5])
@pytest.mark.parametrize("axes", [(1,), (0, 2), None])
def test_norm_normalization(p: float, axes: tuple | None) -> None:
    x = normal(3, 4, 2)

    def truth(x: np.ndarray) -> np.ndarray:
        return x / (np.sum(np.abs(x) ** p, axis=axes, keepdims=True) + 0.1) ** (1 / p)

    check_forward("NormNormalization", [x], truth, p=p, axes=axes, eps=0.1)
    check_gradient("NormNormalization", [x], p=p, axes=axes, eps=0.1)


def test_norm_normalization_keeps_zeros() -> None:
    np.testing.assert_array_equal(run("NormNormalization", np.zeros((2, 3)))[0], np.zeros((2, 3)))


@pytest.mark.parametrize(("shape", "dim"), [((3, 4), 0), ((3, 4, 2), 1), ((3, 4, 2), -1), ((4,), 0)])
def test_weight_normalization(shape: tuple, dim: int) -> None:
    inputs = [normal(*shape), uniform(shape[dim])]

    def truth(w: np.ndarray, g: np.ndarray) -> np.ndarray:
        slices = [s * length / math.sqrt((s**2).sum() + 0.1) for s, length in zip(np.moveaxis(w, dim, 0), g, strict=True)]
        return np.stack(slices, axis=dim)

    check_forward("WeightNormalization", inputs, truth, dim=dim, eps=0.1)
    check_gradient("WeightNormalization", inputs, dim=dim, eps=0.1)


def test_weight_normalization_refuses_another_number_of_lengths() -> None:
    with pytest.raises(ShapeError, match=r"one value for each place on axis dim of w, shape \(4,\), got \(3,\)"):
        SHAPE_RULES["WeightNormalization"]((3, 4), (3,), dim=1)


@pytest.mark.parametrize(("shape", "dim"), [((3, 5), 0), ((3, 5), 1), ((3, 4, 2), 1), ((2, 2, 3), 2)])
def test_spectral_norm_converges_to_the_largest_singular_value(shape: tuple, dim: int) -> None:
    w, u = normal(*shape), normal(shape[dim])

    def truth(w: np.ndarray, u: np.ndarray) -> np.ndarray:
        return w / np.linalg.norm(np.moveaxis(w, dim, 0).reshape(w.shape[dim], -1), 2)

    check_forward("SpectralNorm", [w, u], truth, dim=dim, itr=400)
    check_gradient("SpectralNorm", [w, u], wrt=(0,), dim=dim, itr=400)


@pytest.mark.parametrize("test", [False, True])
def test_spectral_norm_rewrites_u_by_one_iteration(test: bool) -> None:
    w, u = normal(3, 4), normal(3)
    v = w.T @ u / np.linalg.norm(w.T @ u)
    expected = w @ v / np.linalg.norm(w @ v)
    y, left, right, before, new_u = run("SpectralNorm", w, u, test=test)
    np.testing.assert_array_equal(before, u)
    np.testing.assert_allclose(left, expected)
    np.testing.assert_allclose(right, v)
    np.testing.assert_allclose(y, w / (expected @ w @ v))
    if test:
        assert new_u is None
    else:
        np.testing.assert_array_equal(new_u, left)


def test_spectral_norm_gradient_holds_the_singular_vectors_constant() -> None:
    w, u, dy = normal(3, 4), normal(3), normal(3, 4)
    _, left, right, *_ = run("SpectralNorm", w, u)
    dw, du = run_gradient("SpectralNorm", w, u, grads=[dy])
    outer = np.outer(left, right)
    largest = (w * outer).sum()
    np.testing.assert_allclose(dw, dy / largest - (dy * w).sum() / largest**2 * outer)
    assert du is None


def test_spectral_norm_refuses_another_length_of_u() -> None:
    with pytest.raises(ShapeError, match="u must have one value for each place on axis dim of w, got 4 and 3"):
        SHAPE_RULES["SpectralNorm"]((3, 4), (4,), dim=0)


@pytest.mark.parametrize(("shape", "base_axis"), [((4, 3), 1), ((2, 3, 4), 2), ((2, 3, 4), 1), ((3, 2), 0)])
@pytest.mark.parametrize("update", [True, False])
def test_mean_subtraction(shape: tuple, base_axis: int, update: bool) -> None:
    x, rmean, t = normal(*shape), normal(*shape[base_axis:]), np.array([3.0])
    args = {"base_axis": base_axis, "update_running_mean": update}
    y, rate, new_rmean, new_t = run("MeanSubtraction", x, rmean, t, **args)
    if update:
        expected = (3 * rmean + x.mean(tuple(range(base_axis)))) / 4
        np.testing.assert_allclose(new_rmean, expected)
        assert (rate.item(), new_t.item()) == (0.25, 4)
    else:
        expected = rmean
        assert (rate.item(), new_rmean, new_t) == (0, None, None)
    np.testing.assert_allclose(y, x - expected)
    check_gradient("MeanSubtraction", [x, rmean, t], wrt=(0, 1), **args)


def test_mean_subtraction_of_an_empty_batch_changes_nothing() -> None:
    y, _, new_rmean, new_t = run("MeanSubtraction", normal(0, 3), normal(3), np.array([3.0]))
    assert (y.shape, new_rmean, new_t) == ((0, 3), None, None)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3), (2,), (1,)), r"rmean must have the axes of x from base_axis on, got \(2,\) and \(3,\)"),
        (((2, 3), (3,), ()), r"t must have shape \(1,\), got \(\)"),
    ],
)
def test_mean_subtraction_refuses(shapes: tuple, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        SHAPE_RULES["MeanSubtraction"](*shapes, base_axis=1)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.has("recomputable")], ids=lambda spec: spec.name)
def test_functions_that_may_be_computed_again_do_not_read_what_they_rewrite(spec: FunctionSpec) -> None:
    for entry in samples_of(spec):
        arrays = as_inputs(spec, numbers_of(spec, entry), {}, "float64")
        first = run(spec.name, *arrays, **entry.args)
        n_outputs = len(first) - len(spec.updates)
        again = run(spec.name, *updated(spec, arrays, first[n_outputs:]), **entry.args)
        for one, other in zip(first[:n_outputs], again, strict=False):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float", "half", "bfloat16"])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("fused", [False, True])
def test_gradients_after_the_input_was_replaced_take_the_statistics_of_the_forward_pass(
    backend: str, dtype: str, fused: bool
) -> None:
    rng = np.random.default_rng(5)
    before, after, dy = (rng.normal(size=(6, 3, 4)) * scale + shift for scale, shift in ((1, 0), (3, 2), (1, 0)))
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    with nn.context_scope(nn.Context([f"{backend}:{dtype}"])):
        x = nn.Variable.from_numpy_array(before, need_grad=True)
        beta, gamma, mean, variance = (nn.Variable.from_numpy_array(np.full((1, 3, 1), v)) for v in (9.0, 1.5, 0.0, 1.0))
        gamma.need_grad = True
        normalized = (F.fused_batch_normalization if fused else F.batch_normalization)(x, beta, gamma, mean, variance)
        y = F.sum(normalized * nn.Variable.from_numpy_array(dy))
    y.forward(clear_no_need_grad=True)
    x.d = after
    for leaf in (x, gamma):
        leaf.grad.zero()
    y.backward()
    rate = 1 / np.sqrt(before.var((0, 2), keepdims=True) + 1e-5)
    z = (after - before.mean((0, 2), keepdims=True)) * rate
    dx = 1.5 * rate * (dy - dy.mean((0, 2), keepdims=True) - z * (dy * z).mean((0, 2), keepdims=True))
    tolerance = {"float": 1e-5, "half": 4e-3, "bfloat16": 3e-2}[dtype]
    np.testing.assert_allclose(x.g.astype(float), dx, atol=tolerance * np.abs(dx).max(), rtol=tolerance)
    np.testing.assert_allclose(gamma.g.ravel().astype(float), (dy * z).sum((0, 2)), atol=4 * tolerance, rtol=4 * tolerance)
