"""Shape and gradient rule of attention."""

from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.broadcasting import broadcast_shapes, unbroadcast
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape


@shape_rule("ScaledDotProductAttention")
def scaled_dot_product_attention_shape(q: Shape, k: Shape, v: Shape, mask: Shape | None, **_: Any) -> tuple[Shape, ...]:
    """Return the axes of q except the last, then the features of v; the sums have no features."""
    for name, shape in (("q", q), ("k", k), ("v", v)):
        if len(shape) < 2:
            raise ShapeError(f"{name} must have at least 2 axes, got {len(shape)}")
    if not q[:-2] == k[:-2] == v[:-2]:
        raise ShapeError(f"q, k and v must have the same leading axes, got {q[:-2]}, {k[:-2]} and {v[:-2]}")
    if q[-1] != k[-1]:
        raise ShapeError(f"q and k must have the same number of features, got {q[-1]} and {k[-1]}")
    if k[-2] != v[-2]:
        raise ShapeError(f"k and v must have the same length, got {k[-2]} and {v[-2]}")
    scores = (*q[:-1], k[-2])
    if mask is not None and _broadcast(mask, scores) != scores:
        raise ShapeError(f"mask must broadcast to the shape of the scores {scores}, got {mask}")
    return (*q[:-1], v[-1]), q[:-1]


@shape_rule("DropoutAttention")
def dropout_attention_shape(
    q: Shape, k: Shape, v: Shape, mask: Shape | None, *, p: float, **settings: Any
) -> tuple[Shape | None, ...]:
    """Of attention, with seed and counter in between."""
    if not 0 <= p < 1:
        raise ArgumentError(f"p must be in [0, 1), got {p}")
    y, log_sum = scaled_dot_product_attention_shape(q, k, v, mask, **settings)
    return y, (2,), log_sum


@shape_rule("CachedAttention")
def cached_attention_shape(
    q: Shape, k: Shape, v: Shape, k_cache: Shape, v_cache: Shape, lengths: Shape, **_: Any
) -> tuple[Shape, ...]:
    """Return the axes of q except the last, then the features of v."""
    if len(q) != 4 or len(v) != 4 or len(k_cache) != 4:
        raise ShapeError(f"q, v and k_cache must have 4 axes (sequences, heads, length, features), got {q}, {v} and {k_cache}")
    n, heads, n_new, features = q
    room = (n, heads, k_cache[2])
    expected = {
        "k": (k, q),
        "v": (v, (*q[:3], v[3])),
        "k_cache": (k_cache, (*room, features)),
        "v_cache": (v_cache, (*room, v[3])),
        "lengths": (lengths, (n,)),
    }
    for name, (shape, wanted) in expected.items():
        if shape != wanted:
            raise ShapeError(f"{name} must have the shape {wanted}, got {shape}")
    if room[2] < n_new:
        raise ShapeError(f"the caches must have room for the {n_new} tokens of q, got {room[2]}")
    return ((*q[:-1], v[-1]),)


def _broadcast(mask: Shape, scores: Shape) -> Shape | None:
    try:
        return broadcast_shapes(mask, scores)
    except ShapeError:
        return None


@gradient("ScaledDotProductAttention")
def scaled_dot_product_attention(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """With the weights p: dv = p^T dy, and from ds = p (dy v^T - sum of p dy v^T over the keys) dq = ds k, dk = ds^T q."""
    return _gradients(F, g, g.grad, None) if g.k.shape[-2] else _zeros(F, g)


@gradient("DropoutAttention")
def dropout_attention(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """With the factors of the weights: dv from the weights that are kept, and dy v^T times the factors."""
    if not g.k.shape[-2]:
        return _zeros(F, g)
    shape = (*g.q.shape[:-1], g.k.shape[-2])
    return _gradients(F, g, g.grads[0], F.dropout_mask(g.drawn, shape=shape, p=g.p))


def _zeros(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Return the gradients without keys: nothing is seen, so that results are 0."""
    shapes = {name: tuple(getattr(g, name).shape) for name in ("q", "k", "v", "mask") if g.wants(name)}
    return tuple([F.constant(val=0, shape=shapes[name]) if name in shapes else None for name in ("q", "k", "v", "mask")])


def _gradients(F: Any, g: GradientCall, dy: Any, factors: Any) -> tuple[Any, ...]:
    weights, hidden = _weights(F, g)
    dq = dk = dv = d_mask = None
    if g.wants("v"):
        dv = F.batch_matmul(weights if factors is None else weights * factors, dy, transpose_a=True)
    if g.wants("q") or g.wants("k") or g.wants("mask"):
        d_weights = weights * F.batch_matmul(dy, g.v, transpose_b=True)
        if factors is not None:
            d_weights = d_weights * factors
        d_scores = d_weights - weights * F.sum(d_weights, axes=(d_weights.ndim - 1,), keep_dims=True)
        if hidden is not None:  # 0 times the sum is NaN where that is
            d_scores = F.bool_fill(d_scores, hidden, value=0.0)
        if g.wants("q"):
            dq = F.batch_matmul(d_scores, g.k) * g.scale
        if g.wants("k"):
            dk = F.batch_matmul(d_scores, g.q, transpose_a=True) * g.scale
        if g.wants("mask"):
            d_mask = unbroadcast(F, d_scores, g.mask.shape)
    return dq, dk, dv, d_mask


def _weights(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Return the softmax of the scores, and which of them a causal query does not see, or None.

    Where a query sees no key, so that all its scores are -inf, the weights are zero. The weight of a key that comes after
    the query is zero also where other keys make the softmax NaN: NaN does not reach the gradients of what was hidden.
    """
    scores = F.batch_matmul(g.q, g.k, transpose_b=True) * g.scale
    if g.mask is not None:
        scores = scores + g.mask
    hidden = None
    if g.is_causal:
        hidden = F.trilu(F.constant(val=1.0, shape=tuple(scores.shape[-2:])), k=1, upper=True)
        scores = F.bool_fill(scores, hidden, value=float("-inf"))
    last = (scores.ndim - 1,)
    largest = F.max(scores, axes=last, keep_dims=True)
    largest = F.bool_fill(largest, F.equal_scalar(largest, val=float("-inf")), value=0.0)
    exponentials = F.exp(scores - largest)
    total = F.sum(exponentials, axes=last, keep_dims=True)
    weights = exponentials / (total + F.equal_scalar(total, val=0.0))
    return weights if hidden is None else F.bool_fill(weights, hidden, value=0.0), hidden
