"""Quantizers against their formulas; gradients against central differences of the stated surrogates."""

import math
from fractions import Fraction

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.rules.arguments import resolve_args
from nn_core.testing.operators import (
    check_forward,
    check_gradient,
    check_table,
    infer_shapes,
    run,
    run_gradient,
    spec_of,
)

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.normal(size=shape)


def shapes(name, *inputs, **args):
    return infer_shapes(spec_of(name), inputs, resolve_args(spec_of(name), args, inputs))


def half_away(x):
    return np.array([math.copysign(math.floor(abs(v) + 0.5), v) for v in np.ravel(x)]).reshape(np.shape(x))


def check_surrogate(name, inputs, surrogate, *, wrt, **args):
    """Compare the gradient rule with central differences of `surrogate(*inputs)`, the function that it stands for."""
    dy = normal(*np.shape(surrogate(*inputs)))
    gradients = run_gradient(name, *inputs, grads=[dy], **args)
    for position in wrt:
        expected = np.zeros_like(inputs[position])
        for place in np.ndindex(*expected.shape):
            moved = [[value.copy() for value in inputs] for _ in range(2)]
            moved[0][position][place] += 1e-6
            moved[1][position][place] -= 1e-6
            expected[place] = np.sum(dy * (surrogate(*moved[0]) - surrogate(*moved[1]))) / 2e-6
        np.testing.assert_allclose(gradients[position], expected, rtol=1e-5, atol=1e-7, err_msg=f"{name}, {position}")
    return gradients


def test_every_function_has_its_attachments():
    check_table("quantization")


# --- Element-wise quantizers


@pytest.mark.parametrize(("name", "low", "slope"), [("BinarySigmoid", 0.0, 0.5), ("BinaryTanh", -1.0, 1.0)])
def test_binary_activations_have_two_levels_and_the_slope_of_their_hard_form(name, low, slope):
    x = np.array([-2.0, -0.9, -0.1, 0.0, 0.1, 0.9, 2.0])
    check_forward(name, [x], lambda x: np.where(x > 0, 1.0, low))
    check_surrogate(name, [x], lambda x: slope * np.clip(x, -1, 1), wrt=[0])
    np.testing.assert_array_equal(run_gradient(name, np.array([-1.0, 1.0]))[0], [0, 0])


@pytest.mark.parametrize("sign", [True, False])
@pytest.mark.parametrize(("n", "delta"), [(8, 0.0625), (2, 0.3), (3, 0.25)])
def test_fixed_point_quantize_rounds_to_multiples_within_the_range(sign, n, delta):
    x = 2 * normal(40)
    high = (2 ** (n - 1) - 1) * delta if sign else (2**n - 1) * delta
    low = -high if sign else 0.0
    args = {"sign": sign, "n": n, "delta": delta}
    levels = np.arange(round(low / delta), round(high / delta) + 1) * delta
    nearest = levels[np.argmin(np.abs(x[:, None] - levels), axis=1)]
    check_forward("FixedPointQuantize", [x], nearest, dtypes=("float64",), atol=1e-12, **args)
    check_surrogate("FixedPointQuantize", [x], lambda x: np.clip(x, low, high), wrt=[0], **args)
    check_surrogate("FixedPointQuantize", [x], lambda x: x, wrt=[0], ste_fine_grained=False, **args)


def test_fixed_point_quantize_rounds_halves_away_from_zero_and_keeps_the_ends_of_the_range():
    x = np.array([-np.inf, -0.75, -0.25, 0.25, 0.75, np.inf, np.nan])
    args = {"n": 3, "delta": 0.5}
    np.testing.assert_array_equal(run("FixedPointQuantize", x, **args)[0], [-1.5, -1.0, -0.5, 0.5, 1.0, 1.5, np.nan])
    np.testing.assert_array_equal(run_gradient("FixedPointQuantize", np.array([-1.5, 1.5, 1.6]), **args)[0], [1, 1, 0])


@pytest.mark.parametrize("with_zero", [True, False])
@pytest.mark.parametrize("sign", [True, False])
@pytest.mark.parametrize(("n", "m"), [(3, 1), (4, -1), (5, 0)])
def test_pow2_quantize_rounds_the_logarithm(n, m, sign, with_zero):
    x = np.concatenate((2.0**m * normal(30), 2.0 ** RNG.uniform(m - 16, m + 2, 30), [0.0]))
    low, high = 2.0 ** (m - 2 ** (n - sign - with_zero) + 1), 2.0**m

    def truth(x):
        y = []
        for value in x:
            magnitude = abs(value) if sign else max(value, 0.0)
            level = low if magnitude == 0 else min(max(2.0 ** round(math.log2(magnitude)), low), high)
            level = 0.0 if with_zero and magnitude < low * 2**-0.5 else level
            y.append(-level if sign and value < 0 else level)
        return np.array(y)

    args = {"sign": sign, "with_zero": with_zero, "n": n, "m": m}
    check_forward("Pow2Quantize", [x], truth, dtypes=("float64", "float32"), **args)
    ends = (-high * 2**0.5 if sign else 0.0, high * 2**0.5)
    check_surrogate("Pow2Quantize", [x[:-1]], lambda x: np.clip(x, *ends), wrt=[0], **args)
    check_surrogate("Pow2Quantize", [x], lambda x: x, wrt=[0], ste_fine_grained=False, **args)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("with_zero", [True, False])
def test_pow2_quantize_rounds_the_numbers_next_to_a_threshold(dtype, with_zero):
    below, above = [], []
    for exponent in range(-6, 2):
        root = np.array(2.0**exponent * math.sqrt(0.5), dtype)
        exact = Fraction(float(root)) ** 2 > Fraction(2) ** (2 * exponent - 1)
        below.append(np.nextafter(root, np.array(0, dtype)) if exact else root)
        above.append(np.nextafter(below[-1], np.array(9, dtype)))
    x = np.array([*below, *above], dtype)
    low = 2.0**-5 if with_zero else 2.0**-13
    levels = np.array([*(2.0 ** (e - 1) for e in range(-6, 2)), *(2.0**e for e in range(-6, 2))])
    levels[levels < low] = 0 if with_zero else low
    (y,) = run("Pow2Quantize", x, sign=True, with_zero=with_zero, n=5, m=2)
    np.testing.assert_array_equal(y, levels)


def test_pow2_quantize_refuses_too_few_bits():
    with pytest.raises(ArgumentError, match="n must leave a bit for the exponent beside those for sign and zero, got 2"):
        shapes("Pow2Quantize", (3,), n=2)
    assert shapes("Pow2Quantize", (3,), n=2, with_zero=False) == ((3,),)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_prune_zeroes_the_smallest(rate):
    x = normal(3, 7)
    kept = np.argsort(-np.abs(x).ravel())[: x.size - int((x.size - 1) * rate)] if rate < 1 else []
    truth = np.zeros(x.size)
    truth[kept] = x.ravel()[kept]
    check_forward("Prune", [x], truth.reshape(x.shape), dtypes=("float64",), rate=rate)
    check_surrogate("Prune", [x], lambda x: x, wrt=[0], rate=rate)


def test_prune_takes_an_empty_array():
    assert run("Prune", np.zeros((0, 3)))[0].shape == (0, 3)


# --- Quantizers with a range


def nudged(qr_min, qr_max, ql_min, ql_max):
    scale = (qr_max - qr_min) / (ql_max - ql_min)
    zero_point = np.clip(half_away(ql_min - qr_min / scale), ql_min, ql_max)
    return (ql_min - zero_point) * scale, (ql_max - zero_point) * scale, scale


def ranges(*shape, n_levels=16):
    low = normal(*shape)
    return low, low + np.abs(normal(*shape)) + 0.1, np.zeros(shape), np.full(shape, n_levels - 1.0)


@pytest.mark.parametrize("shape", [(1, 1), (4, 1), (1, 5)])
def test_min_max_quantize_rounds_to_levels_of_which_one_is_zero(shape):
    x, (qr_min, qr_max, ql_min, ql_max) = 2 * normal(4, 5), ranges(*shape)

    def truth(x, *limits):
        low, high, scale = nudged(*limits)
        return half_away((np.clip(x, low, high) - low) / scale) * scale + low

    inputs = [x, qr_min, qr_max, ql_min, ql_max]
    check_forward("MinMaxQuantize", inputs, truth, dtypes=("float64",), atol=1e-12)
    low, high, _ = nudged(qr_min, qr_max, ql_min, ql_max)
    assert np.all(np.minimum(np.abs(low), np.abs(high)) < 1e-9) or np.all((low <= 0) & (high >= 0))
    gradients = check_surrogate("MinMaxQuantize", inputs, lambda x, *_: np.clip(x, low, high), wrt=[0])
    assert gradients[3] is None and gradients[4] is None
    check_surrogate("MinMaxQuantize", inputs, lambda x, *_: x, wrt=[0], ste_fine_grained=False)


def test_min_max_quantize_trains_the_range_by_what_is_clipped():
    x, limits = 2 * normal(4, 5), ranges(1, 5)
    low, high, _ = nudged(*limits)
    dy = normal(4, 5)
    gradients = run_gradient("MinMaxQuantize", x, *limits, grads=[dy])
    np.testing.assert_allclose(gradients[1], np.sum(dy * (x < low), axis=0, keepdims=True))
    np.testing.assert_allclose(gradients[2], np.sum(dy * (x > high), axis=0, keepdims=True))
    for args in ({"x_min_max": True}, {"ema": True}, {"x_min_max": True, "ema": True}):
        assert run_gradient("MinMaxQuantize", x, *limits, grads=[dy], **args)[1:] == (None,) * 4


@pytest.mark.parametrize(("x_min_max", "ema"), [(True, False), (True, True), (False, True), (False, False)])
def test_min_max_quantize_updates_its_range(x_min_max, ema):
    x, limits = normal(4, 5), ranges(4, 1)
    weight = (0.75 if ema else 0.0) if x_min_max else 1.0
    new_min = weight * limits[0] + (1 - weight) * x.min(axis=1, keepdims=True)
    new_max = np.maximum(weight * limits[1] + (1 - weight) * x.max(axis=1, keepdims=True), new_min + 0.6)
    _, low, high, qr_min, qr_max = run("MinMaxQuantize", x, *limits, decay=0.75, x_min_max=x_min_max, ema=ema, eps=0.6)
    np.testing.assert_allclose(qr_min, new_min)
    np.testing.assert_allclose(qr_max, new_max)
    np.testing.assert_allclose((low, high), nudged(new_min, new_max, *limits[2:])[:2])


def test_min_max_quantize_refuses_ranges_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"ql_max must have the shape of qr_min, \(1, 3\), got \(1, 1\)"):
        shapes("MinMaxQuantize", (2, 3), (1, 3), (1, 3), (1, 3), (1, 1))
    with pytest.raises(ShapeError, match="qr_min must have as many axes as x, each of length 1 or that of x"):
        shapes("MinMaxQuantize", (2, 3), (3,), (3,), (3,), (3,))


@pytest.mark.parametrize("dtype", [1, 2])
@pytest.mark.parametrize("narrow_range", [True, False])
@pytest.mark.parametrize("round_mode", ["HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"])
def test_quantize_linear_rounds_shifts_and_saturates(round_mode, narrow_range, dtype):
    x = np.concatenate((60 * normal(40), [-2.5, -1.5, 0.5, 1.5, 2.5])).reshape(3, 15)
    scale, zero_point = np.array([[0.5], [1.0], [1.0]]), np.array([[2.5], [-400.0], [3.5]])
    low, high = {1: (-128 + narrow_range, 127), 2: (0 + narrow_range, 255)}[dtype]
    rounded = np.round if round_mode == "HALF_TO_EVEN" else half_away
    new_zero_point = np.clip(rounded(zero_point), low, high)
    truth = np.clip(rounded(x / scale) + new_zero_point, low, high)
    y, updated = KERNELS["QuantizeLinear"](
        np, x, scale, zero_point, round_mode=round_mode, narrow_range=narrow_range, dtype=dtype
    )
    np.testing.assert_array_equal(y, truth)
    np.testing.assert_array_equal(updated, new_zero_point)


@pytest.mark.parametrize("dtype", [None, "acme", -1, (), np.int16, np.float32, bool])
def test_quantize_linear_refuses_other_types_than_bytes(dtype):
    x, scale, zero_point = (nn.Variable.from_numpy_array(np.ones((2, 3))) for _ in range(3))
    with pytest.raises(ArgumentTypeError, match=r"quantize_linear: dtype must be np\.int8 or np\.uint8, got"):
        F.quantize_linear(x, scale, zero_point, dtype=dtype)


def test_quantize_linear_passes_gradients_straight_through():
    inputs = [60 * normal(3, 4), np.array([[0.5], [1.0], [2.0]]), np.array([[2.5], [-400.0], [3.5]])]
    check_surrogate("QuantizeLinear", inputs, lambda x, s, z: x / s + z, wrt=[0, 1, 2])


def test_dequantize_linear_undoes_quantize_linear_up_to_half_a_level():
    x, scale, zero_point = normal(3, 4), np.array([[0.05], [0.1], [0.2]]), np.array([[1.0], [-5.0], [0.0]])
    levels, zero_point = run("QuantizeLinear", x, scale, zero_point)
    values = run("DequantizeLinear", levels, scale, zero_point)[0]
    assert np.all(np.abs(values - x) <= scale / 2 + 1e-12)
    check_forward("DequantizeLinear", [levels, scale, zero_point], lambda x, s, z: (x - z) * s)
    check_gradient("DequantizeLinear", [levels, scale, zero_point])


@pytest.mark.parametrize("name", ["QuantizeLinear", "DequantizeLinear"])
def test_linear_quantization_refuses_scales_that_do_not_fit(name):
    with pytest.raises(ShapeError, match="scale must have as many axes as x, each of length 1 or that of x"):
        shapes(name, (2, 3), (3,), (1, 1))
    with pytest.raises(ShapeError, match=r"zero_point must have .* got \(1, 2\) for \(2, 3\)"):
        shapes(name, (2, 3), (1, 1), (1, 2))


# --- Layers with quantized weights


def correlate(x, weight, bias, pad, stride, group):
    """A convolution of (B, C, H, W), one output element after the other."""
    x = np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    filters, channels, height, width = weight.shape
    rows = range(0, x.shape[2] - height + 1, stride[0])
    columns = range(0, x.shape[3] - width + 1, stride[1])
    y = np.empty((x.shape[0], filters, len(rows), len(columns)))
    for k in range(filters):
        first = k // (filters // group) * channels
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                window = x[:, first : first + channels, row : row + height, column : column + width]
                y[:, k, i, j] = np.sum(window * weight[k], axis=(1, 2, 3)) + bias[k]
    return y


GEOMETRY = {"pad": (1, 0), "stride": (2, 1), "group": 2}


def affine_case():
    x, weight, bias = normal(2, 3, 2), normal(6, 2, 2), normal(2, 2)

    def layer(x, weight, bias):
        return np.tensordot(x.reshape(2, 6), weight, axes=1) + bias

    return "Affine", x, weight, bias, (0,), {}, layer


def convolution_case():
    x, weight, bias = normal(2, 4, 3, 3), normal(4, 2, 2, 2), normal(4)

    def layer(x, weight, bias):
        return correlate(x, weight, bias, **GEOMETRY)

    return "Convolution", x, weight, bias, (1, 2, 3), GEOMETRY, layer


CASES = pytest.mark.parametrize("case", [affine_case, convolution_case])


@CASES
@pytest.mark.parametrize("zero", [1.0, -1.0])
def test_binary_connect_layers_use_signs_and_train_the_weight(case, zero):
    kind, x, weight, bias, _, args, layer = case()
    name = f"BinaryConnect{kind}"
    weight.flat[::3] = 0
    signs = np.where(weight == 0, zero, np.sign(weight))
    inputs = [x, weight, normal(*weight.shape), bias]
    args = {"quantize_zero_to": zero, **args}
    check_forward(name, inputs, lambda x, w, s, b: layer(x, signs, b), dtypes=("float64", "float32"), **args)
    np.testing.assert_array_equal(run(name, *inputs, **args)[1], signs)
    gradients = check_surrogate(name, inputs, lambda x, w, s, b: layer(x, signs + w - weight, b), wrt=[0, 1, 3], **args)
    assert gradients[2] is None


@CASES
def test_binary_weight_layers_scale_the_signs_of_each_output(case):
    kind, x, weight, bias, axes, args, layer = case()
    name = f"BinaryWeight{kind}"
    scale = np.mean(np.abs(weight), axis=axes, keepdims=True)
    scaled = np.sign(weight) * scale
    inputs = [x, weight, normal(*weight.shape), normal(scale.size), bias]
    check_forward(name, inputs, lambda x, w, s, a, b: layer(x, scaled, b), dtypes=("float64",), **args)
    _, signs, alpha = run(name, *inputs, **args)
    np.testing.assert_array_equal(signs, np.sign(weight))
    np.testing.assert_allclose(alpha, scale.ravel())
    gradients = check_surrogate(name, inputs, lambda x, w, s, a, b: layer(x, scaled + w - weight, b), wrt=[0, 1, 4], **args)
    assert gradients[2:4] == (None, None)


def test_layers_with_binary_weights_take_no_bias():
    x, weight = normal(2, 3), normal(3, 4)
    y = run("BinaryConnectAffine", x, weight, weight)[0]
    np.testing.assert_allclose(y, x @ np.sign(weight))
    assert run_gradient("BinaryConnectAffine", x, weight, weight)[3] is None


def test_layers_with_quantized_weights_refuse_arrays_that_do_not_fit_the_weight():
    for name, inputs in (
        ("BinaryConnectAffine", ((2, 3), (3, 4), (3, 3), (4,))),
        ("BinaryConnectConvolution", ((2, 3, 4), (4, 3, 2), (4, 3), (4,))),
        ("BinaryWeightAffine", ((2, 3), (3, 4), (4, 3), (4,), None)),
        ("BinaryWeightConvolution", ((2, 3, 4), (4, 3, 2), (4, 3), (4,), None)),
    ):
        with pytest.raises(ShapeError, match="binary_weight must have the shape of weight"):
            shapes(name, *inputs)
    for name, inputs in (("INQAffine", ((2, 3), (3, 4), (3, 3))), ("INQConvolution", ((2, 3, 4), (4, 3, 2), (4, 3)))):
        with pytest.raises(ShapeError, match="indicator_fixedweights must have the shape of weight"):
            shapes(name, *inputs, None)
    for name, inputs in (
        ("BinaryWeightAffine", ((2, 3), (3, 4), (3, 4), (3,), None)),
        ("BinaryWeightConvolution", ((2, 3, 4), (4, 3, 2), (4, 3, 2), (3,), None)),
    ):
        with pytest.raises(ShapeError, match=r"alpha must have one element per output, 4, got shape \(3,\)"):
            shapes(name, *inputs)


# --- Incremental network quantization


def levels_of(weight, num_bits):
    """The nearest level of each weight, by the thresholds of the paper: 0 below half of the smallest level, and the
    mean of two neighbouring levels between them."""
    top = math.floor(math.log2(4 / 3 * np.abs(weight).max()))
    levels = [2.0 ** (top - k) for k in range(2 ** (num_bits - 2))]

    def level(value):
        magnitude = abs(value)
        if magnitude < levels[-1] / 2:
            return 0.0
        above = [size for size in levels if magnitude >= 0.75 * size]
        return math.copysign(max(above, default=levels[-1]), value)

    return np.vectorize(level)(weight)


def train(x, weight, indicator, n_passes, **args):
    """Weights and indicators after each of some forward passes."""
    history = []
    for counter in range(n_passes):
        key = np.array([args.get("seed", 3), counter + 1], np.uint64)
        y, weight, indicator = run("INQAffine", x, weight, indicator, key=key, **args)
        np.testing.assert_allclose(y, x @ weight)
        history.append((weight, indicator))
    return history


@pytest.mark.parametrize("num_bits", [2, 3, 5])
def test_inq_fixes_the_largest_half_and_in_the_end_everything(num_bits):
    x, weight = normal(2, 6), 2 * normal(6, 4)
    args = {"num_bits": num_bits, "inq_iterations": (1, 2, 4)}
    history = train(x, weight, np.zeros((6, 4), np.int32), 6, **args)
    assert [int((indicator > 0).sum()) for _, indicator in history] == [0, 12, 18, 18, 24, 24]
    by_size = np.argsort(-np.abs(weight).ravel())
    for (quantized, indicator), n_fixed in zip(history[1:], (12, 18, 18, 24, 24), strict=True):
        fixed = np.zeros(24, bool)
        fixed[by_size[:n_fixed]] = True
        np.testing.assert_array_equal(indicator > 0, fixed.reshape(6, 4))
        expected = np.where(fixed.reshape(6, 4), levels_of(weight, num_bits), weight)
        np.testing.assert_array_equal(quantized, expected)
    assert indicator.dtype == np.int32
    assert history[0][1].max() == -1, "the indicator of learnable weights counts passes"


def test_inq_quantizes_what_is_fixed_from_the_start_and_leaves_the_indicator_without_iterations():
    weight, indicator = normal(5, 3), np.eye(5, 3)
    for quantized, after in train(normal(2, 5), weight, indicator, 2):
        np.testing.assert_array_equal(quantized, np.where(indicator > 0, levels_of(weight, 4), weight))
        np.testing.assert_array_equal(after, indicator)


def test_inq_selects_at_random_by_seed():
    x, weight, args = normal(2, 8), normal(8, 8), {"inq_iterations": (0, 5), "selection_algorithm": "random"}
    first, second, other = (train(x, weight, np.zeros((8, 8)), 1, seed=seed, **args)[0][1] > 0 for seed in (1, 1, 2))
    assert first.sum() == 32
    np.testing.assert_array_equal(first, second)
    assert np.any(first != other)


def test_inq_fixes_one_weight_at_least():
    (_, indicator), *_ = train(np.ones((1, 1)), np.full((1, 1), 0.9), np.zeros((1, 1)), 1, inq_iterations=(0, 9))
    assert indicator[0, 0] == 1


def test_inq_takes_an_empty_weight():
    y, weight, _ = run("INQAffine", np.ones((2, 3)), np.ones((3, 0)), np.ones((3, 0)), inq_iterations=(0,))
    assert y.shape == (2, 0)
    assert weight.shape == (3, 0)


def test_inq_takes_a_weight_of_zeros():
    (weight, indicator), *_ = train(np.ones((1, 3)), np.zeros((3, 2)), np.zeros((3, 2)), 1, inq_iterations=(0,))
    np.testing.assert_array_equal(weight, 0)
    np.testing.assert_array_equal(indicator, 1)


@CASES
def test_inq_layers_give_no_gradient_to_fixed_weights(case):
    kind, x, weight, bias, _, args, layer = case()
    name = f"INQ{kind}"
    indicator = (np.arange(weight.size).reshape(weight.shape) % 3 == 0).astype(float)
    y, weight, indicator = run(name, x, weight, indicator, bias, **args)
    np.testing.assert_allclose(y, layer(x, weight, bias))
    inputs = [x, weight, indicator, bias]
    gradients = check_surrogate(
        name, inputs, lambda x, w, i, b: layer(x, np.where(i > 0, weight, w), b), wrt=[0, 1, 3], **args
    )
    assert gradients[2] is None


# --- Integers

LEVELS = ("int8", "uint8", "int16", "uint16")


def levels(*shape, dtype="int8"):
    bounds = np.iinfo(dtype)
    return RNG.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)


def variables(*arrays):
    return [None if array is None else nn.Variable.from_numpy_array(array) for array in arrays]


@pytest.mark.parametrize("dtype", LEVELS)
def test_quantize_integer_gives_the_dtype_of_the_zero_point(dtype):
    x, scale, zero_point = normal(4, 5) * 300, np.array([[0.5, 0.25, 3.0, 0.01, 1.0]]), levels(1, 5, dtype=dtype)
    with nn.auto_forward():
        y = F.quantize_integer(*variables(x.astype(np.float32), scale.astype(np.float32), zero_point)).d
    bounds = np.iinfo(dtype)
    limits = scale.astype(np.float32)[0], zero_point[0]
    expected = [
        [min(max(round(float(v / s)) + int(z), bounds.min), bounds.max) for v, s, z in zip(row, *limits, strict=True)]
        for row in x.astype(np.float32)
    ]
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(y, expected)


def test_quantize_integer_rounds_halves_to_even_before_it_shifts():
    y = run("QuantizeInteger", np.arange(-2.5, 3), np.ones(1), np.array([1], np.int8))[0]
    assert y.tolist() == [-1, -1, 1, 1, 3, 3]


def test_quantize_integer_limits_infinities_and_takes_nan_for_zero():
    x = np.array([np.inf, -np.inf, np.nan, 3e38, 0.0])
    y = run("QuantizeInteger", x, np.array([0.5]), np.array([7], np.uint8), float_dtype="float32")[0]
    assert y.tolist() == [255, 0, 7, 255, 7]


@pytest.mark.parametrize("dtype", LEVELS)
def test_matmul_integer_is_exact(dtype):
    a, b = levels(2, 3, 7, dtype=dtype), levels(7, 4, dtype="int8")
    a_zero_point, b_zero_point, bias = levels(2, 3, 1, dtype=dtype), levels(1, 4), np.array([2**24 + 1, -5, 0, 7])
    with nn.auto_forward():
        y = F.matmul_integer(*variables(a, b, a_zero_point, b_zero_point, bias)).d
    expected = (a.astype(object) - a_zero_point.astype(object)) @ (b.astype(object) - b_zero_point.astype(object)) + bias
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, expected.astype(np.int64))


def test_matmul_integer_holds_what_float32_does_not():
    column = np.full((600, 1), 127, np.int8)
    column[0] = 126
    y = run("MatMulInteger", np.full((1, 600), 255, np.uint8), column)[0]
    assert int(y[0, 0]) == 19_430_745 != int(np.float32(19_430_745))


def test_sums_out_of_the_range_of_int32_wrap_around():
    row = np.full((1, 3), 2**15 - 1, np.int16)
    y = run("MatMulInteger", row, row.T)[0]
    assert int(y[0, 0]) == 3 * (2**15 - 1) ** 2 - 2**32
    y = run("ConvInteger", row.reshape(1, 1, 3), row.reshape(1, 1, 3))[0]
    assert int(y[0, 0, 0]) == 3 * (2**15 - 1) ** 2 - 2**32


@pytest.mark.parametrize("weight_zero_point", [None, np.array(5, np.int8), np.array([-3, 0, 9, 127], np.int8)])
def test_conv_integer_is_a_convolution_of_what_is_left_of_the_levels(weight_zero_point):
    x, weight, x_zero_point = levels(2, 4, 6, 5, dtype="uint8"), levels(4, 2, 3, 2), np.array([131], np.uint8)
    geometry, bias = {"pad": (2, 1), "stride": (2, 1), "dilation": (1, 2), "group": 2}, np.array([2**24 + 1, -5, 0, 7])
    with nn.auto_forward():
        y = F.conv_integer(*variables(x, weight, x_zero_point, weight_zero_point, bias), **geometry).d
    shift = 0 if weight_zero_point is None else weight_zero_point.astype(np.int64).reshape(-1, 1, 1, 1)
    expected = run("Convolution", x.astype(float) - 131, (weight - shift).astype(float), bias.astype(float), **geometry)[0]
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("name", ["MatMulInteger", "ConvInteger"])
def test_products_of_integers_refuse_other_numbers(name):
    shape = (2, 2) if name == "MatMulInteger" else (1, 2, 2)
    with pytest.raises(DTypeError, match="must hold int8, uint8, int16, uint16, got float64"):
        run(name, levels(*shape), np.ones(shape))
    with pytest.raises(DTypeError, match="must hold int8, uint8, int16, uint16, got int32"):
        run(name, levels(*shape).astype(np.int32), levels(*shape))
    with pytest.raises(DTypeError, match="_zero_point must hold int8, uint8, int16, uint16, got float64"):
        run(name, levels(*shape), levels(*shape), np.ones((1, 1)))
    with pytest.raises(DTypeError, match="zero_point must hold int8, uint8, int16, uint16, got int64"):
        run("QuantizeInteger", normal(3), np.ones(1), np.array([3]))


def test_zero_points_must_fit():
    with pytest.raises(ShapeError, match="a_zero_point must have as many axes as a, each of length 1 or that of a"):
        shapes("MatMulInteger", (3, 4), (4, 2), (3,), None, None)
    with pytest.raises(ShapeError, match=r"b_zero_point must be one number along the axis .*, length 1 on axis -2, got shape"):
        shapes("MatMulInteger", (3, 4), (4, 2), None, (4, 2), None)
    with pytest.raises(ShapeError, match=r"x_zero_point must have one element, got shape \(2,\)"):
        shapes("ConvInteger", (1, 2, 5), (3, 2, 2), (2,), None, None)
    with pytest.raises(ShapeError, match=r"one for each of the 3 filters, got shape \(2,\)"):
        shapes("ConvInteger", (1, 2, 5), (3, 2, 2), None, (2,), None)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products_to_levels_are_quantized_sums(dtype):
    a, b, zero = levels(3, 7, dtype=dtype), levels(7, 4), levels(1, 1, dtype=dtype)
    bias, scale, shift = np.array([900, -5, 0, 7]), np.array([70.0, 90.5, 111.0, 3.0]), np.array([9], dtype)
    with nn.auto_forward():
        y = F.qlinear_matmul(*variables(a, b, scale, shift, zero, None, bias)).d
        sums = F.matmul_integer(*variables(a, b, zero, None, bias)).d
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(y, np.clip(np.round(sums.astype(np.float32) / scale.astype(np.float32)) + 9, low, high))
    x, weight, zero, rows = levels(2, 4, 6, 5, dtype=dtype), levels(4, 2, 3, 2), levels(1, dtype=dtype), levels(4)
    geometry = {"pad": (2, 1), "stride": (2, 1), "dilation": (1, 2), "group": 2}
    with nn.auto_forward():
        y = F.qlinear_conv(*variables(x, weight, scale, shift, zero, rows, bias), **geometry).d
        sums = F.conv_integer(*variables(x, weight, zero, rows, bias), **geometry).d
    assert y.dtype == np.dtype(dtype)
    steps = np.round(sums.astype(np.float32) / scale.astype(np.float32).reshape(4, 1, 1))
    np.testing.assert_array_equal(y, np.clip(steps + 9, low, high))


def test_products_to_levels_refuse_another_dtype_and_other_scales():
    with pytest.raises(DTypeError, match="qlinear_matmul: zero_point must hold uint8 as a does, got int8"):
        run("QLinearMatMul", levels(2, 2, dtype="uint8"), levels(2, 2), np.ones(1), levels(1))
    with pytest.raises(ShapeError, match=r"one for each of the 2 columns of b, got shape \(3,\)"):
        shapes("QLinearMatMul", (3, 4), (4, 2), (3,), (1,), None, None, None)
    with pytest.raises(ShapeError, match=r"one for each of the 3 filters, got shape \(2,\)"):
        shapes("QLinearConv", (1, 2, 5), (3, 2, 2), (2,), (1,), None, None, None)
    with pytest.raises(ShapeError, match=r"zero_point must have one element, got shape \(3,\)"):
        shapes("QLinearConv", (1, 2, 5), (3, 2, 2), (1,), (3,), None, None, None)


def test_inq_takes_a_boolean_indicator():
    x, weight, fixed = normal(2, 3), normal(3, 2), np.array([[True, False], [False, True], [True, True]])
    inputs = [nn.Variable.from_numpy_array(array) for array in (x, weight)]
    results = []
    for indicator in (fixed, fixed.astype(np.float32)):
        y = F.inq_affine(*inputs, nn.Variable.from_numpy_array(indicator))
        y.forward()
        results.append(y.d)
    np.testing.assert_array_equal(*results)
