"""Shape and gradient rules of matrix products and of small dense linear algebra.

The gradients of decompositions are those of Giles (2008), "Collected matrix derivative results".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_letters
from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.broadcasting import broadcast_shapes, unbroadcast
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape


@shape_rule("Affine")
def affine_shape(x: Shape, weight: Shape, bias: Shape | None, *, base_axis: int) -> tuple[Shape, ...]:
    """Return the axes of x before `base_axis`, then those of weight after its first."""
    if len(weight) < 2:
        raise ShapeError(f"weight must have at least 2 axes, got {len(weight)}")
    features = prod(x[base_axis:])
    if weight[0] != features:
        hint = _base_axis_hint(x, weight[0])
        raise ShapeError(f"weight must have as many rows as x has features, got {weight[0]} and {features}{hint}")
    if bias is not None and bias != weight[1:]:
        raise ShapeError(f"bias must have the shape of weight without its first axis, got {bias} and {weight[1:]}")
    return ((*x[:base_axis], *weight[1:]),)


def _base_axis_hint(x: Shape, rows: int) -> str:
    fitting = [axis for axis in range(len(x)) if prod(x[axis:]) == rows]
    return f"\n  hint: base_axis={fitting[0]} would fit" if fitting else ""


@gradient("Affine", rounds_once=True)
def affine(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """dx = dy w^T, dw = x^T dy, db = the sum of dy over the rows, with x, dy and w as matrices."""
    n_inputs, *output = g.weight.shape
    n_rows = prod(g.x.shape[: g.base_axis])
    dy = F.reshape(g.grad, shape=(n_rows, prod(output)))
    dx = dw = db = None
    if g.wants("x"):
        weight = F.reshape(g.weight, shape=(n_inputs, prod(output)))
        dx = F.reshape(F.batch_matmul(dy, weight, transpose_b=True), shape=tuple(g.x.shape))
    if g.wants("weight"):
        x = F.reshape(g.x, shape=(n_rows, n_inputs))
        dw = F.reshape(F.batch_matmul(x, dy, transpose_a=True), shape=tuple(g.weight.shape))
    if g.wants("bias"):
        db = F.reshape(F.sum(dy, axes=(0,)), shape=tuple(g.bias.shape))
    return dx, dw, db


@shape_rule("BatchMatmul")
def batch_matmul_shape(a: Shape, b: Shape, *, transpose_a: bool, transpose_b: bool) -> tuple[Shape, ...]:
    """Leading axes broadcast, then rows of a and columns of b."""
    for name, shape in (("a", a), ("b", b)):
        if len(shape) < 2:
            raise ShapeError(f"{name} must have at least 2 axes, got {len(shape)}")
    n_rows, inner_a = a[-2:][::-1] if transpose_a else a[-2:]
    inner_b, n_columns = b[-2:][::-1] if transpose_b else b[-2:]
    if inner_a != inner_b:
        raise ShapeError(f"a must have as many columns as b has rows (after transposition), got {inner_a} and {inner_b}")
    return ((*broadcast_shapes(a[:-2], b[:-2]), n_rows, n_columns),)


@gradient("BatchMatmul", rounds_once=True)
def batch_matmul(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """da = dy b^T and db = a^T dy, transposed where the operand was, summed over stretched axes."""
    a, b, dy = g.a, g.b, g.grad
    da = db = None
    if g.wants("a"):
        if g.transpose_a:
            da = F.batch_matmul(b, dy, transpose_a=g.transpose_b, transpose_b=True)
        else:
            da = F.batch_matmul(dy, b, transpose_b=not g.transpose_b)
        da = unbroadcast(F, da, a.shape)
    if g.wants("b"):
        if g.transpose_b:
            db = F.batch_matmul(dy, a, transpose_a=True, transpose_b=g.transpose_a)
        else:
            db = F.batch_matmul(a, dy, transpose_a=not g.transpose_a)
        db = unbroadcast(F, db, b.shape)
    return da, db


@shape_rule("BatchDet", "BatchLogdet")
def determinant_shape(x: Shape) -> tuple[Shape, ...]:
    """Return the leading axes."""
    _check_square(x)
    return (x[:-2],)


@shape_rule("BatchInv", "BatchCholesky")
def square_matrix_shape(x: Shape, **_: Any) -> tuple[Shape, ...]:
    """Return the shape of x."""
    _check_square(x)
    return (x,)


def _check_square(x: Shape) -> None:
    if len(x) < 2 or x[-1] != x[-2]:
        raise ShapeError(f"the last two axes of x must be equal, got {x[-2:]}")


@gradient("BatchDet")
def batch_det(F: Any, g: GradientCall) -> Any:
    """dx = dy y x^-T (Jacobi)."""
    return _per_matrix(F, g.grad * g.y) * _transposed(F, F.batch_inv(g.x))


@gradient("BatchLogdet")
def batch_logdet(F: Any, g: GradientCall) -> Any:
    """dx = dy x^-T."""
    return _per_matrix(F, g.grad) * _transposed(F, F.batch_inv(g.x))


def _per_matrix(F: Any, scalars: Any) -> Any:
    return F.reshape(scalars, shape=(*scalars.shape, 1, 1))


def _transposed(F: Any, x: Any) -> Any:
    return F.transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@gradient("BatchInv")
def batch_inv(F: Any, g: GradientCall) -> Any:
    """dx = -y^T dy y^T."""
    return -F.batch_matmul(F.batch_matmul(g.y, g.grad, transpose_a=True), g.y, transpose_b=True)


@gradient("BatchCholesky")
def batch_cholesky(F: Any, g: GradientCall) -> Any:
    """Murray (2016), "Differentiation of the Cholesky decomposition", eq. 8 to 10."""
    lower, dy = (_transposed(F, g.y), _transposed(F, g.grad)) if g.upper else (g.y, g.grad)
    inverse = F.batch_inv(lower)
    product = F.batch_matmul(lower, F.trilu(dy, k=0, upper=False), transpose_a=True)
    half = (F.trilu(product, k=0, upper=False) + F.trilu(product, k=-1, upper=False)) * 0.5
    dx = F.batch_matmul(F.batch_matmul(inverse, half, transpose_a=True), inverse)
    return (dx + _transposed(F, dx)) * 0.5


@dataclass(frozen=True)
class _Contraction:
    """An equation of einsum with one letter for each axis: the axes of an ellipsis have letters of their own."""

    terms: tuple[str, ...]
    output: str
    lengths: Mapping[str, int]


@shape_rule("Einsum")
def einsum_shape(*x: Shape, equation: str) -> tuple[Shape, ...]:
    """Return the lengths of the axes that the equation names after the arrow."""
    contraction = _contraction(equation, x)
    return (tuple(contraction.lengths[letter] for letter in contraction.output),)


def _contraction(equation: str, shapes: Sequence[Shape]) -> _Contraction:
    left, arrow, right = equation.replace(" ", "").partition("->")
    given = left.split(",")
    if len(given) != len(shapes):
        raise ArgumentError(f"equation must have one term for each input, got {equation!r} for {len(shapes)}")
    _check_letters(equation, (*given, right))
    free = "".join(letter for letter in ascii_letters if letter not in equation)
    stretched = free[: max(_n_stretched(term, shape) for term, shape in zip(given, shapes, strict=True))]
    terms = tuple(
        term.replace("...", stretched[len(stretched) - _n_stretched(term, shape) :])
        for term, shape in zip(given, shapes, strict=True)
    )
    output = right.replace("...", stretched) if arrow else stretched + _once(terms, stretched)
    if len(set(output)) < len(output) or not set(output) <= set("".join(terms)):
        raise ArgumentError(f"each output axis of equation must be one input axis, got {equation!r}")
    if not set(stretched) <= set(output):
        raise ArgumentError(f"an ellipsis before '->' must be repeated after it, got {equation!r}")
    return _Contraction(terms, output, _lengths(terms, shapes, stretched))


def _check_letters(equation: str, terms: Iterable[str]) -> None:
    for term in terms:
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise ArgumentError(f"equation must be made of letters, '...', ',' and '->', got {equation!r}")


def _n_stretched(term: str, shape: Shape) -> int:
    """Return number of axes of `shape` that the ellipsis of `term` covers."""
    n_axes = len(shape) - len(term.replace("...", ""))
    if n_axes < 0 or (n_axes and "..." not in term):
        raise ShapeError(f"an input must have the axes of its term of equation, got {term!r} for {shape}")
    return n_axes


def _once(terms: Iterable[str], stretched: str) -> str:
    letters = "".join(terms)
    return "".join(sorted(letter for letter in set(letters) - set(stretched) if letters.count(letter) == 1))


def _lengths(terms: Sequence[str], shapes: Sequence[Shape], stretched: str) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, length in zip(term, shape, strict=True):
            known = lengths.setdefault(letter, length)
            if letter in stretched and 1 in (known, length):
                lengths[letter] = length if known == 1 else known
            elif known != length:
                raise ShapeError(f"axes of the same name must have equal lengths, got {known} and {length}")
    return lengths


@gradient("Einsum", rounds_once=True)
def einsum(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Return the gradient of each operand is a contraction of dy with the others.

    An axis that only this operand has is brought in by ones, a diagonal (a letter twice) by the identity matrix.
    """
    shapes = [tuple(operand.shape) for operand in g.x]
    contraction = _contraction(g.equation, shapes)
    operands, terms = [], []
    for operand, term, shape in zip(g.x, contraction.terms, shapes, strict=True):
        kept = [n for n, letter in enumerate(term) if shape[n] == contraction.lengths[letter]]
        terms.append("".join(term[n] for n in kept))
        stays = len(kept) == len(term)
        operands.append(operand if stays else F.reshape(operand, shape=tuple(shape[n] for n in kept)))
    gradients = []
    for position, shape in enumerate(shapes):
        others = [*operands[:position], *operands[position + 1 :]], [*terms[:position], *terms[position + 1 :]]
        dx = _operand_gradient(F, terms[position], g.grad, contraction, *others)
        gradients.append(dx if tuple(dx.shape) == shape else F.reshape(dx, shape=shape))
    return tuple(gradients)


def _operand_gradient(F: Any, term: str, dy: Any, contraction: _Contraction, operands: list[Any], terms: list[str]) -> Any:
    factors, names = [dy, *operands], [contraction.output, *terms]
    unused = (letter for letter in ascii_letters if letter not in contraction.lengths)
    target = ""
    for letter in term:
        twin = next(unused) if letter in target else letter
        target += twin
        if twin == letter and any(letter in name for name in names):
            continue
        ones = F.constant(val=1.0, shape=(contraction.lengths[letter],))
        factors.append(ones if twin == letter else F.matrix_diag(ones))
        names.append(letter if twin == letter else letter + twin)
    return F.einsum(*factors, equation=f"{','.join(names)}->{target}")
