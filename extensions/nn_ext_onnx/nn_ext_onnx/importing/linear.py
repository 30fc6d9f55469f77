"""Matrix products."""

import math

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, operator
from nn_ext_onnx.importing.values import UnsupportedError


@operator("MatMul")
def _matmul(node: Node) -> nn.Variable:
    a, b = node.variable(0), node.variable(1)
    if not a.ndim or not b.ndim:
        raise UnsupportedError("numbers without axes")
    if b.ndim == 2 and a.ndim > 1:
        return F.affine(a, b, base_axis=a.ndim - 1)
    left, right = (F.reshape(a, (1, *a.shape)) if a.ndim == 1 else a), (F.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b)
    ndim = max(left.ndim, right.ndim)
    left, right = (F.reshape(v, (*(1,) * (ndim - v.ndim), *v.shape)) if v.ndim < ndim else v for v in (left, right))
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    y = F.batch_matmul(left, right)
    shape = (*batch, *(a.shape[-2:-1] if a.ndim > 1 else ()), *(b.shape[-1:] if b.ndim > 1 else ()))
    return y if y.shape == shape else F.reshape(y, shape)


@operator("Gemm")
def _gemm(node: Node) -> nn.Variable:
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    a = F.transpose(node.x, (1, 0)) if node.attr("transA", 0) else node.x
    b = node.builder.parameter(node, 1, lambda w: w.T, (1, 0)) if node.attr("transB", 0) else node.variable(1)
    c = node.optional_variable(2)
    if alpha == 1 and beta == 1 and c is not None and c.shape == (b.shape[1],):
        return F.affine(a, b, c)
    y = F.affine(a, b)
    y = y if alpha == 1 else y * alpha
    if c is None:
        return y
    return y + (c if beta == 1 else c * beta)


@operator("Einsum")
def _einsum(node: Node) -> nn.Variable:
    return F.einsum(*[node.variable(k) for k in range(len(node.inputs))], equation=node.attr("equation").replace(" ", ""))


@operator("Det")
def _det(node: Node) -> nn.Variable:
    n, batch = node.shape[-1], node.shape[:-2]
    return F.reshape(F.batch_det(F.reshape(node.x, (math.prod(batch), n, n))), batch)
