"""Functions of the topic attention.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.attention import (
    CACHED_ATTENTION,
    DROPOUT_ATTENTION,
    SCALED_DOT_PRODUCT_ATTENTION,
    SPECS,
)


def scaled_dot_product_attention(
    q=None,
    k=None,
    v=None,
    mask=None,
    is_causal=False,
    scale=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Average values by how well their keys fit each query.

    y = softmax(scale * q k^T + mask) v, with the softmax over the keys

    Args:
        q: L queries of E features; the leading axes are batches and heads. Shape (B_1, ..., B_k, L, E).
        k: S keys. Shape (B_1, ..., B_k, S, E).
        v: One value of V features for each key. Shape (B_1, ..., B_k, S, V).
        mask: Added to the scores; -inf where a query must not see a key. Shape broadcast to (B_1, ..., B_k, L, S).
            Optional.
        is_causal: Query i sees the keys 0 to i only.
        scale: Factor of the scores; default: 1 / sqrt(E).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Averaged values. Shape (B_1, ..., B_k, L, V).

    Notes:
        A query that sees no key gives zeros. Backends with a kernel for it go through the keys block by block and never
        hold the (L, S) weights, so memory is linear in the lengths.

    Example:
        q, k, v = [nn.Variable((2, 4, 6, 8)) for _ in range(3)]
        F.scaled_dot_product_attention(q, k, v, is_causal=True).shape  # (2, 4, 6, 8)

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.2.1. Dao et al. (2022), FlashAttention: fast and
        memory-efficient exact attention with IO-awareness.

    Spec: function_spec.yaml, entry ScaledDotProductAttention
    """
    if surplus or unknown:
        refuse(SCALED_DOT_PRODUCT_ATTENTION, surplus, unknown)
    return apply(SCALED_DOT_PRODUCT_ATTENTION, (q, k, v, mask), {"is_causal": is_causal, "scale": scale}, outputs)


def dropout_attention(
    q=None,
    k=None,
    v=None,
    mask=None,
    p=0.5,
    is_causal=False,
    scale=None,
    seed=-1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Average values by how well their keys fit each query, with some of the weights dropped at random.

    y = dropout(softmax(scale * q k^T + mask)) v

    Args:
        q: L queries of E features; the leading axes are batches and heads. Shape (B_1, ..., B_k, L, E).
        k: S keys. Shape (B_1, ..., B_k, S, E).
        v: One value of V features for each key. Shape (B_1, ..., B_k, S, V).
        mask: Added to the scores; -inf where a query must not see a key. Shape broadcast to (B_1, ..., B_k, L, S).
            Optional.
        p: Chance of a weight to be dropped, in [0, 1).
        is_causal: Query i sees the keys 0 to i only.
        scale: Factor of the scores; default: 1 / sqrt(E).
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Averaged values. Shape (B_1, ..., B_k, L, V).
        drawn: Seed and counter that the random numbers follow from; `dropout_mask` makes the factors of the weights of
            them. Shape (2,).

    Notes:
        The weights that are kept are divided by 1 - p. The numbers are those that `dropout` of the weights draws from
        the same seed. For training only. Memory is linear in the lengths where a backend has a kernel for it.

    Example:
        q, k, v = [nn.Variable((2, 4, 6, 8)) for _ in range(3)]
        y, drawn = F.dropout_attention(q, k, v, p=0.1)
        y.shape  # (2, 4, 6, 8)

    References:
        As of scaled_dot_product_attention and dropout.

    Spec: function_spec.yaml, entry DropoutAttention
    """
    if surplus or unknown:
        refuse(DROPOUT_ATTENTION, surplus, unknown)
    return apply(
        DROPOUT_ATTENTION,
        (q, k, v, mask),
        {"p": p, "is_causal": is_causal, "scale": scale, "seed": seed},
        outputs,
    )


def cached_attention(
    q=None,
    k=None,
    v=None,
    k_cache=None,
    v_cache=None,
    lengths=None,
    scale=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Append keys and values to caches, and average all values so far by how well their keys fit each query.

    k_cache[n, h, lengths[n] + i] = k[n, h, i], v_cache likewise; y = softmax(scale * q k_cache^T) v_cache, where
    query i sees the keys 0 to lengths[n] + i

    Args:
        q: Queries of the L tokens that follow those in the caches, for H heads. Shape (N, H, L, E).
        k: Keys of these tokens. Shape (N, H, L, E).
        v: Values of these tokens. Shape (N, H, L, V).
        k_cache: Room for C keys of each sequence; it is rewritten when the function runs. Shape (N, H, C, E).
        v_cache: Room for their values; it is rewritten when the function runs. Shape (N, H, C, V).
        lengths: How many tokens of each sequence are in the caches already, from 0 to C - L. Shape (N,).
        scale: Factor of the scores; default: 1 / sqrt(E).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Averaged values. Shape (N, H, L, V).

    Notes:
        What the caches hold beyond the tokens so far is never read, so that they need no initial values, and a sequence
        is cut short by a smaller number in `lengths`. The time of a token is linear in the tokens so far, its memory
        constant. `nn_core.models.decoding` has what drives it.

    Example:
        q, k, v = [nn.Variable((2, 4, 1, 8)) for _ in range(3)]
        k_cache, v_cache = [nn.Variable((2, 4, 100, 8)) for _ in range(2)]
        F.cached_attention(q, k, v, k_cache, v_cache, nn.Variable((2,))).shape  # (2, 4, 1, 8)

    References:
        As of scaled_dot_product_attention.

    Spec: function_spec.yaml, entry CachedAttention
    """
    if surplus or unknown:
        refuse(CACHED_ATTENTION, surplus, unknown)
    return apply(CACHED_ATTENTION, (q, k, v, k_cache, v_cache, lengths), {"scale": scale}, outputs)


show_signatures(globals(), SPECS)
