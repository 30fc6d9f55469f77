"""Activations."""

import math
from collections.abc import Callable

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, operator


@operator("Relu")
def _relu(node: Node) -> nn.Variable:
    return F.relu(node.x)


@operator("LeakyRelu")
def _leaky_relu(node: Node) -> nn.Variable:
    return F.leaky_relu(node.x, node.attr("alpha", 0.01))


@operator("Sigmoid")
def _sigmoid(node: Node) -> nn.Variable:
    return F.sigmoid(node.x)


@operator("Tanh")
def _tanh(node: Node) -> nn.Variable:
    return F.tanh(node.x)


@operator("Elu")
def _elu(node: Node) -> nn.Variable:
    return F.elu(node.x, node.attr("alpha", 1.0))


@operator("Selu")
def _selu(node: Node) -> nn.Variable:
    alpha, gamma = (1.6732, 1.0507) if node.opset < 6 else (1.67326319217681884765625, 1.05070102214813232421875)
    return F.selu(node.x, node.attr("gamma", gamma), node.attr("alpha", alpha))


@operator("HardSigmoid")
def _hard_sigmoid(node: Node) -> nn.Variable:
    y = node.x * node.attr("alpha", 0.2) + node.attr("beta", 0.5)
    return F.minimum_scalar(F.maximum_scalar(y, 0.0), 1.0)


@operator("Softplus")
def _softplus(node: Node) -> nn.Variable:
    return F.softplus(node.x)


@operator("Softsign")
def _softsign(node: Node) -> nn.Variable:
    return F.softsign(node.x)


@operator("Mish")
def _mish(node: Node) -> nn.Variable:
    return F.mish(node.x)


@operator("Gelu")
def _gelu(node: Node) -> nn.Variable:
    if node.attr("approximate", "none") == "tanh":
        return F.gelu(node.x)
    return 0.5 * node.x * (1 + F.erf(node.x * math.sqrt(0.5)))


@operator("PRelu")
def _prelu(node: Node) -> nn.Variable:
    slope = node.variable(1)
    if node.opset < 7 and slope.size > 1:
        slope = F.reshape(slope, (-1, *(1,) * (node.ndim - 2)))
    return F.relu(node.x) - slope * F.relu(-node.x)


def _along(function: Callable[..., nn.Variable], node: Node) -> nn.Variable:
    """Before version 13 the axes from `axis` on are one."""
    if node.opset >= 13:
        return function(node.x, axis=node.axis_of(node.attr("axis", -1)))
    axis = node.attr("axis", 1)
    axis = node.axis_of(axis) if axis < 0 else axis
    before = math.prod(node.shape[:axis])
    rows = F.reshape(node.x, (before, math.prod(node.shape[axis:])))
    return F.reshape(function(rows, axis=1), node.shape)


@operator("Softmax")
def _softmax(node: Node) -> nn.Variable:
    return _along(F.softmax, node)


@operator("LogSoftmax")
def _log_softmax(node: Node) -> nn.Variable:
    return _along(F.log_softmax, node)


@operator("Hardmax")
def _hardmax(node: Node) -> nn.Variable:
    return _along(_first_largest, node)


def _first_largest(x: nn.Variable, axis: int) -> nn.Variable:
    """One at the first largest element along an axis."""
    place = F.max(x, axis=axis, keepdims=True, only_index=True)
    order = [*range(axis), *range(axis + 1, x.ndim), axis]
    hits = F.one_hot(F.reshape(place, (*x.shape[:axis], *x.shape[axis + 1 :], 1)), (x.shape[axis],))
    return F.transpose(hits, [order.index(k) for k in range(x.ndim)])
