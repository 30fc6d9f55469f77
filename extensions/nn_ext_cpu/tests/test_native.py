"""The functions of the native library by itself, against float64 NumPy. Its types, refusals and settings: test_bindings.py.

What the functions of nn_core compute on it is checked by test_conformance.py.
"""

from typing import Any

import numpy as np
import pytest

from nn_core.ext import ArrayDesc
from nn_ext_cpu import _native


def desc(array: Any) -> ArrayDesc | None:
    return None if array is None else ArrayDesc(array.shape, array.dtype.name, array.strides)


def run(name: str, *arrays: Any, **settings: Any) -> None:
    _native.prepare(name, [desc(array) for array in arrays], **settings)(*arrays)


def pointwise(function: str, *inputs: Any, parameters: tuple[float, ...] = ()) -> Any:
    y = np.full_like(inputs[0], np.nan)
    program = [(function, len(inputs), list(range(len(inputs))), list(parameters))]
    run("pointwise", *inputs, y, program=program)
    return y


def channels_last(array: Any) -> Any:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


# Element-wise functions ----------------------------------------------------------------------------------------------

#: name, float64 truth, interval, largest error in units in the last place
UNARY = [
    ("exp", np.exp, (-103, 88.7), 2.0),
    ("expm1", np.expm1, (-20, 88), 3.0),
    ("log", np.log, (1e-38, 1e30), 2.0),
    ("log1p", np.log1p, (-0.99, 100), 4.0),
    ("tanh", np.tanh, (-12, 12), 3.0),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), (-80, 80), 3.0),
    ("sin", np.sin, (-6000, 6000), 8.0),
    ("cos", np.cos, (-6000, 6000), 8.0),
    ("sin", np.sin, (-1e6, 1e6), 2.0),
    ("tan", np.tan, (-300, 300), 6.0),
    ("tan", np.tan, (-1e6, 1e6), 2.0),
    ("asin", np.arcsin, (-1, 1), 3.0),
    ("acos", np.arccos, (-1, 1), 3.0),
    ("atan", np.arctan, (-50, 50), 3.0),
    ("asinh", np.arcsinh, (-1e30, 1e30), 4.0),
    ("asinh", np.arcsinh, (-20, 20), 4.0),
    ("acosh", np.arccosh, (1, 20), 4.0),
    ("acosh", np.arccosh, (1, 1e30), 4.0),
    ("atanh", np.arctanh, (-0.999, 0.999), 4.0),
    ("sinh", np.sinh, (-88, 88), 6.0),
    ("cosh", np.cosh, (-88, 88), 6.0),
    ("sqrt", np.sqrt, (0, 1e30), 1.0),
    ("round", lambda x: np.trunc(x + np.copysign(0.5, x)), (-100, 100), 0.0),
]


@pytest.mark.parametrize(("name", "truth", "interval", "limit"), UNARY, ids=[f"{r[0]}-{r[2][1]:g}" for r in UNARY])
def test_unary_functions_are_within_some_ulp(
    isa: str, rng: np.random.Generator, name: str, truth: Any, interval: tuple[float, float], limit: float
) -> None:
    x = rng.uniform(*interval, 20001).astype(np.float32)
    x = np.concatenate(
        [x, rng.uniform(max(interval[0], -1), min(interval[1], max(1, interval[0] + 1)), 20001).astype(np.float32)]
    )
    expected = truth(x.astype(np.float64))
    error = np.abs(pointwise(name, x) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert error.max() <= limit


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tanh", "sin", "relu", "sigmoid", "maximum_scalar", "abs"])
def test_nan_stays_nan(isa: str, name: str) -> None:
    x = np.array([np.nan] * 20, np.float32)
    assert np.isnan(pointwise(name, x, parameters=(0.0,) if name == "maximum_scalar" else ())).all()


def test_infinities_and_zeros_give_what_numpy_gives(isa: str) -> None:
    x = np.array([np.inf, -np.inf, 0.0, -0.0, 1e-45, 3.4e38], np.float32)
    for name, truth in (("exp", np.exp), ("tanh", np.tanh), ("log", np.log), ("log1p", np.log1p), ("sinh", np.sinh)):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(pointwise(name, x), truth(x), rtol=1e-6, atol=2e-45)


INVERSES = [
    ("asin", np.arcsin),
    ("acos", np.arccos),
    ("atan", np.arctan),
    ("asinh", np.arcsinh),
    ("acosh", np.arccosh),
    ("atanh", np.arctanh),
]


@pytest.mark.parametrize(("name", "truth"), INVERSES, ids=[name for name, _ in INVERSES])
def test_inverse_functions_of_special_values(isa: str, name: str, truth: Any) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, 1.0, -1.0, 1.5, -1.5, 3.4e38], np.float32)
    y = pointwise(name, x)
    with np.errstate(all="ignore"):
        expected = truth(x)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(y[zeros]), np.signbit(expected[zeros]))


def test_powers_of_any_numbers(isa: str, rng: np.random.Generator) -> None:
    bases = np.concatenate([rng.uniform(0, 3, 4000), np.exp2(rng.uniform(-140, 127, 4000))]).astype(np.float32)
    exponents = rng.uniform(-4, 4, bases.size).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(bases.astype(np.float64), exponents).astype(np.float32)
    np.testing.assert_allclose(pointwise("pow", bases, exponents), expected, rtol=3e-7, atol=2e-45)


@pytest.mark.parametrize("base", [0.0, -0.0, 1.0, -1.0, 2.5, 0.3, -2.0, np.inf, np.nan, 1e-40])
def test_powers_of_one_base(isa: str, rng: np.random.Generator, base: float) -> None:
    x = np.concatenate([rng.uniform(-20, 20, 100), [0, -0.0, 1, -1, 3, np.inf, -np.inf, np.nan]]).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(np.float64(np.float32(base)), x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(pointwise("rpow_scalar", x, parameters=(base,)), expected, rtol=3e-7, atol=2e-45)


def test_powers_of_special_numbers(isa: str) -> None:
    numbers = [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 1e30]
    bases, exponents = (np.ascontiguousarray(grid) for grid in np.meshgrid(*[np.array(numbers, np.float32)] * 2))
    with np.errstate(all="ignore"):
        expected = np.power(bases.astype(np.float64), exponents.astype(np.float64)).astype(np.float32)
    expected[(bases == -np.inf) & (np.floor(exponents) != exponents)] = np.nan  # as a square root
    y = pointwise("pow", bases, exponents)
    np.testing.assert_allclose(y, expected, rtol=3e-7)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(y[zeros]), np.signbit(expected[zeros]))


def test_subnormal_exponentials_do_not_vanish(isa: str) -> None:
    x = np.linspace(-103, -88, 64, dtype=np.float32)
    np.testing.assert_allclose(pointwise("exp", x), np.exp(x.astype(np.float64)), rtol=1e-5, atol=2e-45)


SHAPES = [
    ((3, 4, 5), (4, 1)),
    ((4, 1), (3, 4, 5)),
    ((1, 2000), (1,)),
    ((), (3,)),
    ((3000, 2), (2,)),
    ((3, 2500), (3, 1)),
    ((3, 2500), (2500,)),
    ((7, 4, 300), (4, 1)),
    ((1, 5, 300), (4, 1, 300)),
    ((40, 1), (1, 257)),
    ((2, 0, 3), (1, 3)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_inputs_broadcast_and_gradients_are_summed(
    isa: str, rng: np.random.Generator, first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    a, b = rng.normal(size=first).astype(np.float32), rng.normal(size=second).astype(np.float32)
    y = np.full(np.broadcast_shapes(first, second), np.nan, np.float32)
    run("pointwise", a, b, y, program=[("mul", 2, [0, 1], [])])
    np.testing.assert_array_equal(y, a * b)
    da, db = np.full_like(a, np.nan), np.full_like(b, np.nan)
    run("pointwise", a, b, y, da, db, program=[("mul", 3, [2, 1], []), ("mul", 4, [2, 0], [])])
    for gradient, product, shape in ((da, y.astype(float) * b, first), (db, y.astype(float) * a, second)):
        axes = tuple(range(product.ndim - len(shape)))
        total = product.sum(axis=axes)
        total = total.sum(axis=tuple(n for n in range(len(shape)) if shape[n] == 1), keepdims=True).reshape(shape)
        np.testing.assert_allclose(gradient, total, rtol=1e-5, atol=1e-5)


def test_strided_arrays_are_read_and_written_in_place(isa: str, rng: np.random.Generator) -> None:
    large = rng.normal(size=(7, 9, 11)).astype(np.float32)
    x, y = large[::2, 1:5, ::3], np.zeros((4, 8, 4), np.float32).transpose(2, 0, 1)[:, :, ::2]
    run("pointwise", x, y, program=[("negative", 1, [0], [])])
    np.testing.assert_array_equal(y, -x)


def test_a_program_may_use_temporaries_and_write_over_its_input(two_threads: None, rng: np.random.Generator) -> None:
    x = rng.normal(size=200_003).astype(np.float32)
    expected = np.tanh(x * 2.0 + 1.0) * x
    program = [("axpb", 1, [0], [2.0, 1.0]), ("tanh", 1, [1], []), ("mul", 0, [1, 0], [])]
    run("pointwise", x, program=program)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def test_long_sums_stay_exact(two_threads: None) -> None:
    x, y = np.full((3_000_001,), 0.1, np.float32), np.empty((1,), np.float32)
    run("pointwise", x, y, program=[("copy", 1, [0], [])])
    np.testing.assert_allclose(y, x.astype(np.float64).sum(), rtol=5e-7)


# Products, convolutions, copies --------------------------------------------------------------------------------------

PRODUCTS = [
    (1, 1, 1),
    (3, 5, 7),
    (16, 300, 130),
    (12, 100, 200),
    (100, 8, 4),
    (33, 257, 40),
    (70, 5, 3),
    (90, 100, 110),
    (193, 321, 97),  # a row more than a block, a column more than a piece
    (300, 700, 130),
    (2060, 40, 35),
    (35, 330, 3100),
    (20, 300, 512),
    (5, 520, 15),
    (5, 0, 3),
    (1, 9, 21),
    (1, 300, 250),  # few rows, and a matrix that does not stay in cache
    (3, 131, 513),
    (8, 262, 300),
]


@pytest.mark.parametrize(("m", "k", "n"), PRODUCTS)
def test_matrix_products(isa: str, two_threads: None, rng: np.random.Generator, m: int, k: int, n: int) -> None:
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            a = rng.normal(size=(2, k, m) if transpose_a else (2, m, k)).astype(np.float32)
            b = rng.normal(size=(2, n, k) if transpose_b else (2, k, n)).astype(np.float32)
            y = np.full((2, m, n), np.nan, np.float32)
            run("batch_matmul", a, b, y, transpose_a=transpose_a, transpose_b=transpose_b)
            left, right = np.swapaxes(a, 1, 2) if transpose_a else a, np.swapaxes(b, 1, 2) if transpose_b else b
            np.testing.assert_allclose(y, left.astype(np.float64) @ right, rtol=1e-5, atol=1e-5 * max(k, 1) ** 0.5)


@pytest.mark.parametrize(("m", "k", "n"), [(90, 100, 110), (193, 321, 97), (300, 700, 130), (35, 330, 3100)])
def test_products_of_blocks_have_the_same_bits_on_any_number_of_threads(
    isa: str, rng: np.random.Generator, m: int, k: int, n: int
) -> None:
    a, b = rng.normal(size=(1, m, k)).astype(np.float32), rng.normal(size=(1, k, n)).astype(np.float32)
    before, results = _native.num_threads(), []
    for threads in (1, 2, 3):
        _native.set_num_threads(threads)
        y = np.full((1, m, n), np.nan, np.float32)
        run("batch_matmul", a, b, y, transpose_a=False, transpose_b=False)
        results.append(y.tobytes())
    _native.set_num_threads(before)
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    ("m", "d", "k"), [(100, 2, 4), (16, 600, 260), (3, 70, 1), (130, 140, 150), (200, 330, 50), (0, 3, 2), (1, 257, 259)]
)
def test_affine_and_its_gradients(isa: str, rng: np.random.Generator, m: int, d: int, k: int) -> None:
    x, w = rng.normal(size=(m, d)).astype(np.float32), rng.normal(size=(d, k)).astype(np.float32)
    b, dy = rng.normal(size=k).astype(np.float32), rng.normal(size=(m, k)).astype(np.float32)
    y, dx, dw, db = (np.full_like(array, np.nan) for array in (dy, x, w, b))
    run("affine", x, w, b, y)
    run("affine_backward", x, w, None, None, dy, dx, dw, db)
    wide = [array.astype(np.float64) for array in (x, w, b, dy)]
    truths = wide[0] @ wide[1] + wide[2], wide[3] @ wide[1].T, wide[0].T @ wide[3], wide[3].sum(0)
    for result, truth in zip((y, dx, dw, db), truths, strict=True):
        np.testing.assert_allclose(result, truth, rtol=1e-5, atol=1e-4)


#: n, c, k, h, w, pad; in the fourth one threads take tiles of their own
WINOGRAD = [(2, 17, 33, 9, 7, 1), (3, 64, 48, 8, 8, 1), (1, 20, 35, 13, 6, 0), (1, 20, 35, 30, 27, 1), (2, 16, 16, 5, 9, 2)]


@pytest.mark.parametrize("shape", WINOGRAD)
def test_winograd_agrees_with_the_direct_method(isa: str, two_threads: None, rng: np.random.Generator, shape: Any) -> None:
    n, c, k, h, w, pad = shape
    settings = {"pad": [pad] * 2, "pad_end": [pad] * 2, "stride": [1, 1], "dilation": [1, 1], "group": 1}
    x = channels_last(rng.normal(size=(n, c, h, w)).astype(np.float32))
    weight, bias = rng.normal(size=(k, c, 3, 3)).astype(np.float32), rng.normal(size=k).astype(np.float32)
    dy = channels_last(rng.normal(size=(n, k, h + 2 * pad - 2, w + 2 * pad - 2)).astype(np.float32))
    results = []
    for enabled in (True, False):
        _native.enable_winograd(enabled)
        y, dx, dw, db = (np.full_like(array, np.nan) for array in (dy, x, weight, bias))
        run("convolution", x, weight, bias, y, **settings)
        run("convolution_backward", x, weight, None, None, dy, dx, dw, db, **settings)
        results.append((y, dx, dw, db))
    _native.enable_winograd(True)
    for fast, direct in zip(*results, strict=True):
        np.testing.assert_allclose(fast, direct, rtol=2e-5, atol=2e-5 * np.abs(direct).max())


@pytest.mark.parametrize("shape", [*WINOGRAD, (1, 64, 48, 7, 7, 1), (1, 300, 33, 6, 7, 1)])  # the last ones in tiles of 2 x 2
def test_winograd_agrees_with_the_direct_method_in_joined_convolutions(
    isa: str, two_threads: None, rng: np.random.Generator, shape: Any
) -> None:
    n, c, k, h, w, pad = shape
    settings = {"pad": [pad] * 2, "pad_end": [pad] * 2, "stride": [1, 1], "dilation": [1, 1], "group": 1}
    x = channels_last(rng.normal(size=(n, c, h, w)).astype(np.float32))
    z = channels_last(rng.normal(size=(n, k, h + 2 * pad - 2, w + 2 * pad - 2)).astype(np.float32))
    weight = rng.normal(size=(k, c, 3, 3)).astype(np.float32)
    beta, gamma, mean, variance = rng.uniform(0.5, 2.0, size=(4, k)).astype(np.float32)
    results = []
    for enabled in (True, False):
        _native.enable_winograd(enabled)
        y, *statistics = (np.full_like(array, np.nan) for array in (z, mean, variance))
        given = x, weight, None, beta, gamma, mean, variance, z, y, *statistics
        runner = _native.prepare("joined_convolution", [desc(array) for array in given], eps=1e-5, relu=True, **settings)
        for _ in range(3):  # transformed filters are kept from the second run on
            y.fill(np.nan)
            runner(*given)
            results.append(y.copy())
    _native.enable_winograd(True)
    for result in results[:3]:
        np.testing.assert_allclose(result, results[3], rtol=2e-5, atol=2e-5 * np.abs(results[3]).max())


@pytest.mark.parametrize("axes", [(1, 0), (2, 1, 0), (0, 2, 1), (0, 3, 1, 2), (3, 2, 0, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_copies_turn_arrays(rng: np.random.Generator, axes: tuple[int, ...], dtype: str) -> None:
    x = rng.integers(0, 100, size=(19, 33, 21, 5)[: len(axes)]).astype(dtype)
    y = np.zeros([x.shape[axis] for axis in axes], dtype)
    strides = [x.strides[axis] // x.itemsize for axis in axes]
    numbers = [0, 0, 1, 0, x.ndim, *y.shape, *strides, *[stride // y.itemsize for stride in y.strides]]
    run("copies", x, y, fills=[], copies=numbers, value=0.0)
    np.testing.assert_array_equal(y, x.transpose(axes))


def test_dropout_draws_the_bits_of_philox(isa: str) -> None:
    """The first words under key 0 and counter 0 are those of the paper's known answers."""
    x, y, mask = np.ones(4, np.float32), np.empty(4, np.float32), np.empty(4, np.float32)
    words = np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], np.uint64)
    for p in (0.39, 0.41, 0.59, 0.62, 0.73, 0.74, 0.87, 0.89):
        run("dropout", x, y, mask, np.zeros(2, np.uint64), p=p)
        np.testing.assert_array_equal(mask > 0, (words >> np.uint64(8)).astype(float) * 2.0**-24 >= p)
