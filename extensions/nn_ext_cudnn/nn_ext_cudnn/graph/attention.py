"""Attention by one plan: the chain of products and a softmax that cuDNN's fused engines run without the matrix of weights.

Where they do not run a call, or its arrays are off their alignment, the tiled kernels of nn_ext_cuda do. Both keep the
logarithms of the sums alike, so that one can compute the gradient of what the other computed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nn_core.ext import Array, ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition
from nn_ext_cuda.codegen.describe import forward_arrays, forward_names
from nn_ext_cuda.kernels.attention import ATTENTION as TILED
from nn_ext_cuda.kernels.attention import ScaledDotProductAttention, log_sum_shape
from nn_ext_cuda.launch.program import Chain
from nn_ext_cudnn.errors import NotSupportedError
from nn_ext_cudnn.graph.attention_graph import (
    BACKWARD,
    FORWARD,
    LOWEST,
    MASK,
    ONE,
    SCALE,
    SUMS,
    K,
    Lying,
    Q,
    Sizes,
    backward_graph,
    forward_graph,
)
from nn_ext_cudnn.graph.operations import ALIGNMENT
from nn_ext_cudnn.graph.plans import Graph
from nn_ext_cudnn.graph.runner import GraphRunner
from nn_ext_cudnn.precision import excluded_notes, is_nondeterministic_allowed

DTYPES: Final = ("float16", "bfloat16")
#: Items of these that are as long as the alignment of engines.
_ALIGNED_ITEMS: Final = ALIGNMENT // 2
#: Scores of hidden keys. Engines work to base 2, and this times log2(e) is still a number; what is below it is hidden too.
_LOWEST_SCORE: Final = -1e38
#: Queries whose logarithm of the sum is below it see no key: the logarithm of a count is lost beside that score.
_HIDDEN: Final = 0.99 * _LOWEST_SCORE


class FusedAttention:
    """y = softmax(scale q k^T + mask) v in float16 and bfloat16; the weights are rounded to that before they meet v."""

    def __init__(self, tiled: ScaledDotProductAttention) -> None:
        self._tiled = tiled

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what the engines do not know on any device, and what has none on this one."""
        refusal = self._refuse_settings(call) or self._tiled.refuse(call)
        if refusal is not None:
            return refusal
        try:
            self.forward(call)
        except NotSupportedError as error:
            return Refusal(str(error))
        return None

    def private_shapes(self, call: Call) -> Sequence[Shape]:
        """Return the shape of the logarithms, in the precision of sums."""
        return [log_sum_shape(call)]

    def strided(self, call: Call) -> bool:
        """Take arrays as they lie where the tiled kernels do."""
        return self._tiled.strided(call)

    def forward(self, call: Call) -> Runner:
        """One plan; with a mask, a launch for y and one for the logarithms of queries that see no key."""

        def made(sizes: Sizes) -> Any:
            plan = _runner(call, forward_graph(sizes), FORWARD)
            return plan if sizes.mask is None else Chain([plan, _unseeing(call)])

        return _WhereAligned(made, sizes_of(call), self._tiled.forward(call))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One plan for the gradients of q, k and v, where these are wanted and no others; else the tiled kernels."""
        tiled = self._tiled.backward(call, wanted)
        if list(wanted) != [True, True, True, False]:
            return tiled

        def made(sizes: Sizes) -> Any:
            return _runner(call, backward_graph(sizes, adds_in_any_order=is_nondeterministic_allowed()), BACKWARD)

        try:
            return _WhereAligned(made, sizes_of(call), tiled)
        except NotSupportedError:
            return tiled

    def _refuse_settings(self, call: Call) -> Refusal | None:
        if call.dtype not in DTYPES:
            return Refusal(f"computes in {' and '.join(DTYPES)}, got {call.dtype}")
        if any(desc is not None and desc.size == 0 for desc in forward_arrays(call)):
            return Refusal("takes arrays with at least one element")
        mask = call.inputs[MASK]
        if mask is not None and mask_shape(_leading(call), mask.shape, sizes_of_keys(call)) is None:
            return Refusal("takes masks that vary along the keys, and along all leading axes but the last or none of them")
        return None


class _WhereAligned:
    """The runner of a plan, or another one for arrays that lie otherwise than engines read them.

    Args:
        made: Makes the runner of a plan.
        sizes: The sizes of the call, for arrays in C order.
        other: The other runner.

    Raises:
        NotSupportedError: when no engine runs the call.
    """

    def __init__(self, made: Callable[[Sizes], Any], sizes: Sizes, other: Any) -> None:
        self._made = made
        self._sizes = sizes
        self._other = other
        self._plans: dict[Lying, Any] = {(): made(sizes)}

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> Any:
        """Return the step on these arrays."""
        is_aligned = all(array is None or int(array.data.ptr) % ALIGNMENT == 0 for array in arrays)
        plan = self._plan_for(arrays) if is_aligned else None
        return (self._other if plan is None else plan).bind(*arrays)

    def _plan_for(self, arrays: Sequence[Array | None]) -> Any:
        """Return the runner of the plan for arrays that lie like these; None where no engine runs that."""
        lying = lying_of(arrays)
        if lying not in self._plans:
            try:
                self._plans[lying] = self._made(replace(self._sizes, lying=lying)) if _is_aligned(lying) else None
            except NotSupportedError:
                self._plans[lying] = None
        return self._plans[lying]


def lying_of(arrays: Sequence[Array | None]) -> Lying:
    """(place, strides in elements on four axes) of the arrays that are not in C order."""
    found = []
    for place, array in enumerate(arrays):
        if array is not None and not array.flags.c_contiguous:
            strides = [stride // array.itemsize for stride in array.strides]
            found.append((place, (*(strides[0] * array.shape[0],) * (4 - len(strides)), *strides)))
    return tuple(found)


def _is_aligned(lying: Lying) -> bool:
    """Return whether each row begins where engines can read it."""
    return all(stride % _ALIGNED_ITEMS == 0 for _, strides in lying for stride in strides[:-1])


def sizes_of(call: Call) -> Sizes:
    """Return the sizes of a call whose mask is not refused."""
    q, k, v = (_present(desc).shape for desc in call.inputs[:3])
    leading, mask = _leading(call), call.inputs[MASK]
    heads = math.prod(leading[:-1]), (leading[-1] if leading else 1)
    seen = None if mask is None else mask_shape(leading, mask.shape, k[-2])
    return Sizes(heads, q[-2], k[-2], q[-1], v[-1], call.dtype, seen, bool(call.args["is_causal"]))


def sizes_of_keys(call: Call) -> int:
    """Return number of keys."""
    return _present(call.inputs[K]).shape[-2]


def mask_shape(leading: Shape, mask: Shape, n_keys: int) -> Shape | None:
    """Return a mask over (*leading, queries, keys) in the four axes of cuDNN; None where it varies otherwise than they can."""
    shape = (1,) * (len(leading) + 2 - len(mask)) + mask
    if shape[-1] != n_keys:
        return None
    of_batch, batch = shape[:-3], leading[:-1]
    if all(length == 1 for length in of_batch):
        n_batch = 1
    elif of_batch == batch:
        n_batch = math.prod(batch)
    else:
        return None
    return (n_batch, shape[-3] if leading else 1, *shape[-2:])


def _leading(call: Call) -> Shape:
    return _present(call.inputs[Q]).shape[:-2]


def _present(desc: ArrayDesc | None) -> ArrayDesc:
    assert desc is not None
    return desc


def _runner(call: Call, graph: Graph, places: Sequence[int]) -> GraphRunner:
    """Return the runner of a graph over the arrays at `places`."""
    constants = {SCALE: float(call.args["scale"])}  # type: ignore[arg-type]  # a number
    if call.inputs[MASK] is not None or call.args["is_causal"]:
        constants[LOWEST] = _LOWEST_SCORE
    if places is BACKWARD:
        constants[ONE] = 1.0
    present = [place for place in places if place != MASK or call.inputs[MASK] is not None]
    return GraphRunner(call.spec.api, graph, {place + 1: place for place in present}, excluded_notes(call.dtype), constants)


def _unseeing(call: Call) -> Any:
    """Return launches for queries from which the mask hides all keys: y is 0, and so are the weights, exp(score -
    infinity).
    """
    y = call.outputs[0]
    rows = y.size // y.shape[-1]
    arrays = [*call.inputs, y, ArrayDesc((rows,), SUMS)]
    frame, of_rows = (rows, y.shape[-1]), (rows, 1)
    composition = Composition(call, arrays, forward_names(call), frame, {"log_sum": of_rows}, {"hidden": _HIDDEN})
    composition.compute("attention_unseeing", {"y": "log_sum < hidden ? R(0) : y"})
    composition.compute("attention_unseeing_sums", {"log_sum": "log_sum < hidden ? infinity() : log_sum"})
    return composition.program()


def _tiled() -> ScaledDotProductAttention:
    kernel = TILED["ScaledDotProductAttention"]
    assert isinstance(kernel, ScaledDotProductAttention)
    return kernel


FUSED_ATTENTION: Final[Mapping[str, Kernel]] = {"ScaledDotProductAttention": FusedAttention(_tiled())}
