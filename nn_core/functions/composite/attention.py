"""Attention with several heads."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.context import get_current_context
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import require_axes
from nn_core.engine.error_messages.whole import takes_whole_numbers
from nn_core.engine.graph.imperative import one_kind
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.engine.graph.mask_kinds import expect_kind
from nn_core.engine.graph.modes import AUTO_FORWARD
from nn_core.errors import ArgumentError, ShapeError
from nn_core.functions import attention as operators
from nn_core.functions.activation import softmax
from nn_core.functions.arithmetic import add2, log, mul2, mul_scalar, not_equal_scalar
from nn_core.functions.linear import affine, batch_matmul
from nn_core.functions.operand import Operand
from nn_core.functions.random import dropout as dropout_operator
from nn_core.functions.random import dropout_mask
from nn_core.functions.shape import broadcast, concatenate, pad, reshape, transpose
from nn_core.variable import Variable

__all__ = ["dropout_attention", "multi_head_attention", "scaled_dot_product_attention"]

#: Score of a place that must not be attended to, by dtype of the context: finite there, so that a row without any other
#: place stays finite too.
_MASKED: Final[Mapping[str, float]] = {"float16": -6e4, "bfloat16": -3e38, "float32": -3e38, "float64": -3e38}

#: A static graph with more weights than this does not hold them: below, the products of whole matrices are faster.
_MANY_WEIGHTS: Final = 2**22


@one_kind
def scaled_dot_product_attention(
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
    """Average values by how well their keys fit each query.

    y = softmax(scale * q k^T + mask) v, with the softmax over the keys

    Args:
        q: L queries of E features; the leading axes are batches and heads. Shape (B_1, ..., B_k, L, E).
        k: S keys. Shape (B_1, ..., B_k, S, E).
        v: One value of V features for each key. Shape (B_1, ..., B_k, S, V).
        mask: Added to the scores; -inf where a query must not see a key. One that has the dtype bool when the function is
            called is True where a query sees a key, and must stay so in a static graph. Shape broadcast
            to (B_1, ..., B_k, L, S).
        is_causal: Query i sees the keys 0 to i only.
        scale: Factor of the scores. Default: 1 / sqrt(E).
        n_outputs: see `nn_core.functions`.
        outputs: see `nn_core.functions`.

    Returns:
        Averaged values, shape (B_1, ..., B_k, L, V). A query that sees no key gives zeros.

    Raises:
        GraphError: by forward(), when a mask has become boolean after the call, or is boolean no longer, or is the boolean
            result of a function of a static graph, such as `broadcast`.

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.2.1. Dao et al. (2022), FlashAttention: fast and
        memory-efficient exact attention with IO-awareness.

    Example:
        >>> q, k, v = [nn.Variable((2, 4, 6, 8)) for _ in range(3)]
        >>> sees = nn.Variable.from_numpy_array(np.tri(6, dtype=bool))
        >>> F.scaled_dot_product_attention(q, k, v, sees).shape
        (2, 4, 6, 8)
    """
    return operators.scaled_dot_product_attention(
        q, k, v, _as_numbers(mask, "scaled_dot_product_attention"), is_causal, scale, n_outputs, outputs
    )


@one_kind
def dropout_attention(
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None = None,
    p: float = 0.5,
    is_causal: bool = False,
    scale: float | None = None,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, Operand]:
    """Average values by how well their keys fit each query, with some of the weights dropped at random.

    y = dropout(softmax(scale * q k^T + mask)) v

    Args:
        q: L queries of E features; the leading axes are batches and heads. Shape (B_1, ..., B_k, L, E).
        k: S keys. Shape (B_1, ..., B_k, S, E).
        v: One value of V features for each key. Shape (B_1, ..., B_k, S, V).
        mask: As that of `scaled_dot_product_attention`. Shape broadcast to (B_1, ..., B_k, L, S).
        p: Chance of a weight to be dropped, in [0, 1). Default: 0.5.
        is_causal: Query i sees the keys 0 to i only.
        scale: Factor of the scores. Default: 1 / sqrt(E).
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs: see `nn_core.functions`.
        outputs: see `nn_core.functions`.

    Returns:
        y: Averaged values, shape (B_1, ..., B_k, L, V).
        drawn: Seed and counter that the random numbers follow from; `dropout_mask` makes the factors of the weights of
            them. Shape (2,), int64.

    Raises:
        ArgumentError: when p is outside of [0, 1).
        GraphError: by forward(), when a mask has become boolean after the call, or is boolean no longer.

    Notes:
        The weights that are kept are divided by 1 - p. The numbers are those that `dropout` of the weights draws from the
        same seed. For training only. Memory is linear in the lengths where a backend has a kernel for it.

    Example:
        >>> q, k, v = [nn.Variable((2, 4, 6, 8)) for _ in range(3)]
        >>> y, drawn = F.dropout_attention(q, k, v, p=0.1)
        >>> y.shape
        (2, 4, 6, 8)
    """
    y, drawn = operators.dropout_attention(
        q, k, v, _as_numbers(mask, "dropout_attention"), p, is_causal, scale, seed, n_outputs, outputs
    )
    return y, drawn


def _as_numbers(mask: Operand | None, function: str) -> Operand | None:
    """Return a mask that is added to scores: of booleans 0 where a query sees a key, and -inf elsewhere."""
    if mask is None or not _is_boolean(mask):
        return mask
    result = log(mask)
    if isinstance(result, Variable):
        expect_kind(result, function, 0, is_boolean=True)
    return result


def _is_boolean(mask: Operand) -> bool:
    if isinstance(mask, Variable):
        return mask.trace_node is None and mask.data.dtype == np.bool_  # results of functions that are traced are numbers
    return isinstance(mask, NdArray) and mask.dtype == np.bool_


@follows_shapes
@one_kind
@takes_whole_numbers
def multi_head_attention(
    query: Operand,
    key: Operand,
    value: Operand,
    num_heads: int,
    q_weight: Operand,
    k_weight: Operand,
    v_weight: Operand,
    out_weight: Operand,
    q_bias: Operand | None = None,
    k_bias: Operand | None = None,
    v_bias: Operand | None = None,
    out_bias: Operand | None = None,
    attn_bias_k: Operand | None = None,
    attn_bias_v: Operand | None = None,
    dropout: float = 0.0,
    additive_mask: Operand | None = None,
    key_padding_mask: Operand | None = None,
) -> tuple[Operand, Operand]:
    """Attend to `value` by the likeness of `query` and `key`, in several heads at once.

    weights = softmax(q k^T / sqrt(E / num_heads)), y = (weights v) out_weight, with q, k, v projected for each head.

    Args:
        query: Queries, shape (T, B, Dq): length, batch, features.
        key: Keys, shape (S, B, Dk).
        value: Values, shape (S, B, Dv).
        num_heads: Number of heads; divides E and Ev.
        q_weight: Projection of the query, shape (Dq, E).
        k_weight: Projection of the key, shape (Dk, E).
        v_weight: Projection of the value, shape (Dv, Ev).
        out_weight: Projection of the result, shape (Ev, Eout).
        q_bias: Bias of the projection, shape (E,).
        k_bias: Bias of the projection, shape (E,).
        v_bias: Bias of the projection, shape (Ev,).
        out_bias: Bias of the projection, shape (Eout,).
        attn_bias_k: One more projected key for every batch entry, E elements; given together with attn_bias_v.
        attn_bias_v: The projected value that belongs to it, Ev elements.
        dropout: Share of the weights that are dropped.
        additive_mask: Added to the scores, shape (T, S). One that has the dtype bool when the function is called is True
            where a query sees a key.
        key_padding_mask: 1 where a key must be ignored, 0 elsewhere, shape (B, S).

    Returns:
        y: shape (T, B, Eout).
        weights: shape (B * num_heads, T, S), or S + 1 with attn_bias_k; dropout is applied to them.

    Raises:
        ShapeError: when axes or lengths do not fit each other.
        ArgumentError: when num_heads does not divide E and Ev, or dropout is outside of [0, 1).
        GraphError: by forward(), when additive_mask has become boolean after the call, or is boolean no longer.

    Notes:
        Where all keys of a row are ignored the weights are equal.

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.2.

    Example:
        >>> x = nn.Variable((5, 2, 8))  # length 5, batch 2
        >>> w = [nn.Variable((8, 8)) for _ in range(4)]
        >>> y, weights = F.multi_head_attention(x, x, x, 2, *w)
        >>> y.shape, weights.shape
        ((5, 2, 8), (4, 5, 5))
    """
    require_axes("multi_head_attention", ("length", "batch", "features"), query=query, key=key, value=value)
    projections = {"q_weight": q_weight, "k_weight": k_weight, "v_weight": v_weight, "out_weight": out_weight}
    require_axes("multi_head_attention", ("inputs", "outputs"), **projections)
    _check_sequences(query, key, value)
    additive_mask = _as_numbers(additive_mask, "multi_head_attention")
    n_target, n_batch, _ = query.shape
    n_source = key.shape[0]
    embed, embed_v = q_weight.shape[1], v_weight.shape[1]
    _check_heads(num_heads, embed, embed_v)
    if not 0 <= dropout < 1:
        raise ArgumentError(f"multi_head_attention: dropout must be in [0, 1), got {dropout!r}")
    _check_entries(attn_bias_k, attn_bias_v)

    q = mul_scalar(affine(query, q_weight, q_bias, base_axis=2), (embed // num_heads) ** -0.5)
    k = affine(key, k_weight, k_bias, base_axis=2)
    v = affine(value, v_weight, v_bias, base_axis=2)
    if attn_bias_k is not None and attn_bias_v is not None:
        k = _with_entry(k, attn_bias_k)
        v = _with_entry(v, attn_bias_v)
        n_source += 1
        additive_mask = None if additive_mask is None else _adding(pad(additive_mask, (0, 1)), 0)
        key_padding_mask = None if key_padding_mask is None else pad(key_padding_mask, (0, 1))

    q, k, v = _heads_first(q, num_heads), _heads_first(k, num_heads), _heads_first(v, num_heads)
    scores = batch_matmul(q, k, transpose_b=True)
    mask = _mask(additive_mask, key_padding_mask, num_heads)
    if mask is not None:
        by_sample = reshape(scores, (n_batch, num_heads, n_target, n_source))
        scores = reshape(_adding(add2(by_sample, mask), 1), (n_batch * num_heads, n_target, n_source))
    weights = softmax(scores)
    if AUTO_FORWARD.get() or n_batch * num_heads * n_target * n_source <= _MANY_WEIGHTS:
        if dropout > 0:
            weights = dropout_operator(weights, dropout)
        mixed = batch_matmul(weights, v)
    else:  # the weights are computed only where something reads them
        q, k, v = (reshape(x, (n_batch, num_heads, *x.shape[1:])) for x in (q, k, v))
        if dropout > 0:
            mixed, drawn = operators.dropout_attention(q, k, v, mask, dropout, scale=1.0)
            weights = mul2(weights, dropout_mask(drawn, (n_batch * num_heads, n_target, n_source), dropout))
        else:
            mixed = operators.scaled_dot_product_attention(q, k, v, mask, scale=1.0)
        mixed = reshape(mixed, (n_batch * num_heads, n_target, embed_v // num_heads))
    mixed = transpose(mixed, (1, 0, 2))
    y = affine(reshape(mixed, (n_target, n_batch, embed_v)), out_weight, out_bias, base_axis=2)
    return y, weights


def _check_sequences(query: Operand, key: Operand, value: Operand) -> None:
    if key.shape[0] != value.shape[0]:
        found = f"{key.shape[0]} and {value.shape[0]}"
        raise ShapeError(f"multi_head_attention: key and value must have the same length (axis 0), got {found}")
    if query.shape[1] != key.shape[1] or key.shape[1] != value.shape[1]:
        found = ", ".join(str(operand.shape[1]) for operand in (query, key, value))
        raise ShapeError(f"multi_head_attention: query, key and value must have the same batch (axis 1), got {found}")


def _check_heads(num_heads: int, embed: int, embed_v: int) -> None:
    if num_heads < 1:
        raise ArgumentError(f"multi_head_attention: num_heads must be at least 1, got {num_heads}")
    if embed % num_heads or embed_v % num_heads:
        sizes = f"{embed} and {embed_v}"
        raise ArgumentError(f"multi_head_attention: num_heads must divide E and Ev, got {num_heads} for {sizes}")


def _check_entries(bias_k: object, bias_v: object) -> None:
    if (bias_k is None) != (bias_v is None):
        missing = "attn_bias_k" if bias_k is None else "attn_bias_v"
        raise ArgumentError(f"multi_head_attention: attn_bias_k and attn_bias_v must be given together, got no {missing}")


def _mask(additive: Operand | None, padding: Operand | None, num_heads: int) -> Operand | None:
    """Return the mask that is added to the scores; its shape broadcasts to (B, num_heads, T, S)."""
    if padding is None:
        return None if additive is None else reshape(additive, (1, 1, *additive.shape))
    n_batch, n_source = padding.shape
    ignored = mul_scalar(not_equal_scalar(padding, 0.0), _MASKED[get_current_context().dtype])
    mask = reshape(ignored, (n_batch, 1, 1, n_source))
    return mask if additive is None else _adding(add2(mask, reshape(additive, (1, 1, *additive.shape))), 1)


def _adding(result: Operand, position: int) -> Operand:
    """Return a result that reads a mask at this position, which must not become boolean."""
    if isinstance(result, Variable):
        expect_kind(result, "multi_head_attention", position, is_boolean=False)
    return result


def _heads_first(x: Operand, num_heads: int) -> Operand:
    """(L, B, E) -> (B * num_heads, L, E / num_heads)."""
    length, n_batch, features = x.shape
    return transpose(reshape(x, (length, n_batch * num_heads, features // num_heads)), (1, 0, 2))


def _with_entry(x: Operand, entry: Operand) -> Operand:
    """x of shape (L, B, E) with `entry`, E elements, appended for every batch entry."""
    _, n_batch, features = x.shape
    return concatenate(x, broadcast(reshape(entry, (1, 1, features)), (1, n_batch, features)), axis=0)
