"""Arithmetic, comparisons, logic, elementary functions: truth of every kernel and gradient rule."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import DTypeError, NNCoreError, ShapeError
from nn_core.operators.reference import arithmetic as reference
from nn_core.operators.rules.registry import SHAPE_RULES
from nn_core.testing.operators import check_forward, check_gradient, check_table, run, run_gradient, spec_of

INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(20)
SIGNED = np.array([[-2.75, -1.0, -0.3, 0.4], [0.6, 1.0, 1.75, 3.5]])
SPECIAL = np.array([0.0, -1.0, 2.0, INF, -INF, NAN])


def between(low: float, high: float) -> np.ndarray:
    """Samples inside (low, high), far from its ends."""
    return RNG.uniform(low + 0.02 * (high - low), high - 0.02 * (high - low), size=(3, 4))


def test_every_function_of_the_topic_has_its_attachments() -> None:
    check_table("arithmetic")


UNARY: list[tuple[str, Any, np.ndarray]] = [
    ("Abs", np.abs, SIGNED),
    ("ACos", np.arccos, between(-1, 1)),
    ("ACosh", np.arccosh, between(1, 5)),
    ("ASin", np.arcsin, between(-1, 1)),
    ("ASinh", np.arcsinh, SIGNED),
    ("ATan", np.arctan, SIGNED),
    ("ATanh", np.arctanh, between(-0.9, 0.9)),
    ("Cos", np.cos, SIGNED),
    ("Cosh", np.cosh, SIGNED),
    ("Erf", scipy.special.erf, SIGNED),
    ("Exp", np.exp, SIGNED),
    ("Log", np.log, between(0.1, 5)),
    ("Sin", np.sin, SIGNED),
    ("Sinh", np.sinh, SIGNED),
    ("Tan", np.tan, between(-1.2, 1.2)),
]


@pytest.mark.parametrize(("name", "truth", "x"), UNARY, ids=[row[0] for row in UNARY])
def test_elementary_functions(name: str, truth: Any, x: np.ndarray) -> None:
    check_forward(name, [x], truth)
    check_forward(name, [x[0, 0]], truth)
    check_forward(name, [np.zeros((0, 3))], np.zeros((0, 3)))
    check_gradient(name, [x])


def test_erf_is_accurate_to_float64() -> None:
    x = np.concatenate([np.linspace(-7, 7, 4001), [0.46875, np.nextafter(0.46875, 1), 1e-300, 4.0, 1e300, INF, -INF]])
    np.testing.assert_allclose(reference.erf(np, x), scipy.special.erf(x), rtol=4e-16)
    assert np.isnan(reference.erf(np, np.array([NAN])))


STRAIGHT_THROUGH = [
    ("Ceil", np.ceil, {}),
    ("Floor", np.floor, {}),
    ("Round", lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5), {}),
    ("Sign", lambda x: np.where(x == 0, 0.5, np.sign(x)), {"alpha": 0.5}),
]


@pytest.mark.parametrize(("name", "truth", "args"), STRAIGHT_THROUGH, ids=[row[0] for row in STRAIGHT_THROUGH])
def test_steps_pass_the_gradient_straight_through(name: str, truth: Any, args: dict[str, float]) -> None:
    x = np.array([-2.5, -1.5, -0.5, -0.25, 0.0, 0.25, 0.5, 1.5, 2.5, 7.0])
    check_forward(name, [x], truth, **args)
    dy = RNG.normal(size=x.shape)
    np.testing.assert_array_equal(run_gradient(name, x, grads=[dy], **args)[0], dy)


def test_round_is_exact_beside_a_half_and_keeps_special_values() -> None:
    below = np.nextafter(0.5, 0)
    np.testing.assert_array_equal(run("Round", np.array([below, -below, 2.0**52 + 1]))[0], [0, 0, 2.0**52 + 1])
    np.testing.assert_array_equal(run("Round", np.array([INF, -INF, NAN]))[0], [INF, -INF, NAN])


def test_sign_of_zero_is_alpha_and_nan_stays() -> None:
    np.testing.assert_array_equal(run("Sign", SPECIAL)[0], [1, -1, 1, 1, -1, NAN])
    np.testing.assert_array_equal(run("Sign", SPECIAL, alpha=0.0)[0], [0, -1, 1, 1, -1, NAN])


BINARY: list[tuple[str, Any, bool]] = [
    ("Add2", np.add, False),
    ("BcAdd2", np.add, False),
    ("Sub2", np.subtract, False),
    ("Mul2", np.multiply, False),
    ("Div2", np.divide, False),
    ("Pow2", np.power, True),
    ("Minimum2", np.minimum, False),
    ("Maximum2", np.maximum, False),
    ("ATan2", np.arctan2, False),
    ("Mod2", np.fmod, False),
]
SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((1, 4), (3, 1)), ((), (2, 3)), ((2, 0), (1, 1))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "truth", "positive"), BINARY, ids=[row[0] for row in BINARY])
def test_binary_functions_broadcast(name: str, truth: Any, positive: bool, shapes: tuple) -> None:
    x0, x1 = (RNG.uniform(0.5, 2, size=shape) for shape in shapes)
    if not positive:
        x0, x1 = x0 * RNG.choice([-1, 1], size=shapes[0]), x1 * RNG.choice([-1, 1], size=shapes[1])
    check_forward(name, [x0, x1], truth)
    check_gradient(name, [x0, x1])


def test_binary_functions_take_inplace() -> None:
    for name in ("Add2", "BcAdd2", "Sub2", "Mul2", "Div2", "Pow2"):
        np.testing.assert_array_equal(run(name, SIGNED, 2.0, inplace=True)[0], run(name, SIGNED, 2.0)[0])


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"equal or 1 on each axis, counted from the last, got \(2, 3\) and \(2,\)"):
        check_forward("Add2", [np.ones((2, 3)), np.ones(2)], None)


def test_equal_operands_send_the_gradient_of_extrema_to_the_second() -> None:
    x = np.array([1.0, 2.0])
    for name in ("Minimum2", "Maximum2"):
        dx0, dx1 = run_gradient(name, x, x)
        np.testing.assert_array_equal(dx0, [0, 0])
        np.testing.assert_array_equal(dx1, [1, 1])
        np.testing.assert_array_equal(run(name, np.array([NAN, 1]), np.array([1, NAN]))[0], [NAN, NAN])


def test_pow2_at_the_base_zero() -> None:
    base, exponent = np.array([0.0, 0.0, 0.0]), np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(run("Pow2", base, exponent)[0], [1, 0, 0])
    of_base, of_exponent = run_gradient("Pow2", base, exponent)
    np.testing.assert_array_equal(of_base, [0, 1, 0])
    np.testing.assert_array_equal(of_exponent, [0, 0, 0])


def test_integers_have_the_remainder_of_the_divisor_unless_fmod() -> None:
    x0, x1 = np.array([5, -5, 5, -5]), np.array([3, 3, -3, -3])
    for fmod, expected in ((False, [2, 1, -1, -2]), (True, [2, -2, 2, -2])):
        (y,) = run("Mod2", x0, x1, fmod=fmod)
        assert y.dtype == np.int64
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(run("Mod2", x0 * 1.0, x1 * 1.0, fmod=fmod)[0], [2, -2, 2, -2])


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "int64"])
def test_bit_shift_moves_bits_within_the_dtype(dtype: str) -> None:
    x, shift = np.array([5, 64, 200, 1], dtype=dtype), np.array([1, 2, 1, 0], dtype=dtype)
    left, right = run("BitShift", x, shift)[0], run("BitShift", x, shift, direction="RIGHT")[0]
    assert left.dtype == right.dtype == dtype
    np.testing.assert_array_equal(left, [10, 0, 144, 1] if dtype == "uint8" else [10, 256, 400, 1])
    np.testing.assert_array_equal(right, [2, 16, 100, 1])


def test_bit_shift_refuses_floating_inputs() -> None:
    with pytest.raises(DTypeError, match="bit_shift: shift must hold integers, got float32"):
        run("BitShift", np.array([1]), np.array([1], np.float32))
    with pytest.raises(DTypeError, match="bit_shift: x must hold integers, got float64"):
        run("BitShift", np.array([1.0]), np.array([1]))


@pytest.mark.parametrize("n_inputs", [1, 2, 4])
def test_sums_and_products_of_many(n_inputs: int) -> None:
    x = [RNG.uniform(0.5, 2, size=(2, 3)) for _ in range(n_inputs)]
    for name, truth in (("AddN", sum), ("MulN", math.prod)):
        check_forward(name, x, lambda *values, truth=truth: truth(values))
        check_gradient(name, x)


def test_product_gradient_is_exact_at_zeros() -> None:
    check_gradient("MulN", [np.array([0.0, 0.0, 2.0]), np.array([3.0, 0.0, 4.0]), np.array([5.0, 6.0, 0.0])])


def test_half_precision_sums_do_not_overflow_on_the_way() -> None:
    x = np.array([60000.0], np.float16)
    np.testing.assert_array_equal(run("AddN", x, x, -x)[0], x)


@pytest.mark.parametrize("name", ["AddN", "MulN"])
def test_many_inputs_have_one_shape(name: str) -> None:
    spec_of(name)
    with pytest.raises(ShapeError, match=r"same shape, and there must be one, got \(2,\) and \(1,\)"):
        SHAPE_RULES[name]((2,), (1,))
    with pytest.raises(ShapeError, match="got none"):
        SHAPE_RULES[name]()


SCALAR: list[tuple[str, Any, float]] = [
    ("AddScalar", lambda x, val: x + val, 1.5),
    ("MulScalar", lambda x, val: x * val, -1.5),
    ("PowScalar", lambda x, val: x**val, 2),
    ("PowScalar", lambda x, val: x**val, 1),
    ("PowScalar", lambda x, val: x**val, 0),
    ("PowScalar", lambda x, val: x**val, -3),
    ("RSubScalar", lambda x, val: val - x, 1.5),
    ("RDivScalar", lambda x, val: val / x, 1.5),
    ("RPowScalar", lambda x, val: val**x, 1.5),
    ("RPowScalar", lambda x, val: val**x, 1),
    ("MinimumScalar", np.minimum, 0.5),
    ("MaximumScalar", np.maximum, 0.5),
]


@pytest.mark.parametrize(("name", "truth", "val"), SCALAR, ids=[f"{row[0]}-{row[2]}" for row in SCALAR])
def test_functions_of_an_array_and_a_number(name: str, truth: Any, val: float) -> None:
    check_forward(name, [SIGNED], lambda x: truth(x, val), val=val)
    check_forward(name, [SIGNED[0, 0]], lambda x: truth(x, val), val=val)
    check_gradient(name, [SIGNED], val=val, rtol=1e-4)


def test_defaults_of_numbers() -> None:
    assert [spec_of(name).arg("val").default for name in ("AddScalar", "MulScalar", "EqualScalar", "ResetNaN")] == [
        1.0,
        1.0,
        1.0,
        0.0,
    ]


def test_fractional_power() -> None:
    x = between(0.1, 3)
    check_forward("PowScalar", [x], np.sqrt, val=0.5)
    check_gradient("PowScalar", [x], val=0.5)


def test_gradient_at_the_limit_is_zero() -> None:
    x = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(run_gradient("MinimumScalar", x)[0], [1, 0, 0])
    np.testing.assert_array_equal(run_gradient("MaximumScalar", x)[0], [0, 0, 1])


def test_bases_that_are_not_positive() -> None:
    x = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(run("RPowScalar", x, val=0.0)[0], [1, 0, 0])
    np.testing.assert_array_equal(run_gradient("RPowScalar", x, val=0.0)[0], [0, 0, 0])
    assert np.isnan(run_gradient("RPowScalar", x, val=-2.0)[0]).all()


COMPARISONS = [
    ("Equal", np.equal),
    ("NotEqual", np.not_equal),
    ("Greater", np.greater),
    ("GreaterEqual", np.greater_equal),
    ("Less", np.less),
    ("LessEqual", np.less_equal),
]


@pytest.mark.parametrize(("name", "truth"), COMPARISONS, ids=[row[0] for row in COMPARISONS])
def test_comparisons_give_zero_and_one_in_the_floating_dtype(name: str, truth: Any) -> None:
    x0 = np.array([[-1.0], [0.0], [NAN], [INF]])
    x1 = np.array([-1.0, 0.0, 2.0, INF, NAN])
    check_forward(name, [x0, x1], lambda a, b: truth(a, b).astype(float))
    check_forward(name + "Scalar", [x1], lambda x: truth(x, -1.0).astype(float), val=-1.0)
    assert run(name, x0.astype(np.float16), x1.astype(np.float16))[0].dtype == np.float16
    assert not spec_of(name).differentiable
    assert not spec_of(name + "Scalar").differentiable


LOGIC = [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)]


@pytest.mark.parametrize(("name", "truth"), LOGIC, ids=[row[0] for row in LOGIC])
def test_logic_takes_everything_but_zero_as_true(name: str, truth: Any) -> None:
    x0 = np.array([[0.0], [1.0], [-3.0], [NAN]])
    x1 = np.array([0.0, 1.0, 1e-3])
    check_forward(f"Logical{name}", [x0, x1], lambda a, b: truth(a != 0, b != 0).astype(float))
    for val in (False, True):
        check_forward(f"Logical{name}Scalar", [x0], lambda x, val=val: truth(x != 0, val).astype(float), val=val)


PREDICATES = [
    ("LogicalNot", lambda x: x == 0),
    ("IsNaN", np.isnan),
    ("IsInf", np.isinf),
]


@pytest.mark.parametrize(("name", "truth"), PREDICATES, ids=[row[0] for row in PREDICATES])
def test_predicates(name: str, truth: Any) -> None:
    check_forward(name, [SPECIAL], lambda x: truth(x).astype(float))


def test_special_values_are_replaced_and_stop_the_gradient() -> None:
    check_forward("ResetNaN", [SPECIAL], np.array([0, -1, 2, INF, -INF, 3.0]), val=3)
    check_forward("ResetInf", [SPECIAL], np.array([0, -1, 2, 3.0, 3.0, NAN]), val=3)
    np.testing.assert_array_equal(run_gradient("ResetNaN", SPECIAL)[0], [1, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(run_gradient("ResetInf", SPECIAL)[0], [1, 1, 1, 0, 0, 1])


@pytest.mark.parametrize("shape", [(), (2,), (2, 3), (2, 3, 4)])
def test_where_aligns_the_condition_with_the_leading_axes(shape: tuple[int, ...]) -> None:
    condition = np.asarray(RNG.choice([0.0, 1.0, -2.0], size=shape))
    x_true, x_false = RNG.normal(size=(2, 2, 3, 4))

    def truth(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(condition.reshape(shape + (1,) * (3 - len(shape))) != 0, a, b)

    check_forward("Where", [condition, x_true, x_false], truth)
    check_forward("Where", [condition.astype(int), x_true, x_false], truth)
    check_gradient("Where", [condition, x_true, x_false])


def test_where_keeps_what_is_not_chosen_out_of_the_gradient() -> None:
    _, of_true, of_false = run_gradient("Where", np.array([1.0, 0.0]), np.ones(2), np.ones(2), grads=[np.array([INF, NAN])])
    np.testing.assert_array_equal(of_true, [INF, 0])
    np.testing.assert_array_equal(of_false, [0, NAN])


SHAPE_ERRORS = [
    ("Where", ((2,), (2, 3), (3,)), r"x_true and x_false must have the same shape, got \(2, 3\) and \(3,\)"),
    ("Where", ((3,), (2, 3), (2, 3)), r"x_true must start with the shape of condition, got \(2, 3\) and \(3,\)"),
    ("ClipGradByValue", ((2,), (2, 2), ()), r"min must broadcast to the shape of x, got \(2, 2\) and \(2,\)"),
    ("ClipGradByValue", ((2,), (2,), (3, 2)), r"max must broadcast to the shape of x, got \(3, 2\) and \(2,\)"),
]


@pytest.mark.parametrize(("name", "shapes", "message"), SHAPE_ERRORS)
def test_shapes_are_checked(name: str, shapes: tuple, message: str) -> None:
    spec_of(name)
    with pytest.raises(ShapeError, match=message) as caught:
        SHAPE_RULES[name](*shapes)
    assert isinstance(caught.value, NNCoreError)


def test_gradients_are_clipped_by_value() -> None:
    x, dy = np.zeros(4), np.array([-3.0, -0.2, 0.3, 5.0])
    low, high = np.full(4, -0.5), np.array([1.0, 1.0, 0.1, 1.0])
    check_forward("ClipGradByValue", [SIGNED, np.array(-1.0), np.ones(4)], lambda x, low, high: x)
    gradients = run_gradient("ClipGradByValue", x, low, high, grads=[dy])
    np.testing.assert_array_equal(gradients[0], [-0.5, -0.2, 0.1, 1.0])
    assert gradients[1:] == (None, None)


def test_gradients_are_scaled_to_a_norm() -> None:
    dy = RNG.normal(size=(2, 3))
    check_forward("ClipGradByNorm", [SIGNED], lambda x: x)
    whole = run_gradient("ClipGradByNorm", np.zeros((2, 3)), grads=[dy], clip_norm=2.0)[0]
    np.testing.assert_allclose(whole, 2 * dy / np.linalg.norm(dy))
    rows = run_gradient("ClipGradByNorm", np.zeros((2, 3)), grads=[dy], axes=(1,))[0]
    np.testing.assert_allclose(rows, dy / np.linalg.norm(dy, axis=1, keepdims=True))
    np.testing.assert_array_equal(run_gradient("ClipGradByNorm", np.zeros(2), grads=[np.zeros(2)])[0], [0, 0])


def test_absolute_value_has_gradient_one_at_zero() -> None:
    np.testing.assert_array_equal(run_gradient("Abs", np.array([-1.0, 0.0, 1.0]))[0], [-1, 1, 1])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("x0", [[3, 5], [True, False], [0.5, -2.5]])
@pytest.mark.parametrize("x1", [[2, 3], [True, True], [0.7, 1.5]])
def test_remainders_of_integers_and_floats_are_floats(x0: Any, x1: Any, dynamic: bool) -> None:
    with nn.auto_forward(dynamic):
        y = F.mod2(nn.Variable.from_numpy_array(np.array(x0)), nn.Variable.from_numpy_array(np.array(x1)))
        if not dynamic:
            y.forward()
    floating = "f" in (np.array(x0).dtype.kind, np.array(x1).dtype.kind)
    np.testing.assert_allclose(y.d, np.fmod(np.float64(x0), np.float64(x1)), rtol=1e-5, atol=1e-6)
    assert (y.d.dtype == np.float32) is floating
