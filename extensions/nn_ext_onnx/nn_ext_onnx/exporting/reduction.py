"""Reductions, running sums and products."""

from typing import Final

import numpy as np

from nn_ext_onnx.exporting.registry import Call, converter, size_of
from nn_ext_onnx.exporting.values import INT, Value

_KINDS: Final = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Prod": "ReduceProd"}


@converter("Sum", "Mean", "Prod")
def _reduction(call: Call) -> Value:
    return call.x.reduce(_KINDS[call.name], call.args["axes"], call.args["keep_dims"])


@converter("ReduceSum", "ReduceMean")
def _of_all(call: Call) -> Value:
    return call.x.reduce(call.name, range(call.ndim), False)


@converter("Max", "Min")
def _extremum(call: Call) -> list[Value]:
    axes = call.args["axes"]
    value = call.x.reduce(f"Reduce{call.name}", axes, call.args["keep_dims"])
    if not (call.args["with_index"] or call.args["only_index"]):
        return [value]
    kept = [axis for axis in range(call.ndim) if axis not in axes]
    rows = call.x.transpose([*kept, *sorted(axes)])
    rows = rows.reshape([*(call.shape[axis] for axis in kept), size_of([call.shape[axis] for axis in axes])])
    index = rows.op(f"Arg{call.name}", axis=len(kept), keepdims=0, dtype=INT).reshape(call.output_shape)
    return [index] if call.args["only_index"] else [value, index]


@converter("Norm")
def _norm(call: Call) -> Value:
    p, axes, keep = call.args["p"], call.args["axes"], call.args["keep_dims"]
    if p in (1, 2):
        return call.x.op("Abs").reduce(f"ReduceL{p:.0f}", axes, keep)
    return (call.x.op("Abs") ** p).reduce("ReduceSum", axes, keep) ** (1 / p)


@converter("CumSum")
def _cumsum(call: Call) -> Value:
    axis = call.graph.constant(call.args["axis"], INT)
    return call.x.op("CumSum", axis, exclusive=int(call.args["exclusive"]), reverse=int(call.args["reverse"]))


@converter("CumProd")
def _cumprod(call: Call) -> Value:
    """Each step multiplies by what is 1, 2, 4, ... places before, so that the number of nodes is logarithmic."""
    axis, is_reverse = call.args["axis"], call.args["reverse"]
    length = call.shape[axis]
    y = _shifted(call, call.x, 1, axis, length, is_reverse) if call.args["exclusive"] else call.x
    step = 1
    while step < length:
        y = y * _shifted(call, y, step, axis, length, is_reverse)
        step *= 2
    return y


def _shifted(call: Call, x: Value, step: int, axis: int, length: int, is_reverse: bool) -> Value:
    """Elements `step` places further, ones where there were none."""
    kept = x.slice(axis, step, length) if is_reverse else x.slice(axis, 0, length - step)
    pads = np.zeros((2, call.ndim), dtype=np.int64)
    pads[int(is_reverse), axis] = step
    return kept.op("Pad", pads.reshape(-1), 1.0)
