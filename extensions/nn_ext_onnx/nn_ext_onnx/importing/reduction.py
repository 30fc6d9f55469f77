"""Reductions and running sums."""

from collections.abc import Callable
from typing import Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Made, Node, operator

_Reduction = Callable[..., nn.Variable]


def _log_sum_exp(x: nn.Variable, axis: tuple[int, ...], keepdims: bool) -> nn.Variable:
    largest = F.max(x, axis=axis, keepdims=True)
    largest = F.reset_inf(largest, 0.0)
    logarithm = F.log(F.sum(F.exp(x - largest), axis=axis, keepdims=True)) + largest
    return logarithm if keepdims else F.reshape(logarithm, [n for a, n in enumerate(x.shape) if a not in axis])


_KINDS: Final[dict[str, _Reduction]] = {
    "ReduceSum": F.sum,
    "ReduceMean": F.mean,
    "ReduceMax": F.max,
    "ReduceMin": F.min,
    "ReduceProd": F.prod,
    "ReduceL1": lambda x, axis, keepdims: F.sum(F.abs(x), axis=axis, keepdims=keepdims),
    "ReduceL2": lambda x, axis, keepdims: F.pow_scalar(F.sum(x * x, axis=axis, keepdims=keepdims), 0.5),
    "ReduceSumSquare": lambda x, axis, keepdims: F.sum(x * x, axis=axis, keepdims=keepdims),
    "ReduceLogSum": lambda x, axis, keepdims: F.log(F.sum(x, axis=axis, keepdims=keepdims)),
    "ReduceLogSumExp": _log_sum_exp,
}
#: The result of a reduction of nothing if no function gives it.
_OF_NOTHING: Final = {"ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceLogSumExp": -np.inf}
#: The effect of a reduction without axes on each element.
_OF_ONE: Final[dict[str, Callable[[nn.Variable], nn.Variable]]] = {
    "ReduceL1": F.abs,
    "ReduceL2": F.abs,
    "ReduceSumSquare": lambda x: x * x,
    "ReduceLogSum": F.log,
}


def _reduction(kind: str, function: _Reduction) -> Callable[[Node], Made]:
    def convert(node: Node) -> Made:
        axes, keep = node.axes(1), bool(node.attr("keepdims", 1))
        if not axes and node.attr("noop_with_empty_axes", 0):
            return _OF_ONE.get(kind, F.identity)(node.x)
        chosen = axes or tuple(range(node.ndim))
        if kind in _OF_NOTHING and 0 in [node.shape[axis] for axis in chosen]:
            shape = [1 if a in chosen else n for a, n in enumerate(node.shape) if keep or a not in chosen]
            value = bool(_OF_NOTHING[kind] > 0) if node[0].dtype.kind == "b" else _OF_NOTHING[kind]
            return np.full(shape, value, dtype=node[0].dtype)
        return function(node.x, axis=chosen, keepdims=keep) if chosen else _OF_ONE.get(kind, F.identity)(node.x)

    return convert


for _kind, _function in _KINDS.items():
    operator(_kind)(_reduction(_kind, _function))


@operator("ArgMax", "ArgMin", gives_whole=True)
def _arg(node: Node) -> nn.Variable:
    axis, keep = node.axis_of(node.attr("axis", 0)), bool(node.attr("keepdims", 1))
    function = F.max if node.kind == "ArgMax" else F.min
    if not node.attr("select_last_index", 0):
        return function(node.x, axis=axis, keepdims=keep, only_index=True)
    order = F.flip(node.x, axes=(axis,))
    found = function(order, axis=axis, keepdims=keep, only_index=True)
    return F.r_sub_scalar(found, float(node.shape[axis] - 1))


@operator("CumSum", "CumProd")
def _cumulated(node: Node) -> nn.Variable:
    axis = node.axis_of(int(node.number(1)))
    settings = {"exclusive": bool(node.attr("exclusive", 0)), "reverse": bool(node.attr("reverse", 0))}
    return (F.cumsum if node.kind == "CumSum" else F.cumprod)(node.x, axis=axis, **settings)
