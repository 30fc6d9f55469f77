"""Normalizations."""

from collections.abc import Sequence

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.shape import padded
from nn_ext_onnx.importing.values import UnsupportedError


def _per_channel(node: Node, index: int, trained: bool = True) -> nn.Variable:
    """Return a vector as an array that is broadcast to the channels."""
    variable = node.variable(index)
    if not trained:
        variable.need_grad = False
    return F.reshape(variable, (1, -1, *(1,) * (node.ndim - 2)))


@operator("BatchNormalization")
def _batch_normalization(node: Node) -> Made:
    eps, outputs = node.attr("epsilon", 1e-5), [name for name in node.proto.output if name]
    gamma, beta = _per_channel(node, 1), _per_channel(node, 2)
    mean, variance = _per_channel(node, 3, False), _per_channel(node, 4, False)
    if node.attr("training_mode", 0):
        return _trained(node, gamma, beta, eps)
    if len(outputs) > 1 or (node.opset < 7 and not node.attr("is_test", 0)):
        raise UnsupportedError("statistics of training from before version 14")
    if node.attr("spatial", 1) == 0:
        raise UnsupportedError("spatial=0")
    if node.ndim == 1:
        raise UnsupportedError("x without channels")
    return F.batch_normalization(node.x, beta, gamma, mean, variance, eps=eps, batch_stat=False)


def _trained(node: Node, gamma: nn.Variable, beta: nn.Variable, eps: float) -> list[nn.Variable]:
    """Statistics of the batch, and the running ones that follow."""
    others, momentum = [axis for axis in range(node.ndim) if axis != 1], node.attr("momentum", 0.9)
    mean = F.mean(node.x, axis=others, keepdims=True)
    difference = node.x - mean
    variance = F.mean(difference * difference, axis=others, keepdims=True)
    y = difference / F.pow_scalar(variance + eps, 0.5) * gamma + beta
    running = [
        node.variable(index) * momentum + F.reshape(batch, (-1,)) * (1 - momentum)
        for index, batch in ((3, mean), (4, variance))
    ]
    return [y, *running]


@operator("InstanceNormalization")
def _instance_normalization(node: Node) -> nn.Variable:
    eps = node.attr("epsilon", 1e-5)
    return F.instance_normalization(node.x, _per_channel(node, 2), _per_channel(node, 1), eps=eps)


@operator("GroupNormalization", since=18)
def _group_normalization_of_groups(node: Node) -> nn.Variable:
    """Take scales and biases of groups."""
    eps, groups = node.attr("epsilon", 1e-5), node.attr("num_groups")
    y = F.group_normalization(node.x, None, None, num_groups=groups, eps=eps)
    grouped = F.reshape(y, (node.shape[0], groups, -1))
    scale, bias = (F.reshape(node.variable(index), (1, groups, 1)) for index in (1, 2))
    return F.reshape(grouped * scale + bias, node.shape)


@operator("GroupNormalization", since=21)
def _group_normalization(node: Node) -> nn.Variable:
    eps, groups = node.attr("epsilon", 1e-5), node.attr("num_groups")
    return F.group_normalization(node.x, _per_channel(node, 2), _per_channel(node, 1), num_groups=groups, eps=eps)


@operator("LayerNormalization")
def _layer_normalization(node: Node) -> Made:
    axis, eps = node.axis_of(node.attr("axis", -1)), node.attr("epsilon", 1e-5)
    others = tuple(range(axis, node.ndim))
    if len([name for name in node.proto.output if name]) == 1 and axis > 0:
        y = F.layer_normalization(node.x, None, None, batch_axis=tuple(range(axis)), eps=eps)
        return _scaled(node, y)
    mean = F.mean(node.x, axis=others, keepdims=True)
    difference = node.x - mean
    inverse = F.pow_scalar(F.mean(difference * difference, axis=others, keepdims=True) + eps, -0.5)
    return [_scaled(node, difference * inverse), mean, inverse]


def _scaled(node: Node, y: nn.Variable) -> nn.Variable:
    bias = node.optional_variable(2)
    y = y * node.variable(1)
    return y if bias is None else y + bias


@operator("LpNormalization")
def _lp_normalization(node: Node) -> nn.Variable:
    axis, p = node.axis_of(node.attr("axis", -1)), float(node.attr("p", 2))
    norm = F.pow_scalar(F.sum(F.pow_scalar(F.abs(node.x), p), axis=axis, keepdims=True), 1 / p)
    zero = F.equal_scalar(norm, 0.0)
    return F.where(_like(zero, node.shape), F.constant(0.0, node.shape), node.x / (norm + zero))


def _like(x: nn.Variable, shape: Sequence[int]) -> nn.Variable:
    return F.broadcast(x, shape)


@operator("LRN")
def _lrn(node: Node) -> nn.Variable:
    size, alpha, beta, bias = node.attr("size"), node.attr("alpha", 1e-4), node.attr("beta", 0.75), node.attr("bias", 1.0)
    others = max(node.shape[1] - 1, 0)  # a window reaches no further than to the last other channel
    before, behind = min((size - 1) // 2, others), min(size // 2, others)
    squares = padded(node.x * node.x, [(0, 0), (before, behind), *[(0, 0)] * (node.ndim - 2)])
    after = node.ndim - 2
    windows = [
        F.slice(squares, start=[k] + [0] * after, stop=[k + node.shape[1], *node.shape[2:]], step=[1] * (after + 1))
        for k in range(before + 1 + behind)
    ]
    return node.x / F.pow_scalar(F.add_n(*windows) * (alpha / size) + bias, beta)


@operator("MeanVarianceNormalization")
def _mean_variance_normalization(node: Node) -> nn.Variable:
    axes = tuple(node.axis_of(axis) for axis in node.attr("axes", [0, 2, 3]))
    difference = node.x - F.mean(node.x, axis=axes, keepdims=True)
    deviation = F.pow_scalar(F.mean(difference * difference, axis=axes, keepdims=True), 0.5)
    return difference / (deviation + np.float32(1e-9).item())
