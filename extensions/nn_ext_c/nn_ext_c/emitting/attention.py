"""Attention."""

import numpy as np

from nn_ext_c.emitting.activation import largest
from nn_ext_c.emitting.linear import matmul, swapped
from nn_ext_c.emitting.registry import Call, emitter, reshaped
from nn_ext_c.loops import number
from nn_ext_c.program import Value


@emitter("ScaledDotProductAttention")
def _attention(call: Call) -> list[Value]:
    """Scores, their softmax, and the product with the values; a query that sees no key gives zeros."""
    scores = matmul(call, call[0], swapped(call[1]))
    scores = call.map(f"a * {number(call.args['scale'])}", scores)
    mask = call.optional(3)
    if mask is not None:
        scores = call.map("a + b", scores, mask)
    if call.args["is_causal"]:
        is_visible = np.tri(scores.shape[-2], scores.shape[-1])
        scores = call.map("b != 0.0f ? a : -INFINITY", scores, call.program.constant(is_visible, name="visible"))
    axes = [len(scores.shape) - 1]
    top = call.map("isinf(a) ? 0.0f : a", largest(call, scores, axes))
    e = call.map("expf(a - b)", scores, top)
    total = call.reduce(axes, "0.0f", "total += a;", e)
    y = matmul(call, call.map("b > 0.0f ? a / b : a", e, total), call[2])
    if len(call.output_shapes) == 1:
        return [y]
    log_sum = call.map("b > 0.0f ? a + logf(b) : -INFINITY", top, total)
    return [y, reshaped(call.program, call.name, log_sum, call.output_shapes[1])]
