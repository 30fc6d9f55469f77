"""Elements and blocks picked from, and put to, numbered places."""

import math
from collections.abc import Sequence
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes

#: dtypes whose items can be picked.
_DTYPES: Final = ("float32", "float64", "int64", "int32", "uint8", "uint64", "bool")


class _Places:
    """The common part of the functions: they refuse arrays without elements."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse arrays without elements, and dtypes whose items are not of a known size."""
        for desc in forward_arrays(call):
            if desc is not None and desc.size == 0:
                return Refusal("takes arrays with at least one element")
            if desc is not None and desc.dtype not in _DTYPES:
                return Refusal(f"takes arrays of one of the dtypes {', '.join(_DTYPES)}, got {desc.dtype}")
        return refuse_dtypes(call)


class Gather(_Places):
    """Entries along an axis; the gradient adds them up where they came from."""

    def forward(self, call: Call) -> Runner:
        """Prepare the picking."""
        return self._prepared(call, "take", forward_arrays(call), [0, 1, 2])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the sums; None for other dtypes than float32."""
        arrays = backward_arrays(call, wanted)
        if _dtype(call) != "float32":
            return None
        return self._prepared(call, "put", arrays, [3, 1, 4, -1], add=True)

    def _prepared(
        self, call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int], **settings: Any
    ) -> Runner:
        (x, _), axis, n_batch = call.inputs, call.args["axis"], call.args["batch_dims"]
        assert x is not None and isinstance(axis, int) and isinstance(n_batch, int)
        runner: Runner = _native.prepare(
            operation,
            arrays,
            places=list(places),
            lengths=[x.shape[axis]],
            batch=math.prod(x.shape[:n_batch]),
            before=math.prod(x.shape[n_batch:axis]),
            label="gather: Indices",
            **settings,
        )
        return runner


class GatherNd(_Places):
    """Elements or blocks by position; the gradient adds them up where they came from."""

    def forward(self, call: Call) -> Runner:
        """Prepare the picking."""
        return _by_position(call, "gather_nd", "take", forward_arrays(call), [0, 1, 2])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the sums; None for other dtypes than float32."""
        if _dtype(call) != "float32":
            return None
        return _by_position(call, "gather_nd", "put", backward_arrays(call, wanted), [3, 1, 4, -1], add=True)


class ScatterNd(_Places):
    """Elements or blocks put to positions of zeros or of an array; the gradient picks them."""

    def forward(self, call: Call) -> Runner:
        """Prepare the putting."""
        return _by_position(call, "scatter_nd", "put", forward_arrays(call), [0, 1, 3, 2], add=bool(call.args["add"]))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the picking; None where the array wants a gradient too."""
        if wanted[2]:
            return None
        return _by_position(call, "scatter_nd", "take", backward_arrays(call, wanted), [4, 1, 5])


class OneHot(_Places):
    """Ones at positions."""

    def forward(self, call: Call) -> Runner:
        """Prepare the ones and zeros."""
        shape = call.args["shape"]
        assert isinstance(shape, tuple)
        runner: Runner = _native.prepare("one_hot", forward_arrays(call), lengths=list(shape))
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Positions have no gradient."""
        return None


def _dtype(call: Call) -> str:
    return call.outputs[0].dtype


def _by_position(
    call: Call,
    function: str,
    operation: str,
    arrays: Sequence[ArrayDesc | None],
    places: Sequence[int],
    **settings: Any,
) -> Runner:
    """Return an operation between a whole array, the input of a pick or the output of a put, and the indices (M, ...)."""
    indices = call.inputs[1]
    whole = call.inputs[0] if function == "gather_nd" else call.outputs[0]
    assert indices is not None and whole is not None
    runner: Runner = _native.prepare(
        operation,
        arrays,
        places=list(places),
        lengths=list(whole.shape[: indices.shape[0]]),
        batch=1,
        before=1,
        label=f"{function}: indices",
        **settings,
    )
    return runner


PLACES: Final[dict[str, Kernel]] = {
    "Gather": Gather(),
    "GatherNd": GatherNd(),
    "ScatterNd": ScatterNd(),
    "OneHot": OneHot(),
}
