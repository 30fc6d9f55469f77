"""Kernels in float64 beside the reference: on every instruction set, special values included."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.ext_utils import get_extension_context

#: Relative to the largest number of an array, or to 1.
TOLERANCE = 2e-13

RNG = np.random.default_rng(0)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e300, -1e300, 709.7, -745.0, 1.0, -1.0, 0.5])
NUMBERS = np.concatenate([SPECIAL, RNG.standard_normal(2000) * np.exp(RNG.uniform(-20, 6, 2000))])
UNIT = np.concatenate([np.array([0.0, 1.0, 0.5, 1e-300]), RNG.uniform(0, 1, 500)])


def results(backend: str, function: Callable[..., Any], arrays: list[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the output, and gradients of the inputs in float64."""
    rng = np.random.default_rng(1)
    with nn.context_scope(nn.Context([backend], device_id="0")):
        inputs = [nn.Variable.from_numpy_array(a, need_grad=a.dtype.kind == "f") for a in arrays]
        y = function(*inputs)
        y.persistent = True
        for x in inputs:
            x.grad.zero()
        y.forward()
        value = y.d.copy()
        if y.need_grad:
            y.backward(rng.standard_normal(y.shape))
    return [value, *[x.g.copy() for x in inputs if x.need_grad]]


def assert_alike(function: Callable[..., Any], *arrays: Any) -> None:
    """Compare with the reference; falling back is an error."""
    before = nn.fallback_report()
    found = results("cpu:double", function, list(arrays))
    assert nn.fallback_report() == before
    for index, (got, true) in enumerate(zip(found, results("reference:double", function, list(arrays)), strict=True)):
        assert got.dtype == np.float64
        finite = np.abs(true[np.isfinite(true)])
        scale = 1.0 if index == 0 and true.shape == NUMBERS.shape else max(float(np.max(finite, initial=0.0)), 1.0)
        np.testing.assert_allclose(got, true, rtol=TOLERANCE, atol=TOLERANCE * scale, err_msg=f"result {index}")


@pytest.mark.parametrize(
    "name",
    [
        *("exp", "log", "tanh", "sigmoid", "swish", "gelu", "softplus", "log_sigmoid", "elu", "selu", "mish", "relu", "abs"),
        *("sin", "cos", "tan", "atan", "sinh", "asinh", "sign", "round", "floor", "ceil", "softsign", "hard_sigmoid", "erf"),
    ],
)
def test_functions_of_one_array(isa: str, name: str) -> None:
    x = NUMBERS if name not in ("sinh", "mish") else np.clip(NUMBERS, -700, 700)
    with nn.context_scope(nn.Context(["cpu:double"])):
        y = getattr(F, name)(nn.Variable.from_numpy_array(x))
        y.forward()
    with nn.context_scope(nn.Context(["reference:double"])):
        true = getattr(F, name)(nn.Variable.from_numpy_array(x))
        true.forward()
    np.testing.assert_allclose(y.d, true.d, rtol=1e-14, atol=1e-15, err_msg=name)
    assert_alike(getattr(F, name), RNG.standard_normal(300))


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda x, y: x * y + x, [RNG.standard_normal((3, 40, 50)), RNG.standard_normal((1, 40, 1))]),
        (lambda x, y: x / (y * y + 1) - F.maximum2(x, y), [RNG.standard_normal((5, 7)), RNG.standard_normal((5, 7))]),
        (lambda x: F.pow_scalar(x, 2.5) + F.r_pow_scalar(x, 1.5), [UNIT + 0.1]),
        (lambda x: F.sum(x, axis=(0, 2)), [RNG.standard_normal((20, 30, 70))]),
        (lambda x: F.mean(x, axis=1), [RNG.standard_normal((200, 300))]),
        (lambda x: F.sum(x, axis=1), [RNG.standard_normal((3, 9001))]),
        (lambda x: F.mean(x, axis=0), [RNG.standard_normal((200, 300))]),
        (lambda x: F.softmax(x, axis=1), [RNG.standard_normal((20, 33))]),
        (lambda x: F.log_softmax(x, axis=1), [RNG.standard_normal((4, 33, 21))]),
        (F.squared_error, [RNG.standard_normal((9, 8)), RNG.standard_normal((9, 8))]),
        (F.binary_cross_entropy, [RNG.uniform(0.01, 0.99, 99), RNG.uniform(0, 1, 99)]),
        (F.softmax_cross_entropy, [RNG.standard_normal((9, 11)), RNG.integers(-1, 11, (9, 1))]),
        (F.affine, [RNG.standard_normal((33, 70)), RNG.standard_normal((70, 41)), RNG.standard_normal(41)]),
        (F.affine, [RNG.standard_normal((300, 400)), RNG.standard_normal((400, 210)), RNG.standard_normal(210)]),
        (F.affine, [RNG.standard_normal((1, 5)), RNG.standard_normal((5, 1)), RNG.standard_normal(1)]),
        (F.batch_matmul, [RNG.standard_normal((4, 17, 9)), RNG.standard_normal((4, 9, 23))]),
        (lambda a, b: F.batch_matmul(a, b, True, True), [RNG.standard_normal((2, 9, 17)), RNG.standard_normal((2, 23, 9))]),
        (lambda x: F.max_pooling(x, (3, 3), stride=(2, 2), pad=(1, 1)), [RNG.standard_normal((3, 5, 12, 13))]),
        (lambda x: F.average_pooling(x, (2, 2)), [RNG.standard_normal((3, 20, 12, 14))]),
        (F.layer_normalization, [RNG.standard_normal((12, 50)) + 3, *RNG.standard_normal((2, 1, 50))]),
        (
            lambda x, b, g: F.group_normalization(x, b, g, 4),
            [RNG.standard_normal((3, 8, 5, 6)) + 3, *RNG.standard_normal((2, 1, 8, 1, 1))],
        ),
    ],
)
def test_functions(isa: str, function: Callable[..., Any], arrays: list[Any]) -> None:
    assert_alike(function, *arrays)


@pytest.mark.parametrize(
    ("shape", "weight", "settings"),
    [
        ((2, 3, 11, 12), (8, 3, 3, 3), {"pad": (1, 1)}),
        ((2, 8, 11, 12), (8, 2, 3, 2), {"stride": (2, 1), "dilation": (1, 2), "group": 4}),
        ((2, 5, 40), (7, 5, 9), {"pad": (4,)}),
        ((2, 3, 11, 12), (4, 3, 2, 2), {"stride": (3, 4)}),  # some places of the image are read by no window
        ((1, 3, 5, 6, 7), (4, 3, 2, 2, 2), {}),
    ],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions(isa: str, shape: tuple[int, ...], weight: tuple[int, ...], settings: Any, transposed: bool) -> None:
    channels = weight[0]
    if transposed:
        shape = (shape[0], channels, *shape[2:])
        bias = weight[1] * settings.get("group", 1)
    else:
        bias = channels
    function = F.deconvolution if transposed else F.convolution
    arrays = [RNG.standard_normal(size) for size in (shape, weight, (bias,))]
    assert_alike(lambda x, w, b: F.tanh(function(F.tanh(x), w, b, **settings)), *arrays)


def test_batch_normalization(isa: str) -> None:
    shape = (6, 5, 4, 3)
    arrays = [RNG.standard_normal(shape) * 2 + 5, *RNG.standard_normal((2, 1, 5, 1, 1))]

    def function(x: nn.Variable, beta: nn.Variable, gamma: nn.Variable) -> nn.Variable:
        mean, variance = (nn.Variable.from_numpy_array(np.ones((1, 5, 1, 1))) for _ in range(2))
        return F.batch_normalization(x, beta, gamma, mean, variance)

    assert_alike(function, *arrays)


@pytest.mark.parametrize("solver", [S.Sgd, S.Momentum, S.Adam, S.AdamW, S.RMSprop, S.Adagrad, S.AMSBound])
def test_updates(isa: str, solver: Callable[..., Any]) -> None:
    found = []
    for backend in ("cpu:double", "reference:double"):
        with nn.context_scope(nn.Context([backend])):
            w = nn.Variable.from_numpy_array(np.linspace(-1, 1, 100), need_grad=True)
            rule = solver()
            rule.set_parameters({"w": w})
            for step in range(3):
                w.g = np.linspace(0.1, 2, 100) * (step + 1)
                rule.weight_decay(0.01)
                rule.clip_grad_by_norm(3.0)
                rule.update()
            found.append(w.d.copy())
    assert found[0].dtype == np.float64
    np.testing.assert_allclose(found[0], found[1], rtol=1e-13)


@pytest.mark.parametrize("type_config", ["float", "double"])
def test_powers_of_special_numbers_are_those_of_the_reference(type_config: str) -> None:
    numbers = [-np.inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.inf, np.nan]
    x, y = np.array(list(itertools.product(numbers, numbers))).T
    found = []
    for name in ("cpu", "reference"):
        with nn.context_scope(get_extension_context(name, type_config=type_config)), nn.auto_forward():
            base, exponent = nn.Variable.from_numpy_array(x), nn.Variable.from_numpy_array(y)
            values = [F.pow2(base, exponent).d]
            values += [F.pow_scalar(base, number).d for number in numbers]
            values += [F.r_pow_scalar(exponent, number).d for number in numbers]
            found.append(values)
    for number, (got, true) in enumerate(zip(*found, strict=True)):
        np.testing.assert_allclose(got, true, rtol=1e-6, err_msg=str(number))
        np.testing.assert_array_equal(np.signbit(got)[got == 0], np.signbit(true)[true == 0], err_msg=str(number))


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "atan"])
@pytest.mark.parametrize("most", [1e-7, 3.0, 200.0, 99000.0])
def test_functions_of_angles_have_nearly_all_digits(isa: str, name: str, most: float) -> None:
    x = np.random.default_rng(0).uniform(-most, most, 5000)
    x[:100] = np.arange(100) * np.pi / 2 if most > 150 else x[:100]  # close to zeros and poles
    with nn.context_scope(nn.Context(["cpu:double"])):
        y = getattr(F, name)(nn.Variable.from_numpy_array(x))
    y.forward()
    if np.finfo(np.longdouble).nmant <= 60:
        pytest.skip("this machine has no type that is wider than float64")
    true = getattr(np, {"atan": "arctan"}.get(name, name))(x.astype(np.longdouble))
    assert np.all(np.abs(y.d - true) <= 4 * np.spacing(np.abs(true.astype(np.float64))))


@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 300, 70), (1, 5, 3), (8, 300, 141), (3, 64, 33), (40, 20, 17), (2, 257, 130), (70, 70, 9)]
)
def test_slender_products(isa: str, m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(0)
    assert_alike(F.affine, rng.standard_normal((m, k)), rng.standard_normal((k, n)), rng.standard_normal(n))
    assert_alike(
        lambda a, b: F.batch_matmul(a, b, transpose_b=True), rng.standard_normal((2, m, k)), rng.standard_normal((2, n, k))
    )
