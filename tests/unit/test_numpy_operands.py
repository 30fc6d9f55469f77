"""NumPy arrays beside Variables and NdArrays in operators: constants that are copied when the operator is called."""

import operator

import ml_dtypes
import numpy as np
import pytest

import nn_core as nn
from nn_core import functions as F
from nn_core.errors import ArgumentError, DTypeError, ShapeError

A = np.float32([[0.5, 2.5, 1.5], [3.5, 1.25, 2.0]])
B = np.float32([[1.5, 0.5, 2.0], [3.5, 2.25, 0.75]])
OPERATORS = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "lt", "le", "gt", "ge", "matmul")
}
DIFFERENTIABLE = ("add", "sub", "mul", "truediv", "pow", "matmul")
KINDS = ("static", "dynamic", "array")


def made(kind, values, need_grad=False):
    """An operand of ours."""
    if kind == "array":
        return nn.NdArray.from_numpy_array(values)
    return nn.Variable.from_numpy_array(values, need_grad=need_grad)


def computed(kind, function, *operands):
    """The values that an operator gives, and its result."""
    with nn.auto_forward(kind == "dynamic"):
        result = function(*operands)
    assert type(result) is (nn.NdArray if kind == "array" else nn.Variable)
    if kind == "static":
        result.forward()
    return result.numpy()


def fitting(name, constant):
    """The constant in a shape that the operator takes beside one of shape (2, 3)."""
    return constant.T if name == "matmul" else constant


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_takes_an_array_on_either_side(name, kind):
    function, constant = OPERATORS[name], fitting(name, B)
    np.testing.assert_allclose(computed(kind, function, made(kind, A), constant), function(A, constant), rtol=1e-6)
    np.testing.assert_allclose(computed(kind, function, constant, made(kind, A)), function(constant, A), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [B[0], B[:, :1], B[None], np.float32(2.5), np.array(2.5), np.zeros((1, 1))])
def test_arrays_are_broadcast_as_in_numpy(constant, kind):
    for function in (operator.sub, operator.lt, operator.mod):
        with np.errstate(invalid="ignore", divide="ignore"):
            right, left = function(A, constant), function(constant, A)
        np.testing.assert_allclose(computed(kind, function, made(kind, A), constant), right, rtol=1e-6)
        np.testing.assert_allclose(computed(kind, function, constant, made(kind, A)), left, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_in_a_matrix_product(kind):
    np.testing.assert_allclose(computed(kind, operator.matmul, made(kind, A), B[0]), A @ B[0], rtol=1e-6)
    np.testing.assert_allclose(computed(kind, operator.matmul, B[:, 0], made(kind, A)), B[:, 0] @ A, rtol=1e-6)
    batch = np.stack([B.T, B.T + 1])
    np.testing.assert_allclose(computed(kind, operator.matmul, made(kind, A), batch), A @ batch, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_divmod(kind):
    with nn.auto_forward(True):
        for ours, numbers in ((divmod(made(kind, A), B), divmod(A, B)), (divmod(B, made(kind, A)), divmod(B, A))):
            for result, expected in zip(ours, numbers, strict=True):
                np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ("static", "dynamic"))
@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("side", ("left", "right"))
def test_the_gradient_of_the_variable(name, side, kind):
    function, constant = OPERATORS[name], fitting(name, B)
    call = (lambda v: function(v, constant)) if side == "right" else (lambda v: function(constant, v))
    with nn.auto_forward(kind == "dynamic"):
        x = made(kind, A, need_grad=True)
        x.grad.zero()
        loss = F.sum(call(x))
    if kind == "static":
        loss.forward()
    loss.backward()
    step = 1e-6
    for place in np.ndindex(A.shape):
        above, below = np.float64(A), np.float64(A)
        above[place] += step
        below[place] -= step
        slope = (np.sum(call(above)) - np.sum(call(below))) / (2 * step)
        assert x.g[place] == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_graph_holds_a_copy(name):
    constant = fitting(name, B).copy()
    x = made("static", A)
    results = OPERATORS[name](x, constant), OPERATORS[name](constant, x)
    expected = OPERATORS[name](A, constant), OPERATORS[name](constant, A)
    constant[...] = 77
    for result, values in zip(results, expected, strict=True):
        result.forward()
        np.testing.assert_allclose(result.d, values, rtol=1e-6)


@pytest.mark.parametrize("name", ("matmul", "mod", "floordiv"))
def test_a_graph_that_is_built_again_for_another_shape_holds_the_same_copy(name):
    constant = (B.T if name == "matmul" else B[0]).copy()
    expected_by = constant.copy()
    x = made("static", A)
    y = OPERATORS[name](x, constant)
    y.forward()
    constant[...] = 77
    x.reset_shape((4, 3), True)
    x.d = np.concatenate([A, B])
    y.forward()
    np.testing.assert_allclose(y.d, OPERATORS[name](x.d, expected_by), rtol=1e-6)


def test_a_dynamic_step_takes_the_array_of_that_step():
    with nn.auto_forward():
        for step in range(5):
            x = made("dynamic", A, need_grad=True)
            x.grad.zero()
            F.sum(x * np.full(3, step)).backward()
            assert (x.g == step).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.int64, np.uint8, np.bool_, ml_dtypes.bfloat16])
def test_arrays_of_every_dtype_of_numbers_give_the_number_type_of_the_context(dtype):
    values = np.array([1, 0, 1]).astype(dtype)
    for result in (made("array", A) * values, values * made("array", A)):
        assert result.dtype == np.float32
        assert (result.data == A * np.float32(values)).all()
    with nn.context_scope(nn.Context(["reference:half"])):
        assert (made("array", A) * values).dtype == np.float16


def test_in_place_operators_change_the_array_of_ours_and_refuse_the_other():
    array = made("array", A)
    same = array
    same += B
    same *= B[0]
    assert same is array
    np.testing.assert_allclose(array.data, (A + B) * B[0], rtol=1e-6)
    numbers = B.copy()
    numbers += made("array", A)
    np.testing.assert_allclose(numbers, A + B)
    with pytest.raises(ArgumentError, match=r"^numpy\.add: operands must be NumPy arrays or NdArrays, got a Variable"):
        numbers += made("static", A)
    with pytest.raises(ShapeError):
        array += np.ones((4, 2, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*OPERATORS, "divmod"])
def test_arrays_that_hold_no_real_numbers_are_refused(name, kind):
    function = OPERATORS.get(name, divmod)
    ours = made(kind, A)
    wrong = [np.array(["a"]), np.array([None]), np.array([1j]), np.array(["2026-01-01"], "M8[D]"), np.zeros(2, "i4,f4")]
    for constant in wrong:
        for operands in ((ours, constant), (constant, ours)):
            with pytest.raises(DTypeError, match=r"^\w+: values must be real numbers or booleans, got dtype "):
                function(*operands)
    masked = np.ma.masked_less(A, 1)
    with pytest.raises(ArgumentError, match=r"^\w+: values must have no masked elements, got 1 among 6\n  hint: .*filled"):
        function(ours, masked)  # NumPy itself computes where the masked array is on the left


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_operand_is_a_type_error(kind):
    for other in ("1", None, [1.0, 2.0], 1j):
        for call in (lambda v, o=other: v + o, lambda v, o=other: o + v, lambda v, o=other: v @ o, lambda v, o=other: v % o):
            with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
                call(made(kind, A))
    for call in (lambda v: v @ np.array(2.0), lambda v: v @ 2.0, lambda v: 2.0 @ v):
        with pytest.raises(TypeError):
            call(made(kind, A))


def test_shapes_that_do_not_fit_are_refused_as_with_variables():
    x = made("static", A)
    for call in (lambda: x + np.ones(4), lambda: np.ones(4) + x, lambda: x @ np.ones(2), lambda: np.ones(3) @ x):
        with pytest.raises(ShapeError, match=r"got|\(2, 3\)"):
            call()


def test_masked_and_structured_arrays_are_no_values():
    masked = np.ma.masked_less(A, 1)
    for call in (nn.Variable.from_numpy_array, nn.NdArray.from_numpy_array, lambda a: setattr(made("static", A), "d", a)):
        with pytest.raises(ArgumentError, match=r"values must have no masked elements, got 1 among 6\n  hint: .*filled"):
            call(masked)
        with pytest.raises(DTypeError, match="must be real numbers or booleans, got dtype"):
            call(np.zeros((2, 3), "i4,f4"))
    assert nn.Variable.from_numpy_array(np.ma.array(A)).shape == A.shape
