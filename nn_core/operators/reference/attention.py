"""Reference kernel of attention."""

from nn_core.operators.reference.precision import sum_of, widen
from nn_core.operators.reference.random import dropout_mask
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace


@kernel("ScaledDotProductAttention")
def scaled_dot_product_attention(
    xp: Namespace, q: Array, k: Array, v: Array, mask: Array | None, *, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    """All scores, their softmax with the largest one subtracted, and the product with the values."""
    weights, log_sum = _weighed(xp, q, k, mask, is_causal, scale)
    return xp.matmul(weights, widen(xp, v)), log_sum


@kernel("DropoutAttention")
def dropout_attention(
    xp: Namespace,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    *,
    p: float,
    is_causal: bool,
    scale: float,
    seed: int,
    key: Array,
) -> tuple[Array, Array, Array]:
    """As above, the weights times factors that are drawn in C order."""
    weights, log_sum = _weighed(xp, q, k, mask, is_causal, scale)
    factors = dropout_mask(xp, key, shape=weights.shape, p=p).astype(weights.dtype)
    return xp.matmul(weights * factors, widen(xp, v)), key.astype(xp.int64), log_sum


def _weighed(xp: Namespace, q: Array, k: Array, mask: Array | None, is_causal: bool, scale: float) -> tuple[Array, Array]:
    """The weights of the keys for each query, and the logarithms of their denominators."""
    q, k = widen(xp, q), widen(xp, k)
    scores = xp.matmul(q, xp.moveaxis(k, -1, -2)) * scale
    if mask is not None:
        scores = scores + widen(xp, mask)
    if is_causal:
        n_queries, n_keys = scores.shape[-2:]
        visible = xp.arange(n_keys)[None, :] <= xp.arange(n_queries)[:, None]
        scores = xp.where(visible, scores, xp.asarray(-xp.inf, dtype=scores.dtype))
    if not scores.shape[-1]:
        return scores, xp.full(q.shape[:-1], -xp.inf, dtype=q.dtype)
    largest = xp.max(scores, axis=-1, keepdims=True)
    largest = xp.where(largest == -xp.inf, xp.zeros_like(largest), largest)
    exponentials = xp.exp(scores - largest)
    total = sum_of(xp, exponentials, -1, keepdims=True).astype(exponentials.dtype)
    seen = total != 0  # NaN is seen
    total = xp.where(seen, total, xp.ones_like(total))
    log_sum = xp.where(seen, largest + xp.log(total), xp.full_like(total, -xp.inf))
    return exponentials / total, log_sum[..., 0]
