"""Elements in order: sorted rows, and the largest or smallest of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import real_dtype, refuse_dtypes
from nn_ext_cuda.codegen.layout import split_axes
from nn_ext_cuda.codegen.ordering import Ordering


class Ordered:
    """A stable sort of the rows of x; gradients are those of the rules."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and arrays that are very large or empty."""
        if _x(call).size == 0:
            return Refusal("takes arrays with at least one element")
        # without results: places alone stand where values are declared
        return refuse_sizes(call.inputs) or refuse_dtypes(replace(call, outputs=()))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


class Sort(Ordered):
    """All elements along an axis, their former places, or both."""

    def forward(self, call: Call) -> Runner:
        """Return a launch for the keys, those of the passes of the sort, and one for the results."""
        x, axis = _x(call), call.args["axis"]
        assert isinstance(axis, int)
        _, length, inner = split_axes(x.shape, axis)
        ordering = Ordering(len(call.inputs) + len(call.outputs), call.dtype)
        keys = ordering.take_keys(0, x.size, length, inner)
        _, places = ordering.sort(keys, x.size, length, real_dtype(call.dtype), descending=bool(call.args["reverse"]))
        y, index = (None, 1) if call.args["only_index"] else (1, 2 if call.args["with_index"] else None)
        ordering.pick(0, places, y, index, frame=(x.size, length, inner), count=length, spread=False)
        return ordering.runner()


class TopK(Ordered):
    """The first elements of each sample in order, next to each other or at their places among zeros."""

    def forward(self, call: Call) -> Runner:
        """Return a launch for the keys, those of the passes of the sort, and one for the results."""
        x, base_axis, k = _x(call), call.args["base_axis"], call.args["k"]
        assert isinstance(base_axis, int)
        assert isinstance(k, int)
        length = math.prod(x.shape[base_axis:])
        ordering = Ordering(len(call.inputs) + len(call.outputs), call.dtype)
        keys = ordering.take_keys(0, x.size, length, 1, absolute=bool(call.args["abs"]))
        _, places = ordering.sort(keys, x.size, length, real_dtype(call.dtype), descending=bool(call.args["largest"]))
        index = 2 if len(call.outputs) > 1 else None
        spread = not call.args["reduce"]
        ordering.pick(0, places, 1, index, frame=(x.size, length, 1), count=k, spread=spread)
        return ordering.runner()


def _x(call: Call) -> ArrayDesc:
    (x,) = call.inputs
    assert x is not None
    return x


SORTING: Final[Mapping[str, Kernel]] = {"Sort": Sort(), "TopKData": TopK()}
