"""Reference kernel of attention."""

from nn_core.reference.precision import widen
from nn_core.reference.registry import kernel
from nn_core.typing import Array, Namespace


@kernel("ScaledDotProductAttention")
def scaled_dot_product_attention(
    xp: Namespace, q: Array, k: Array, v: Array, mask: Array | None, *, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    """All scores, their softmax with the largest one subtracted, and the product with the values."""
    q, k, v = widen(xp, q), widen(xp, k), widen(xp, v)
    scores = xp.matmul(q, xp.moveaxis(k, -1, -2)) * scale
    if mask is not None:
        scores = scores + widen(xp, mask)
    if is_causal:
        n_queries, n_keys = scores.shape[-2:]
        visible = xp.arange(n_keys)[None, :] <= xp.arange(n_queries)[:, None]
        scores = xp.where(visible, scores, xp.asarray(-xp.inf, dtype=scores.dtype))
    if not scores.shape[-1]:
        return xp.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype), xp.full(q.shape[:-1], -xp.inf, dtype=q.dtype)
    largest = xp.max(scores, axis=-1, keepdims=True)
    largest = xp.where(xp.isinf(largest), xp.zeros_like(largest), largest)
    exponentials = xp.exp(scores - largest)
    total = xp.sum(exponentials, axis=-1, keepdims=True)
    seen = total > 0
    total = xp.where(seen, total, xp.ones_like(total))
    log_sum = xp.where(seen, largest + xp.log(total), xp.full_like(total, -xp.inf))
    return xp.matmul(exponentials / total, v), log_sum[..., 0]
