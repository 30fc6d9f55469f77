"""Contractions that become products of stacked matrices, with copies where the memory layout differs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cpu import _native
from nn_ext_cpu.copies import Copies
from nn_ext_cpu.describe import FLOAT, backward_arrays, forward_arrays, refuse_dtypes, reshaped

#: Gradients of shared matrices are sums over copies of at most this many elements.
_MOST_ELEMENTS: Final = 1 << 26


class Stack(NamedTuple):
    """Matrices (batch, rows, columns) at the place of an array, perhaps stored by columns."""

    place: int
    shape: Shape
    by_columns: bool = False


class Steps:
    """Collects operations on the arrays of a call and on working memory."""

    def __init__(self, given: Sequence[ArrayDesc | None]) -> None:
        self._arrays = list(given)
        self._n_given = len(given)
        self._made: list[Any] = []

    def working(self, shape: Shape) -> int:
        """Return the place of an array for a result in between."""
        self._arrays.append(ArrayDesc(shape, FLOAT))
        return len(self._arrays) - 1

    def copy(self, source: int, axes: Sequence[int] | None, target: int) -> None:
        """Copy an array with its axes in another order, or with broadcasting."""

        def make(arrays: Sequence[ArrayDesc | None]) -> Any:
            copies = Copies(arrays)
            read = copies.view(source)
            copies.copy(source, read if axes is None else read.transpose(axes), target, copies.view(target))
            return copies.prepared()

        self._made.append(make)

    def multiply(self, a: Stack, b: Stack, y: Stack) -> None:
        """y = a b, with the shapes of the matrices themselves."""

        def make(arrays: Sequence[ArrayDesc | None]) -> Any:
            views = []
            for stack in (a, b, y):
                batch, rows, columns = stack.shape
                views.append(reshaped(arrays[stack.place], (batch, columns, rows) if stack.by_columns else stack.shape))
            settings = {"transpose_a": a.by_columns, "transpose_b": b.by_columns}
            places = [a.place, b.place, y.place]
            return _native.prepare("batch_matmul", arrays, views=views, places=places, **settings)

        self._made.append(make)

    def sum(self, source: int, target: int, shape: Shape) -> None:
        """Add an array up into one that is seen under `shape`, of length 1 along the axes that disappear."""

        def make(arrays: Sequence[ArrayDesc | None]) -> Any:
            views = [arrays[source], reshaped(arrays[target], shape)]
            return _native.prepare("pointwise", arrays, views=views, places=[source, target], program=[("copy", 1, [0], [])])

        self._made.append(make)

    def prepared(self) -> Runner:
        """All operations as one."""
        runner: Runner = _native.chain([make(self._arrays) for make in self._made], len(self._arrays) - self._n_given)
        return runner


class Einsum:
    """Sums of products of two arrays over the axes that both have and the result has not."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse other dtypes than float32, and what is no product of stacked matrices."""
        descs = [desc for desc in forward_arrays(call) if desc is not None]
        if len(call.inputs) != 2 or "." in str(call.args["equation"]):
            return Refusal(f"takes two arrays without an ellipsis, got {call.args['equation']}")
        if any(desc.dtype != FLOAT or desc.size == 0 for desc in descs):
            return Refusal(f"takes {FLOAT} arrays with at least one element")
        return _refuse_terms(call, descs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the contraction."""
        steps, terms = Steps(forward_arrays(call)), _terms(call)
        _contract(steps, _lengths(call, terms[:2]), (0, 1, 2), terms)
        return steps.prepared()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradients, which contract dy with the other array."""
        steps, terms = Steps(backward_arrays(call, wanted)), _terms(call)
        a, b, y = terms
        lengths = _lengths(call, (a, b))
        # the arrays are a, b, y, which is not read, dy, da, db
        for position, others in enumerate(((y, b, a), (y, a, b))):
            if wanted[position]:
                _contract(steps, lengths, (3, 1 - position, 4 + position), others)
        return steps.prepared()


def _contract(steps: Steps, lengths: Mapping[str, int], places: Sequence[int], terms: tuple[str, str, str]) -> None:
    """Bring both arrays into the order of stacked matrices, multiply, and bring the result into its order."""
    a, b, y = terms
    batch, rows, columns, summed = _groups(a, b, y)

    def stack(place: int, term: str, first: str, second: str) -> Stack:
        shape = tuple(math.prod(lengths[letter] for letter in group) for group in (batch, first, second))
        if term in (batch + first + second, batch + second + first):
            return Stack(place, shape, term != batch + first + second)
        order = batch + first + second
        made = steps.working(tuple(lengths[letter] for letter in order))
        steps.copy(place, [term.index(letter) for letter in order], made)
        return Stack(made, shape)

    left, right = stack(places[0], a, rows, summed), stack(places[1], b, summed, columns)
    shape = (left.shape[0], left.shape[1], right.shape[2])
    if y == batch + rows + columns:
        steps.multiply(left, right, Stack(places[2], shape))
    elif y == batch + columns + rows:
        steps.multiply(_turned(right), _turned(left), Stack(places[2], (shape[0], shape[2], shape[1])))
    else:
        order = batch + rows + columns
        made = steps.working(tuple(lengths[letter] for letter in order))
        steps.multiply(left, right, Stack(made, shape))
        steps.copy(made, [order.index(letter) for letter in y], places[2])


def _groups(a: str, b: str, y: str) -> tuple[str, str, str, str]:
    """Return the letters that count matrices, those of rows, of columns, and those that are summed."""
    return (
        "".join(letter for letter in y if letter in a and letter in b),
        "".join(letter for letter in y if letter not in b),
        "".join(letter for letter in y if letter not in a),
        "".join(letter for letter in a if letter not in y),
    )


def _refuse_terms(call: Call, descs: Sequence[ArrayDesc]) -> Refusal | None:
    """Refuse diagonals, axes of one array that are summed, and axes that are broadcast."""
    a, b, y = _terms(call)
    if any(len(set(term)) < len(term) for term in (a, b)):
        return Refusal(f"takes each letter once in a term, got {call.args['equation']}")
    if (set(a) ^ set(b)) - set(y):
        return Refusal(f"sums over axes that both arrays have, got {call.args['equation']}")
    lengths = _lengths(call, (a, b))
    if any(desc.shape != tuple(lengths[letter] for letter in term) for term, desc in zip((a, b), descs, strict=False)):
        return Refusal(f"takes equal lengths of an axis, got {descs[0].shape} and {descs[1].shape}")
    return None


def _lengths(call: Call, terms: Sequence[str]) -> dict[str, int]:
    """Return the length of the axis of each letter."""
    lengths: dict[str, int] = {}
    for term, desc in zip(terms, call.inputs, strict=True):
        assert desc is not None
        lengths.update(zip(term, desc.shape, strict=True))
    return lengths


def _terms(call: Call) -> tuple[str, str, str]:
    """Return the letters of both arrays and of the result."""
    left, arrow, right = str(call.args["equation"]).replace(" ", "").partition("->")
    a, _, b = left.partition(",")
    return a, b, right if arrow else "".join(sorted(set(a) ^ set(b)))


class BroadcastMatmul:
    """Products of stacked matrices some of which are shared: copies of them are multiplied, gradients added up."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse other dtypes than float32."""
        if any(desc is not None and desc.dtype != FLOAT for desc in forward_arrays(call)):
            return Refusal(f"shares matrices of {FLOAT} along some axes, got another dtype")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the copies and the product."""
        steps = Steps(forward_arrays(call))
        a, b = (self._expanded(call, steps, position, position) for position in (0, 1))
        steps.multiply(a, b, self._result(call, 2))
        return steps.prepared()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare da = dy b^T and db = a^T dy, summed where a matrix is shared; None where copies would be too large."""
        arrays = backward_arrays(call, wanted)
        steps, batch = Steps(arrays), math.prod(call.outputs[0].shape[:-2])
        dy = self._result(call, 3)
        for position in (0, 1):
            desc = call.inputs[position]
            assert desc is not None
            if not wanted[position]:
                continue
            own = Stack(4 + position, (batch, *_matrix(call, position)), self._by_columns(call, position))
            is_shared = math.prod(desc.shape[:-2]) != batch
            if is_shared and batch * math.prod(desc.shape[-2:]) > _MOST_ELEMENTS:
                return None
            full = (*call.outputs[0].shape[:-2], *desc.shape[-2:])
            target = own._replace(place=steps.working(full)) if is_shared else own
            other = self._expanded(call, steps, 1 - position, 1 - position)
            if position == 0:
                self._multiply(steps, dy, _turned(other), target)
            else:
                self._multiply(steps, _turned(other), dy, target)
            if is_shared:
                kept = (*(1,) * (len(full) - len(desc.shape)), *desc.shape)
                steps.sum(target.place, own.place, kept)
        return steps.prepared()

    @staticmethod
    def _multiply(steps: Steps, a: Stack, b: Stack, y: Stack) -> None:
        """Also into matrices that are stored by columns: y^T = b^T a^T."""
        if y.by_columns:
            steps.multiply(_turned(b), _turned(a), _turned(y))
        else:
            steps.multiply(a, b, y)

    @staticmethod
    def _by_columns(call: Call, position: int) -> bool:
        return bool(call.args[("transpose_a", "transpose_b")[position]])

    def _expanded(self, call: Call, steps: Steps, position: int, place: int) -> Stack:
        """Return an operand with a matrix for each product."""
        desc, batch_axes = call.inputs[position], call.outputs[0].shape[:-2]
        assert desc is not None
        shape, by_columns = _matrix(call, position), self._by_columns(call, position)
        if math.prod(desc.shape[:-2]) in (1, math.prod(batch_axes)):
            return Stack(place, (math.prod(desc.shape[:-2]), *shape), by_columns)
        made = steps.working((*batch_axes, *desc.shape[-2:]))
        steps.copy(place, None, made)
        return Stack(made, (math.prod(batch_axes), *shape), by_columns)

    @staticmethod
    def _result(call: Call, place: int) -> Stack:
        y = call.outputs[0].shape
        return Stack(place, (math.prod(y[:-2]), *y[-2:]))


def _matrix(call: Call, position: int) -> Shape:
    """Return the shape of a matrix of an operand, as it is multiplied."""
    desc = call.inputs[position]
    assert desc is not None
    return desc.shape[:-3:-1] if BroadcastMatmul._by_columns(call, position) else desc.shape[-2:]


def _turned(stack: Stack) -> Stack:
    """Return the transposed matrices in the same memory."""
    batch, rows, columns = stack.shape
    return Stack(stack.place, (batch, columns, rows), not stack.by_columns)


CONTRACTION: Final[Mapping[str, Kernel]] = {"Einsum": Einsum()}
