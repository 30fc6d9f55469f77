"""Attention."""

import numpy as np

from nn_core.graph_rewriting import follows_shapes
from nn_ext_onnx.exporting.arithmetic import where
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
        scores = scores + _hidden(call, *shape)
    weights = scores.op("Softmax", axis=-1)
    if mask is not None:  # Softmax makes NaN of a query that sees nothing
        largest = scores.reduce("ReduceMax", (-1,))
        weights = where(largest.compare("Equal", -np.inf), 0.0, weights)
    return weights.op("MatMul", call[2])


def _hidden(call: Call, n_queries: int, n_keys: int) -> Value:
    """Return the scores of keys that come after a query, and 0 for the others."""
    if follows_shapes(n_queries) or follows_shapes(n_keys):
        is_later = call.arange(n_queries).unsqueeze(1).compare("Less", call.arange(n_keys))
        return where(is_later, -np.inf, 0.0)
    return call.graph.constant(np.where(np.tril(np.ones((n_queries, n_keys), dtype=bool)), 0.0, -np.inf))
