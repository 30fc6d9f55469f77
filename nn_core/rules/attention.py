"""Shape and gradient rule of attention."""

from typing import Any

from nn_core.errors import ShapeError
from nn_core.rules.broadcasting import broadcast_shapes, unbroadcast
from nn_core.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape


@shape_rule("ScaledDotProductAttention")
def scaled_dot_product_attention_shape(
    q: Shape, k: Shape, v: Shape, mask: Shape | None, **_: Any
) -> tuple[Shape, ...]:
    """The axes of q except the last, then the features of v; the sums have no features."""
    for name, shape in (("q", q), ("k", k), ("v", v)):
        if len(shape) < 2:
            raise ShapeError(f"{name} must have at least 2 axes, got {len(shape)}")
    if not q[:-2] == k[:-2] == v[:-2]:
        raise ShapeError(
            f"q, k and v must have the same leading axes, got {q[:-2]}, {k[:-2]} and {v[:-2]}"
        )
    if q[-1] != k[-1]:
        raise ShapeError(f"q and k must have the same number of features, got {q[-1]} and {k[-1]}")
    if k[-2] != v[-2]:
        raise ShapeError(f"k and v must have the same length, got {k[-2]} and {v[-2]}")
    scores = (*q[:-1], k[-2])
    if mask is not None and _broadcast(mask, scores) != scores:
        raise ShapeError(f"mask must broadcast to the shape of the scores {scores}, got {mask}")
    return (*q[:-1], v[-1]), q[:-1]


def _broadcast(mask: Shape, scores: Shape) -> Shape | None:
    try:
        return broadcast_shapes(mask, scores)
    except ShapeError:
        return None


@gradient("ScaledDotProductAttention")
def scaled_dot_product_attention(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """With the weights p: dv = p^T dy, and from ds = p (dy v^T - sum of p dy v^T over the keys) dq = ds k, dk = ds^T q."""
    weights = _weights(F, g)
    dq = dk = dv = d_mask = None
    if g.wants("v"):
        dv = F.batch_matmul(weights, g.grad, transpose_a=True)
    if g.wants("q") or g.wants("k") or g.wants("mask"):
        d_weights = weights * F.batch_matmul(g.grad, g.v, transpose_b=True)
        d_scores = d_weights - weights * F.sum(d_weights, axes=(d_weights.ndim - 1,), keep_dims=True)
        if g.wants("q"):
            dq = F.batch_matmul(d_scores, g.k) * g.scale
        if g.wants("k"):
            dk = F.batch_matmul(d_scores, g.q, transpose_a=True) * g.scale
        if g.wants("mask"):
            d_mask = unbroadcast(F, d_scores, g.mask.shape)
    return dq, dk, dv, d_mask


def _weights(F: Any, g: GradientCall) -> Any:
    """The softmax of the scores; zeros where a query sees no key, so that all its scores are -inf."""
    scores = F.batch_matmul(g.q, g.k, transpose_b=True) * g.scale
    if g.mask is not None:
        scores = scores + g.mask
    if g.is_causal:
        hidden = F.trilu(F.constant(val=1.0, shape=tuple(scores.shape[-2:])), k=1, upper=True)
        scores = F.bool_fill(scores, hidden, value=float("-inf"))
    last = (scores.ndim - 1,)
    exponentials = F.exp(scores - F.reset_inf(F.max(scores, axes=last, keep_dims=True)))
    total = F.sum(exponentials, axes=last, keep_dims=True)
    return exponentials / (total + F.equal_scalar(total, val=0.0))
