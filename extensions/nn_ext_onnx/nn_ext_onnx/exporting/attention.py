"""Attention."""

import numpy as np

from nn_ext_onnx.exporting.linear import transposed
from nn_ext_onnx.exporting.registry import Call, converter
from nn_ext_onnx.exporting.values import Value


@converter("ScaledDotProductAttention")
def _attention(call: Call) -> Value:
    scores = call[0].op("MatMul", transposed(call[1], len(call.shapes[1]))) * call.args["scale"]
    mask = call.optional(3)
    scores = scores if mask is None else scores + mask
    if call.args["is_causal"]:
        shape = (call.shapes[0][-2], call.shapes[1][-2])
        hidden = np.where(np.tril(np.ones(shape, dtype=bool)), 0.0, -np.inf).astype(np.float32)
        scores = scores + call.graph.constant(hidden)
    return scores.op("Softmax", axis=-1).op("MatMul", call[2])
