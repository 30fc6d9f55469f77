"""Random numbers: distributed as the model says, drawn by nn_core."""

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, operator


@operator("RandomNormal", "RandomNormalLike")
def _normal(node: Node) -> nn.Variable:
    shape = node.attr("shape") if node.kind == "RandomNormal" else node.shape
    return F.randn(node.attr("mean", 0.0), node.attr("scale", 1.0), shape)


@operator("RandomUniform", "RandomUniformLike")
def _uniform(node: Node) -> nn.Variable:
    shape = node.attr("shape") if node.kind == "RandomUniform" else node.shape
    return F.rand(node.attr("low", 0.0), node.attr("high", 1.0), shape)
