"""Extremes, products, norms and running results along axes."""

import math
from collections.abc import Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cpu import _native
from nn_ext_cpu.copies import Copies
from nn_ext_cpu.describe import FLOAT, backward_arrays, blocks_around, forward_arrays, refuse_dtypes, reshaped
from nn_ext_cpu.pointwise import compile_program


class _Along:
    """The common part of the native operations: they see arrays as (A, C, B) around neighbouring axes."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, arrays without elements, and axes that are no neighbours."""
        (x,) = call.inputs
        if x is not None and x.size == 0:
            return Refusal("takes arrays with at least one element")
        blocks = self._taken_blocks(call)
        if blocks is None:
            return Refusal(f"takes neighbouring axes, got {tuple(_axes(call))}")
        if blocks[1] >= 2**31:
            return Refusal(f"takes axes of less than 2^31 elements, got {blocks[1]}")
        return refuse_dtypes(call)

    def _taken_blocks(self, call: Call) -> tuple[int, int, int] | None:
        """Return elements before, along and after the axes; None where the operation does not take them."""
        return _blocks(call)


class Extremum(_Along):
    """The largest or smallest element, its place, or both.

    Axes that have others between them are brought together first, and the gradient back.

    Args:
        largest: Take the largest.
    """

    def __init__(self, *, largest: bool) -> None:
        self._largest = largest

    def forward(self, call: Call) -> Runner:
        """Prepare the search."""
        places = [0, -1, 1] if call.args["only_index"] else [0, 1, 2 if call.args["with_index"] else -1]
        arrays = forward_arrays(call)
        if _blocks(call) is not None:
            return _prepared(call, "extremum", arrays, places, largest=self._largest)
        order, turned = _turned(call)
        arrays = [*arrays, turned]
        places[0] = len(arrays) - 1
        search = _on(arrays, _together(call), "extremum", places, largest=self._largest)
        return _native.chain([_copied(arrays, 0, order, places[0]), search], 1)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the way of dy to the first extreme element; an index has no gradient."""
        if call.args["only_index"]:
            return None
        arrays = backward_arrays(call, wanted)
        given, dx = [1, 1 + len(call.outputs)], len(arrays) - 1
        if _blocks(call) is not None:
            return _prepared(call, "extremum_backward", arrays, [0, *given, dx])
        order, turned = _turned(call)
        arrays = [*arrays, turned, turned]
        places = [dx + 1, *given, dx + 2]
        spread = _on(arrays, _together(call), "extremum_backward", places)
        steps = [_copied(arrays, 0, order, places[0]), spread, _copied(arrays, dx, order, places[-1], back=True)]
        return _native.chain(steps, 2)

    def _taken_blocks(self, call: Call) -> tuple[int, int, int] | None:
        return _blocks(call) or _together(call)


class Product(_Along):
    """The product of elements; the gradient multiplies all others and never divides."""

    def forward(self, call: Call) -> Runner:
        """Prepare the product."""
        return _prepared(call, "product", forward_arrays(call), [0, 1])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the products of the others."""
        return _prepared(call, "product_backward", backward_arrays(call, wanted), [0, 2, 3])


class Running(_Along):
    """A running sum or product.

    Args:
        product: Multiply.
    """

    def __init__(self, *, product: bool) -> None:
        self._product = product

    def forward(self, call: Call) -> Runner:
        """Prepare the running results."""
        settings = {"exclusive": bool(call.args["exclusive"]), "reverse": bool(call.args["reverse"])}
        return _prepared(call, "running", forward_arrays(call), [0, 1], product=self._product, **settings)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the running sum of dy from the other end, or the sums of products that each element is part of."""
        settings = {"exclusive": bool(call.args["exclusive"]), "reverse": bool(call.args["reverse"])}
        if self._product:
            return _prepared(call, "running_product_backward", backward_arrays(call, wanted), [0, 2, 3], **settings)
        settings["reverse"] = not settings["reverse"]
        (x,) = call.inputs
        arrays = [None, None, x, x]
        return _prepared(call, "running", arrays, [2, 3], product=False, **settings)


class Norm:
    """The p-norm, as element-wise programs around a sum."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the sum of powers, in float32, and its root."""
        (x,), (y,) = call.inputs, call.outputs
        p = float(call.args["p"])  # type: ignore[arg-type]  # a number by the specification
        power = ["total = mul x x"] if p == 2 else ["a = abs x", "total = pow_scalar a ; p"]
        kept, wide = reshaped(y, _kept(call)), ArrayDesc(_kept(call), FLOAT)
        names = {"x": 0, "y": 1, "total": 2}
        total = _program([x, y, wide], [x, None, wide], power, names, p=p)
        root = _program([x, y, wide], [None, kept, wide], ["y = pow_scalar total ; root"], names, root=1 / p)
        return _native.chain([total, root], 1)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare dy sgn(x) (|x| / y)^(p - 1), 0 where the norm is 0."""
        arrays = backward_arrays(call, wanted)
        views = [arrays[0], *(reshaped(desc, _kept(call)) for desc in arrays[1:3]), arrays[3]]
        magnitude = [
            "magnitude = abs x",
            "ratio = div magnitude divisor",
            "power = pow_scalar ratio ; exponent",
            "negative = less_scalar x ; 0",
            "minus = mul_scalar negative ; -2",
            "sign = add_scalar minus ; 1",
            "slope = mul sign power",
        ]
        slope = ["slope = div x divisor"] if call.args["p"] == 2 else magnitude
        lines = ["zero = equal_scalar y ; 0", "divisor = add y zero", *slope, "dx = mul slope dy"]
        exponent = float(call.args["p"]) - 1  # type: ignore[arg-type]  # a number by the specification
        return _program(arrays, views, lines, {"x": 0, "y": 1, "dy": 2, "dx": 3}, exponent=exponent)


def _axes(call: Call) -> Sequence[int]:
    """Return the axes of a reduction, or the one of a running result."""
    axes = call.args["axes"] if "axes" in call.args else (call.args["axis"],)
    assert isinstance(axes, tuple)
    return axes  # type: ignore[return-value]  # ints by the specification


def _blocks(call: Call) -> tuple[int, int, int] | None:
    """x around the axes of the call."""
    (x,) = call.inputs
    assert x is not None
    return blocks_around(x.shape, _axes(call))


def _together(call: Call) -> tuple[int, int, int]:
    """Return the blocks of x once its axes are brought together, behind all others."""
    (x,), kept = call.inputs, math.prod(_kept(call))
    assert x is not None
    return kept, x.size // kept, 1


def _turned(call: Call) -> tuple[list[int], ArrayDesc]:
    """Return the order in which the axes of the call come last, and x in that order."""
    (x,), reduced = call.inputs, sorted(_axes(call))
    assert x is not None
    order = [*(axis for axis in range(len(x.shape)) if axis not in reduced), *reduced]
    return order, ArrayDesc(tuple(x.shape[axis] for axis in order), x.dtype)


def _copied(
    arrays: Sequence[ArrayDesc | None], place: int, order: Sequence[int], turned: int, *, back: bool = False
) -> _native.Op:
    """Prepare a copy of an array to the place `turned`, with its axes in another order, or back."""
    copies = Copies([arrays[place], arrays[turned]])
    view = copies.view(0).transpose(order)
    if back:
        copies.copy(1, copies.view(1), 0, view)
    else:
        copies.copy(0, view, 1, copies.view(1))
    return copies.prepared(among=arrays, places=[place, turned])


def _kept(call: Call) -> Shape:
    """Return the shape of x with length 1 on the axes."""
    (x,) = call.inputs
    assert x is not None
    return tuple(1 if axis in _axes(call) else length for axis, length in enumerate(x.shape))


def _prepared(
    call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int], **settings: bool
) -> Runner:
    """Return the operation on arrays like x as (A, C, B), and on others as (A, B)."""
    blocks = _blocks(call)
    assert blocks is not None
    return _on(arrays, blocks, operation, places, **settings)


def _on(
    arrays: Sequence[ArrayDesc | None],
    blocks: tuple[int, int, int],
    operation: str,
    places: Sequence[int],
    **settings: bool,
) -> _native.Op:
    """Prepare an operation on arrays of these blocks, and on others without the ones along."""
    before, _, behind = blocks
    views = []
    for desc in (arrays[place] if place >= 0 else None for place in places):
        is_whole = desc is not None and desc.size == math.prod(blocks)
        views.append(reshaped(desc, blocks if is_whole else (before, behind)))
    runner: _native.Op = _native.prepare(operation, arrays, views=views, places=list(places), **settings)
    return runner


def _program(
    arrays: Sequence[ArrayDesc | None],
    views: Sequence[ArrayDesc | None],
    lines: Sequence[str],
    names: dict[str, int],
    **settings: float,
) -> _native.Op:
    """Return a program on the arrays that have a view."""
    places = [k if view is not None else -1 for k, view in enumerate(views)]
    program = compile_program(lines, names, len(arrays), settings)
    return _native.prepare("pointwise", arrays, views=list(views), places=places, program=program)


ALONG: Final[dict[str, Kernel]] = {
    "Max": Extremum(largest=True),
    "Min": Extremum(largest=False),
    "Prod": Product(),
    "CumSum": Running(product=False),
    "CumProd": Running(product=True),
    "Norm": Norm(),
}
