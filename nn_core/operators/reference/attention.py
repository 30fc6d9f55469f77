"""Reference kernel of attention."""

from nn_core.errors import ArgumentError
from nn_core.operators.reference.precision import sum_of, widen
from nn_core.operators.reference.random import dropout_mask
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace


@kernel("ScaledDotProductAttention")
def scaled_dot_product_attention(
    xp: Namespace, q: Array, k: Array, v: Array, mask: Array | None, *, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    """Compute all scores, their softmax with the largest one subtracted, and the product with the values."""
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


@kernel("CachedAttention")
def cached_attention(
    xp: Namespace,
    q: Array,
    k: Array,
    v: Array,
    k_cache: Array,
    v_cache: Array,
    lengths: Array,
    *,
    scale: float,
) -> tuple[Array, Array, Array]:
    """Return the scores of all places of the caches, of which those that no query sees yet are hidden."""
    n_new, capacity = q.shape[2], k_cache.shape[2]
    if lengths.size and not 0 <= int(lengths.min()) <= int(lengths.max()) <= capacity - n_new:
        found = f"values from {int(lengths.min())} to {int(lengths.max())}"
        raise ArgumentError(f"cached_attention: lengths must be in [0, {capacity - n_new}], got {found}")
    if not q.size or not v.size:
        return xp.zeros((*q.shape[:3], v.shape[3]), dtype=widen(xp, v).dtype), k_cache, v_cache
    number = xp.arange(capacity)[None, :] - lengths[:, None]  # of each place, counted from the first new token
    number = number[:, None, :, None]
    k_cache, v_cache = (_appended(xp, new, cache, number) for new, cache in ((k, k_cache), (v, v_cache)))
    seen = number.reshape(-1, 1, 1, capacity) <= xp.arange(n_new)[:, None]
    hidden = xp.where(seen, 0.0, -xp.inf)
    # there may be anything beyond the new tokens, NaN too
    keys, values = (
        xp.where(number < n_new, widen(xp, x), xp.asarray(0.0, dtype=widen(xp, x).dtype)) for x in (k_cache, v_cache)
    )
    weights, _ = _weighed(xp, q, keys, hidden.astype(keys.dtype), False, scale)
    return xp.matmul(weights, values), k_cache, v_cache


def _appended(xp: Namespace, new: Array, cache: Array, number: Array) -> Array:
    """Return the cache with the entries of `new` at the places that have their numbers."""
    place = xp.clip(number, 0, new.shape[2] - 1)
    there = xp.take_along_axis(widen(xp, new), xp.broadcast_to(place, (*cache.shape[:3], 1)), axis=2)
    return xp.where((number >= 0) & (number < new.shape[2]), there.astype(cache.dtype), cache)


def _weighed(xp: Namespace, q: Array, k: Array, mask: Array | None, is_causal: bool, scale: float) -> tuple[Array, Array]:
    """Return the weights of the keys for each query, and the logarithms of their denominators."""
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
