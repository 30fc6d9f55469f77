"""Sorting, the k first elements, and distinct ones."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Array, ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtype, refuse_dtypes, reshaped
from nn_ext_cpu.pointwise import Pointwise


class Sort:
    """Elements in order along an axis, their places, or both; the gradient goes back to those places."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and bfloat16; an index may be the only output."""
        return refuse_dtype(call) if call.args["only_index"] else refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the sorting."""
        places = [0, -1, 1] if call.args["only_index"] else [0, 1, 2 if call.args["with_index"] else -1]
        return self._prepared(call, "sort", forward_arrays(call), places)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the backward pass; an index has no gradient."""
        if call.args["only_index"]:
            return None
        arrays = backward_arrays(call, wanted)
        return self._prepared(call, "sort_backward", arrays, [0, 1 + len(call.outputs), len(arrays) - 1])

    def _prepared(self, call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
        (x,), axis = call.inputs, call.args["axis"]
        assert x is not None and isinstance(axis, int)
        blocks = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
        views = [reshaped(arrays[place], blocks) if place >= 0 else None for place in places]
        reverse = bool(call.args["reverse"])
        runner: Runner = _native.prepare(operation, arrays, views=views, places=list(places), reverse=reverse)
        return runner


class TopK:
    """The k largest or smallest elements of each sample; the gradient goes back to where they came from."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the choice."""
        places = [0, 1, 2 if call.args["with_index"] else -1]
        return _chosen(call, "top_k", forward_arrays(call), places, compact=bool(call.args["reduce"]))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the backward pass."""
        arrays, compact = backward_arrays(call, wanted), bool(call.args["reduce"])
        return _chosen(call, "top_k_backward", arrays, [0, 1 + len(call.outputs), len(arrays) - 1], compact=compact)


class TopKOfGradient:
    """The identity, whose gradient keeps the k largest elements of each sample."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the copy."""
        return _COPY.forward(call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the choice."""
        return _chosen(call, "top_k", backward_arrays(call, wanted), [2, 3, -1], compact=False)


_COPY: Final = Pointwise("y = copy x")

#: dtypes whose elements are compared.
_COMPARED: Final = ("float32", "float64", "int64", "int32", "uint8", "uint64", "bool")


class Unique:
    """Distinct elements, found by hashing, of which only the distinct ones are sorted."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse entries along an axis, and dtypes whose elements are not compared."""
        (x,) = call.inputs
        assert x is not None
        if not call.args["flatten"] and len(x.shape) != 1:
            return Refusal(f"compares single elements, got entries along axis {call.args['axis']}")
        return None if x.dtype in _COMPARED else Refusal(f"takes x of {' or '.join(_COMPARED)}, got {x.dtype}")

    def forward(self, call: Call) -> Runner:
        """Prepare the search; the runner returns its results as new arrays."""
        wanted = [0, *[k for k, name in enumerate(("with_index", "with_inverse", "with_counts"), 1) if call.args[name]]]
        (x,), in_order = call.inputs, bool(call.args["sorted"])
        assert x is not None
        dtype = x.dtype

        def run(x: Array) -> tuple[Array, ...]:
            found: tuple[Array, ...] = _native.unique(x, dtype, in_order, wanted)
            return found

        return run

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return None: which elements are distinct has no gradient."""
        return None


def _chosen(call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int], *, compact: bool) -> Runner:
    (x,), base_axis, k = call.inputs, call.args["base_axis"], call.args["k"]
    assert x is not None and isinstance(base_axis, int) and isinstance(k, int)
    rows, size = math.prod(x.shape[:base_axis]), math.prod(x.shape[base_axis:])
    views = []
    for desc in (arrays[place] if place >= 0 else None for place in places):
        is_whole = desc is not None and desc.shape == x.shape
        views.append(reshaped(desc, (rows, size if is_whole else k)))
    settings = {"largest": bool(call.args.get("largest", True)), "absolute": bool(call.args["abs"]), "compact": compact}
    runner: Runner = _native.prepare(operation, arrays, views=views, places=list(places), k=k, **settings)
    return runner


ORDER: Final[Mapping[str, Kernel]] = {"Sort": Sort(), "TopKData": TopK(), "TopKGrad": TopKOfGradient(), "Unique": Unique()}
