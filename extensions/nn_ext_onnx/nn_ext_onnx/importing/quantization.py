"""Quantized numbers: they are made on the host, and turned into floating-point numbers here."""

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, operator
from nn_ext_onnx.importing.values import UnsupportedError


@operator("DequantizeLinear")
def _dequantize(node: Node) -> nn.Variable:
    if node.attr("block_size", 0):
        raise UnsupportedError("block_size")
    axis, n = node.attr("axis", 1), node.ndim

    def of_axis(index: int) -> nn.Variable:
        variable = node.variable(index)
        if variable.size == 1:
            return F.reshape(variable, (1,) * n)
        return F.reshape(variable, [-1 if k == node.axis_of(axis) else 1 for k in range(n)])

    y = node.x if node.optional(2) is None else node.x - of_axis(2)
    return y * of_axis(1)
