"""Tests of the operators of the topic linear."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import SHAPE_RULES
from nn_core.testing.operators import check_forward, check_gradient, check_table, run, run_gradient

rng = np.random.default_rng(20)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def matrices(*shape: int) -> np.ndarray:
    """Well-conditioned square matrices."""
    return normal(*shape) + 3 * np.eye(shape[-1])


def positive(*shape: int) -> np.ndarray:
    """Symmetric positive definite matrices."""
    half = normal(*shape)
    return half @ half.swapaxes(-1, -2) + 2 * np.eye(shape[-1])


def test_table() -> None:
    check_table("linear")


AFFINE = [
    ((2, 3), (3, 4), (4,), 1),
    ((2, 3), (3, 4), None, 1),
    ((2, 3, 4), (12, 5), (5,), 1),
    ((2, 3, 4), (4, 5, 2), (5, 2), 2),
    ((2, 3, 4), (4, 5), (5,), -1),
    ((3, 2), (6, 4), (4,), 0),
    ((0, 3), (3, 4), (4,), 1),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "b_shape", "base_axis"), AFFINE)
def test_affine(x_shape: tuple, w_shape: tuple, b_shape: tuple | None, base_axis: int) -> None:
    inputs = [normal(*x_shape), normal(*w_shape), None if b_shape is None else normal(*b_shape)]

    def truth(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        axis = base_axis % x.ndim
        rows = x.reshape(int(np.prod(x.shape[:axis])), -1 if x.size else 3)
        y = np.einsum("nd,dk->nk", rows, weight.reshape(weight.shape[0], -1))
        y = y.reshape(*x.shape[:axis], *weight.shape[1:])
        return y if bias is None else y + bias

    check_forward("Affine", inputs, truth, base_axis=base_axis)
    check_gradient("Affine", inputs, base_axis=base_axis)


def test_affine_accumulates_half_precision_in_single() -> None:
    ones = np.ones((1, 4096), np.float16)
    (y,) = run("Affine", ones, np.full((4096, 1), 0.5, np.float16), None)
    assert y.dtype == np.float16
    assert y[0, 0] == 2048.0


@pytest.mark.parametrize(
    ("shapes", "base_axis", "message"),
    [
        (((2, 3), (4,), None), 1, "weight must have at least 2 axes, got 1"),
        (((2, 3, 4), (5, 6), None), 1, "weight must have as many rows as x has features, got 5 and 12$"),
        (((2, 3, 4), (4, 6), None), 1, "got 4 and 12\n  hint: base_axis=2 would fit"),
        (
            ((2, 3), (3, 6), (5,)),
            1,
            r"bias must have the shape of weight without its first axis, got \(5,\) and \(6,\)",
        ),
    ],
)
def test_affine_refuses_unfitting_shapes(shapes: tuple, base_axis: int, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        SHAPE_RULES["Affine"](*shapes, base_axis=base_axis)


MATMUL = [
    ((2, 3, 4), (2, 4, 5), False, False),
    ((2, 4, 3), (2, 4, 5), True, False),
    ((2, 3, 4), (2, 5, 4), False, True),
    ((2, 4, 3), (2, 5, 4), True, True),
    ((1, 3, 4), (2, 4, 5), False, False),
    ((2, 1, 3, 4), (1, 3, 4, 5), False, False),
    ((3, 4), (2, 4, 5), False, False),
    ((3, 4), (4, 5), False, False),
    ((0, 3, 4), (0, 4, 5), False, False),
    ((2, 3, 0), (2, 0, 5), False, False),
]


@pytest.mark.parametrize(("a_shape", "b_shape", "transpose_a", "transpose_b"), MATMUL)
def test_batch_matmul(a_shape: tuple, b_shape: tuple, transpose_a: bool, transpose_b: bool) -> None:
    inputs = [normal(*a_shape), normal(*b_shape)]
    args = {"transpose_a": transpose_a, "transpose_b": transpose_b}

    def truth(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a = a.swapaxes(-1, -2) if transpose_a else a
        b = b.swapaxes(-1, -2) if transpose_b else b
        return np.einsum("...ij,...jk->...ik", a, b)

    check_forward("BatchMatmul", inputs, truth, **args)
    check_gradient("BatchMatmul", inputs, **args)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3,), (3, 4)), "a must have at least 2 axes, got 1"),
        (((3, 4), (4,)), "b must have at least 2 axes, got 1"),
        (((2, 3, 4), (2, 5, 4)), "a must have as many columns as b has rows .*, got 4 and 5"),
        (((2, 3, 4), (3, 4, 5)), "input shapes must be equal or 1 on each axis"),
    ],
)
def test_batch_matmul_refuses_unfitting_shapes(shapes: tuple, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        SHAPE_RULES["BatchMatmul"](*shapes, transpose_a=False, transpose_b=False)


SQUARE = [(3, 3), (2, 3, 3), (2, 2, 1, 1), (0, 2, 2)]


@pytest.mark.parametrize("shape", SQUARE)
def test_batch_det(shape: tuple) -> None:
    x = matrices(*shape)
    check_forward("BatchDet", [x], lambda x: np.prod(np.linalg.eigvals(x), -1).real)
    check_gradient("BatchDet", [x])


@pytest.mark.parametrize("shape", SQUARE)
def test_batch_inv(shape: tuple) -> None:
    x = matrices(*shape)
    check_gradient("BatchInv", [x])
    (y,) = run("BatchInv", x)
    np.testing.assert_allclose(x @ y, np.broadcast_to(np.eye(shape[-1]), shape), atol=1e-12)
    check_forward("BatchInv", [x], np.linalg.inv, dtypes=("float32", "float16"), rtol=1e-8)


@pytest.mark.parametrize("shape", SQUARE)
def test_batch_logdet(shape: tuple) -> None:
    x = -matrices(*shape)
    check_forward("BatchLogdet", [x], lambda x: np.log(np.abs(np.linalg.eigvals(x))).sum(-1))
    check_gradient("BatchLogdet", [x])


def test_batch_logdet_does_not_underflow() -> None:
    (y,) = run("BatchLogdet", 1e-30 * np.eye(40, dtype=np.float32)[None])
    np.testing.assert_allclose(y, [40 * np.log(1e-30)], rtol=1e-6)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SQUARE)
def test_batch_cholesky(shape: tuple, upper: bool) -> None:
    x = positive(*shape)
    (y,) = run("BatchCholesky", x, upper=upper)
    np.testing.assert_array_equal(y, np.triu(y) if upper else np.tril(y))
    np.testing.assert_allclose(y.swapaxes(-1, -2) @ y if upper else y @ y.swapaxes(-1, -2), x, atol=1e-12)
    check_gradient("BatchCholesky", [x], upper=upper)
    (dx,) = run_gradient("BatchCholesky", x, upper=upper)
    np.testing.assert_array_equal(dx, dx.swapaxes(-1, -2))


@pytest.mark.parametrize("name", ["BatchDet", "BatchLogdet", "BatchInv", "BatchCholesky"])
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_decompositions_refuse_matrices_that_are_not_square(name: str, shape: tuple) -> None:
    with pytest.raises(ShapeError, match=r"the last two axes of x must be equal, got \(3"):
        SHAPE_RULES[name](shape)


def test_decompositions_refuse_matrices_outside_their_domain() -> None:
    with pytest.raises(ArgumentError, match="batch_inv: x must hold invertible matrices, got a singular one"):
        run("BatchInv", np.zeros((1, 2, 2)))
    with pytest.raises(ArgumentError, match="batch_cholesky: x must be positive definite, got another matrix"):
        run("BatchCholesky", -np.eye(2)[None])


EINSUM = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("bii", [(2, 3, 3)]),
    ("bii->bi", [(2, 3, 3)]),
    ("iii->i", [(3, 3, 3)]),
    ("...ij->...ji", [(2, 3, 4)]),
    ("i,...j", [(3,), (2, 4)]),
    ("...i,...i->...", [(2, 1, 3), (4, 3)]),
    ("b...i,...i->b...", [(2, 1, 3), (4, 3)]),
    (" ij , jk , kl -> il ", [(2, 3), (3, 4), (4, 2)]),
    ("ii,ij->j", [(3, 3), (3, 2)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,j->", [(3,), (2,)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
    (",i->i", [(), (3,)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EINSUM)
def test_einsum(equation: str, shapes: list) -> None:
    inputs = [normal(*shape) for shape in shapes]
    check_forward("Einsum", inputs, lambda *x: np.asarray(np.einsum(equation, *x)), equation=equation)
    check_gradient("Einsum", inputs, equation=equation)


def test_einsum_of_loops() -> None:
    a, b = normal(2, 3), normal(3, 4)
    expected = [[sum(a[i, j] * b[j, k] for j in range(3)) for i in range(2)] for k in range(4)]
    check_forward("Einsum", [a, b], np.array(expected), dtypes=("float64",), equation="ij,jk->ki")


@pytest.mark.parametrize(
    ("equation", "shapes", "error", "message"),
    [
        ("ij", [(2, 3), (3, 4)], ArgumentError, "equation must have one term for each input, got 'ij' for 2"),
        ("i1->i", [(2, 3)], ArgumentError, "equation must be made of letters, .*, got 'i1->i'"),
        ("ij->ik", [(2, 3)], ArgumentError, "each output axis of equation must be one input axis, got 'ij->ik'"),
        ("i->ii", [(2,)], ArgumentError, "each output axis of equation must be one input axis, got 'i->ii'"),
        ("...i->i", [(2, 3)], ArgumentError, "an ellipsis before '->' must be repeated after it"),
        (
            "ij",
            [(2, 3, 4)],
            ShapeError,
            r"an input must have the axes of its term of equation, got 'ij' for \(2, 3, 4\)",
        ),
        ("ij", [(2,)], ShapeError, r"an input must have the axes of its term of equation, got 'ij' for \(2,\)"),
        ("i,i->i", [(3,), (1,)], ShapeError, "axes of the same name must have equal lengths, got 3 and 1"),
        ("...,...->...", [(3,), (2,)], ShapeError, "axes of the same name must have equal lengths, got 3 and 2"),
    ],
)
def test_einsum_refuses(equation: str, shapes: list, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        SHAPE_RULES["Einsum"](*shapes, equation=equation)


def test_the_gradient_of_einsum_adds_only_what_it_uses() -> None:
    x, w = nn.Variable((2, 3), need_grad=True), nn.Variable((3, 4), need_grad=True)
    dy = nn.Variable((2, 4))
    names: list[str] = []
    for gradient in nn.grad([F.einsum(x, w, equation="ij,jk->ik")], [x, w], grad_outputs=[dy]):
        gradient.visit(lambda function: names.append(function.name))
    assert names == ["Einsum", "Einsum"]
