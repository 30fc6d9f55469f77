"""Sums of products over named axes: copies that bring axes into order, and matrix products.

Two operands at a time are a stack of matrices: axes of both that are kept count the matrices, those of one operand only are
rows or columns, and those of both that are summed are what the matrices share.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Any, Final

from numpy.lib.stride_tricks import as_strided

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.copies import Copies
from nn_ext_cuda.codegen.describe import forward_arrays
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES, refuse_dtypes
from nn_ext_cuda.gemm.blas import Matrix
from nn_ext_cuda.gemm.precision import is_tf32_allowed
from nn_ext_cuda.gemm.product import Product
from nn_ext_cuda.launch.program import Chain
from nn_ext_cuda.memory.workspace import with_workspace

#: Dtypes in which nothing is rounded between one product and the next.
_WIDE: Final = ("float32", "float64")


@dataclass(frozen=True, slots=True)
class Factor:
    """An array with a letter for each axis; a letter twice stands for the diagonal, length 1 may be broadcast."""

    place: int
    shape: Shape
    letters: str


class Einsum:
    """Products from left to right; the gradients are such sums too, by the rule."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, arrays without elements or very large ones, and several steps in 16 bits."""
        if any(desc is not None and desc.size == 0 for desc in call.inputs):
            return Refusal("takes arrays with at least one element")
        refusal = refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)
        if refusal is None and call.dtype not in _WIDE and _Contraction(call).n_steps() > 1:
            return Refusal(f"takes more than one sum in {' and '.join(_WIDE)} only, got {call.dtype}")
        return refusal

    def forward(self, call: Call) -> Runner:
        """Return the copies, sums and products."""
        return _Contraction(call).runner()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


class _Contraction:
    """The runners of a call in order, over its arrays and those for intermediate values."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._descs = forward_arrays(call)
        self._n_arrays = len(self._descs)
        self._runners: list[Any] = []
        self._n_sums = 0
        self._factors, self._output = factors_of(call)
        self._lengths: dict[str, int] = {}
        for factor in self._factors:
            for letter, length in zip(factor.letters, factor.shape, strict=True):
                self._lengths[letter] = max(length, self._lengths.get(letter, 1))

    def n_steps(self) -> int:
        """Return how many sums or products follow each other."""
        self.runner()
        return self._n_sums

    def runner(self) -> Runner:
        """All of it; the output is the last array of the call."""
        factors, target = list(self._factors), self._n_arrays - 1
        while len(factors) > 2:
            first, second, *rest = factors
            later = "".join(factor.letters for factor in rest) + self._output
            factors = [self._multiply(first, second, _unique(first.letters + second.letters, within=later)), *rest]
        if len(factors) == 2:
            self._multiply(factors[0], factors[1], self._output, target)
        else:
            self._sum(factors[0], self._output, target)
        n_bytes = [_present(desc).size * ITEM_BYTES[self._call.dtype] for desc in self._descs[self._n_arrays :]]
        whole = Chain(self._runners)
        return with_workspace(whole, self._n_arrays, n_bytes) if n_bytes else whole

    def _multiply(self, first: Factor, second: Factor, kept: str, target: int | None = None) -> Factor:
        """Return the product of two factors over their letters that are not kept, at `target` in the order of `kept`."""
        first, second = self._narrowed(first), self._narrowed(second)
        first = self._sum(first, _unique(first.letters, within=second.letters + kept))
        second = self._sum(second, _unique(second.letters, within=first.letters + kept))
        stack = _unique(kept, within=first.letters, also=second.letters)
        rows, columns = (_unique(kept, within=own, without=stack) for own in (first.letters, second.letters))
        shared = _unique(first.letters, within=second.letters, without=kept)
        letters = stack + rows + columns
        is_final = target is not None and letters == kept
        place = target if is_final and target is not None else self._scratch(letters)
        matrices = self._matrix(first, stack, rows, shared), self._matrix(second, stack, shared, columns)
        result = Matrix(place, self._size(columns), self._size(rows + columns))
        sizes = self._size(rows), self._size(columns), self._size(shared)
        self._runners.append(Product(*matrices, result, sizes, self._call.dtype, self._size(stack), is_tf32_allowed()))
        self._n_sums += 1
        made = Factor(place, self._shape(letters), letters)
        return made if is_final or target is None else self._copied(made, kept, target)

    def _sum(self, factor: Factor, kept: str, target: int | None = None) -> Factor:
        """Return a factor summed over the letters that are not kept, at `target` in the order of `kept`."""
        factor = self._narrowed(factor)
        summed = _unique(factor.letters, without=kept)
        if not summed:
            return factor if target is None else self._copied(factor, kept, target)
        if factor.letters != kept + summed:
            factor = self._copied(factor, kept + summed)
        place = self._scratch(kept) if target is None else target
        shape = (*self._shape(kept), *(1,) * len(summed))
        descs: list[ArrayDesc | None] = [None] * len(self._descs)
        descs[factor.place], descs[place] = ArrayDesc(factor.shape, self._call.dtype), ArrayDesc(shape, self._call.dtype)
        names = [{factor.place: "terms", place: "total"}.get(k, f"array_{k}") for k in range(len(descs))]
        composition = Composition(self._call, descs, names, factor.shape, {"total": shape})
        composition.reduce("einsum_sum", "total", "terms")
        self._runners.append(composition.program())
        self._n_sums += 1
        return Factor(place, self._shape(kept), kept)

    def _matrix(self, factor: Factor, stack: str, rows: str, columns: str) -> Matrix:
        """Return a factor as a stack of matrices, copied where its axes are in another order."""
        step = self._size(rows + columns)
        if factor.letters == stack + columns + rows and factor.letters != stack + rows + columns:
            return Matrix(factor.place, self._size(rows), step, transposed=True)
        if factor.letters != stack + rows + columns:
            factor = self._copied(factor, stack + rows + columns)
        return Matrix(factor.place, self._size(columns), step)

    def _copied(self, factor: Factor, letters: str, target: int | None = None) -> Factor:
        """Return a factor in the order of `letters`, broadcast along those that it does not have."""
        place = self._scratch(letters) if target is None else target
        copies = Copies(self._descs)
        whole = copies.view(factor.place).reshape(factor.shape)
        own = _unique(factor.letters)
        strides = [
            sum(stride for stride, letter in zip(whole.strides, factor.letters, strict=True) if letter == each) for each in own
        ]
        read = as_strided(whole, self._shape(own), strides, writeable=False)
        present = [letter for letter in letters if letter in own]
        read = read.transpose([own.index(letter) for letter in present])
        read = read[tuple(slice(None) if letter in own else None for letter in letters)]
        copies.copy(factor.place, read, place, copies.view(place).reshape(self._shape(letters)))
        self._runners.append(copies.program())
        return Factor(place, self._shape(letters), letters)

    def _narrowed(self, factor: Factor) -> Factor:
        """Return a factor without the axes of length 1 that are broadcast."""
        kept = [(n, own) for n, own in zip(factor.shape, factor.letters, strict=True) if n == self._lengths[own]]
        return Factor(factor.place, tuple(n for n, _ in kept), "".join(own for _, own in kept))

    def _scratch(self, letters: str) -> int:
        self._descs.append(ArrayDesc(self._shape(letters), self._call.dtype))
        return len(self._descs) - 1

    def _shape(self, letters: str) -> Shape:
        return tuple(self._lengths[letter] for letter in letters)

    def _size(self, letters: str) -> int:
        return math.prod(self._shape(letters))


def factors_of(call: Call) -> tuple[list[Factor], str]:
    """Return the operands of an equation and the letters of its output; the axes of an ellipsis have letters of their own."""
    equation = str(call.args["equation"]).replace(" ", "")
    left, arrow, right = equation.partition("->")
    shapes = [_present(desc).shape for desc in call.inputs]
    covered = [len(shape) - len(term.replace("...", "")) for term, shape in zip(left.split(","), shapes, strict=True)]
    own = "".join(letter for letter in ascii_letters if letter not in equation)[: max(covered)]
    terms = [term.replace("...", own[len(own) - n :]) for term, n in zip(left.split(","), covered, strict=True)]
    letters = "".join(terms)
    once = "".join(sorted(letter for letter in set(letters) - set(own) if letters.count(letter) == 1))
    factors = [Factor(place, shape, term) for place, (shape, term) in enumerate(zip(shapes, terms, strict=True))]
    return factors, right.replace("...", own) if arrow else own + once


def _unique(letters: str, *, within: str | None = None, also: str | None = None, without: str = "") -> str:
    """Return the different letters in their order, those of `within` and `also`, and none of `without`."""
    allowed = [set(group) for group in (within, also) if group is not None]
    return "".join(dict.fromkeys(each for each in letters if all(each in group for group in allowed) and each not in without))


def _present(desc: ArrayDesc | None) -> ArrayDesc:
    assert desc is not None
    return desc


CONTRACTION: Final[Mapping[str, Kernel]] = {"Einsum": Einsum()}
