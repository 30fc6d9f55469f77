"""Attention layers and the transformer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import nn_core.functions as F
from nn_core.engine.error_messages.refusal import require_axes
from nn_core.errors import ArgumentError
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.affine import affine
from nn_core.parametric_functions.initial import ZEROS, glorot, shape_for_parameters, trained
from nn_core.parametric_functions.normalization import layer_normalization
from nn_core.parametric_functions.scope import Initializer, layer

#: An element-wise function between the two layers of a feed-forward network.
Activation = Callable[[Any], Any]


class KeyValueCache(Protocol):
    """Memory of the keys and values of earlier tokens, which attends to them for new ones."""

    def attend(self, q: Any, k: Any, v: Any, scale: float | None = None) -> Any:
        """Map shape (B, heads, L, E) and, for the values, (B, heads, L, V) to (B, heads, L, V)."""


@layer(
    "multi_head_attention",
    [
        ("q_weight", "Projection of the queries.", "(E_q, E_k')", True),
        ("k_weight", "Projection of the keys.", "(E_k, E_k')", True),
        ("v_weight", "Projection of the values.", "(E_v, E_v')", True),
        ("out_weight", "Projection of the result.", "(E_v', out_dim)", True),
        ("q_bias", "Bias of the queries.", "(E_k')", True),
        ("k_bias", "Bias of the keys.", "(E_k')", True),
        ("v_bias", "Bias of the values.", "(E_v')", True),
        ("out_bias", "Bias of the result.", "(out_dim)", True),
        ("attn_bias_k", "A further key, with `add_attn_bias`.", "(1, 1, E_k')", True),
        ("attn_bias_v", "A further value, with `add_attn_bias`.", "(1, 1, E_v')", True),
    ],
)
def multi_head_attention(
    query: Operand,
    key: Operand,
    value: Operand,
    num_heads: int = 12,
    dropout: float = 0.0,
    k_embed_dim: int | None = None,
    v_embed_dim: int | None = None,
    out_dim: int | None = None,
    rng: Rng | None = None,
    with_bias: bool = True,
    add_attn_bias: bool = False,
    additive_mask: Operand | None = None,
    key_padding_mask: Operand | None = None,
    fix_parameters: bool = False,
    param_init: Mapping[str, Initializer] | None = None,
    name: str | None = None,
    *,
    cache: KeyValueCache | None = None,
) -> tuple[Operand, Any]:
    """Attention of several heads: each mixes the values by how well the keys fit its query.

    Args:
        query: Queries. Shape (L_T, B, E_q).
        key: Keys. Shape (L_S, B, E_k).
        value: Values. Shape (L_S, B, E_v).
        num_heads: Number of heads; it divides `k_embed_dim` and `v_embed_dim`.
        dropout: Part of the attention weights that is dropped.
        k_embed_dim: Features of projected queries and keys, E_k'. Default: E_q.
        v_embed_dim: Features of projected values, E_v'. Default: E_v.
        out_dim: Features of the result. Default: `v_embed_dim`.
        add_attn_bias: Add a trained key and a trained value to all sequences.
        additive_mask: Added to the scores, for example -inf where a query must not see a key; one that has the dtype bool at
            the call is True where it sees one. Shape (L_T, L_S).
        key_padding_mask: Not zero where a key is padding. Shape (B, L_S).
        cache: The keys and values of earlier tokens, a `nn_core.models.decoding.Cache`. The sequence is appended to them,
            and each of its tokens attends to all up to itself. Without dropout, masks and `add_attn_bias`.

    Returns:
        The result, shape (L_T, B, out_dim), and the attention weights, shape (B * num_heads, L_T, L_S); None for the
        weights with a cache.

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.2.

    Example:
        >>> x = nn.Variable((5, 2, 24))  # length 5, batch 2
        >>> y, weights = PF.multi_head_attention(x, x, x, num_heads=4)
        >>> y.shape, weights.shape
        ((5, 2, 24), (8, 5, 5))
    """
    require_axes("multi_head_attention", ("length", "batch", "features"), query=query, key=key, value=value)
    q_dim, k_dim = shape_for_parameters(query)[2], shape_for_parameters(key)[2]
    v_dim = shape_for_parameters(value)[2]
    k_embed_dim = q_dim if k_embed_dim is None else k_embed_dim
    v_embed_dim = v_dim if v_embed_dim is None else v_embed_dim
    out_dim = v_embed_dim if out_dim is None else out_dim
    weights = {
        "q_weight": (q_dim, k_embed_dim),
        "k_weight": (k_dim, k_embed_dim),
        "v_weight": (v_dim, v_embed_dim),
        "out_weight": (v_embed_dim, out_dim),
    }
    biases = {"q_bias": k_embed_dim, "k_bias": k_embed_dim, "v_bias": v_embed_dim, "out_bias": out_dim}
    further = {"attn_bias_k": k_embed_dim, "attn_bias_v": v_embed_dim}
    given = param_init or {}
    _require_known(given, [*weights, *biases, *further])
    parameters: dict[str, Any] = dict.fromkeys([*biases, *further])
    for name, shape in weights.items():
        parameters[name] = trained(name, shape, given.get(name, glorot(*shape, rng=rng)), fix_parameters)
    if with_bias:
        for name, length in biases.items():
            parameters[name] = trained(name, (length,), given.get(name, ZEROS), fix_parameters)
    if add_attn_bias:
        for name, length in further.items():
            initializer = given.get(name, glorot(1, length, rng=rng))
            parameters[name] = trained(name, (1, 1, length), initializer, fix_parameters)
    if cache is not None:
        refused = {"dropout": dropout > 0, "add_attn_bias": add_attn_bias}
        refused |= {"additive_mask": additive_mask is not None, "key_padding_mask": key_padding_mask is not None}
        return _decoded(cache, (query, key, value), num_heads, parameters, refused), None
    result, attention = F.multi_head_attention(
        query,
        key,
        value,
        num_heads,
        **parameters,
        dropout=dropout,
        additive_mask=additive_mask,
        key_padding_mask=key_padding_mask,
    )
    return result, attention


def _require_known(names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ArgumentError(f"param_init: the names must be among {', '.join(known)}, got {name!r}")


def _decoded(
    cache: KeyValueCache, operands: Sequence[Any], num_heads: int, parameters: Mapping[str, Any], refused: Mapping[str, bool]
) -> Any:
    """Return the result of attention with a cache."""
    for name, is_given in refused.items():
        if is_given:
            raise ArgumentError(f"multi_head_attention: with a cache there must be no {name}, got one")
    heads = []
    for name, x in zip("qkv", operands, strict=True):
        y = F.affine(x, parameters[f"{name}_weight"], parameters[f"{name}_bias"], base_axis=2)
        if y.shape[2] % num_heads:
            raise ArgumentError(f"multi_head_attention: num_heads must divide E and Ev, got {num_heads} for {y.shape[2]}")
        heads.append(F.transpose(F.reshape(y, (*y.shape[:2], num_heads, y.shape[2] // num_heads)), (1, 2, 0, 3)))
    mixed = F.transpose(cache.attend(*heads), (2, 0, 1, 3))
    joined = F.reshape(mixed, (*mixed.shape[:2], -1))
    return F.affine(joined, parameters["out_weight"], parameters["out_bias"], base_axis=2)


@layer("transformer")
def transformer(
    src: Operand,
    tgt: Operand,
    embed_dim: int = 512,
    num_heads: int = 8,
    num_encoder_layers: int = 6,
    num_decoder_layers: int = 6,
    dim_feedforward: int = 2048,
    dropout: float = 0.1,
    activation: Activation | None = None,
    src_additive_mask: Operand | None = None,
    tgt_additive_mask: Operand | None = None,
    memory_additive_mask: Operand | None = None,
    src_key_padding_mask: Operand | None = None,
    tgt_key_padding_mask: Operand | None = None,
    memory_key_padding_mask: Operand | None = None,
    rng: Rng | None = None,
    add_attn_bias: bool = False,
    fix_parameters: bool = False,
    name: str | None = None,
) -> Operand:
    """Return a transformer: a stack of encoder layers, and one of decoder layers that attend to its result.

    The layers are in the scopes encoder00, encoder01, ... and decoder00, decoder01, ...

    Args:
        src: Source sequences. Shape (L_S, B, embed_dim).
        tgt: Target sequences. Shape (L_T, B, embed_dim).
        embed_dim: Features of both.
        num_heads: Number of heads of each attention.
        num_encoder_layers: Number of encoder layers.
        num_decoder_layers: Number of decoder layers.
        dim_feedforward: Features between the two affine layers of each layer.
        dropout: Part of the results of each block that is dropped.
        activation: Function between the two affine layers. Default: ReLU.
        src_additive_mask: Added to the scores of the encoder. Shape (L_S, L_S).
        tgt_additive_mask: Added to the scores of the decoder. Shape (L_T, L_T).
        memory_additive_mask: Added to the scores of decoder to encoder. Shape (L_T, L_S).
        src_key_padding_mask: Not zero where a source is padding. Shape (B, L_S).
        tgt_key_padding_mask: Not zero where a target is padding. Shape (B, L_T).
        memory_key_padding_mask: Not zero where a result of the encoder is not to be seen. Shape (B, L_S).
        add_attn_bias: Add a trained key and a trained value to all sequences.

    Returns:
        Shape (L_T, B, embed_dim).

    References:
        Vaswani et al. (2017), Attention is all you need.

    Example:
        >>> src, tgt = nn.Variable((7, 2, 16)), nn.Variable((5, 2, 16))
        >>> PF.transformer(src, tgt, 16, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=32).shape
        (5, 2, 16)
    """
    _require_features("transformer", embed_dim, src=src, tgt=tgt)
    memory = src
    for number in range(num_encoder_layers):
        memory = transformer_encode(
            memory,
            embed_dim,
            num_heads,
            dim_feedforward,
            dropout,
            activation,
            src_additive_mask,
            src_key_padding_mask,
            rng,
            add_attn_bias,
            fix_parameters,
            name=f"encoder{number:02d}",
        )
    for number in range(num_decoder_layers):
        tgt = transformer_decode(
            tgt,
            memory,
            embed_dim,
            num_heads,
            dim_feedforward,
            dropout,
            activation,
            tgt_additive_mask,
            memory_additive_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            rng,
            add_attn_bias,
            fix_parameters,
            name=f"decoder{number:02d}",
        )
    return tgt


@layer("transformer_encode")
def transformer_encode(
    src: Operand,
    embed_dim: int,
    num_heads: int,
    dim_feedforward: int = 2048,
    dropout: float = 0.1,
    activation: Activation | None = None,
    src_additive_mask: Operand | None = None,
    src_key_padding_mask: Operand | None = None,
    rng: Rng | None = None,
    add_attn_bias: bool = False,
    fix_parameters: bool = False,
    name: str | None = None,
) -> Operand:
    """One encoder layer of a transformer: self-attention, then a feed-forward network, each added and normalized.

    Args:
        src: Sequences. Shape (L_S, B, embed_dim).
        embed_dim: Features of the sequences.
        num_heads: Number of heads.
        dim_feedforward: Features between the two affine layers.
        dropout: Part of the results of each block that is dropped.
        activation: Function between the two affine layers. Default: ReLU.
        src_additive_mask: Added to the scores. Shape (L_S, L_S).
        src_key_padding_mask: Not zero where an element is padding. Shape (B, L_S).
        add_attn_bias: Add a trained key and a trained value to all sequences.

    Returns:
        Shape (L_S, B, embed_dim).

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.1.

    Example:
        >>> PF.transformer_encode(nn.Variable((7, 2, 16)), 16, 2, dim_feedforward=32).shape
        (7, 2, 16)
    """
    _require_features("transformer_encode", embed_dim, src=src)
    attended: Operand
    attended, _ = multi_head_attention(
        src,
        src,
        src,
        num_heads,
        rng=rng,
        add_attn_bias=add_attn_bias,
        additive_mask=src_additive_mask,
        key_padding_mask=src_key_padding_mask,
        fix_parameters=fix_parameters,
        name="src_self_attn",
    )
    src = _added(src, attended, dropout, fix_parameters, "enc_layer_norm1")
    return _feed_forward(src, dim_feedforward, dropout, activation, rng, fix_parameters, "enc", "enc_layer_norm2")


@layer("transformer_decode")
def transformer_decode(
    tgt: Operand,
    memory: Operand,
    embed_dim: int,
    num_heads: int,
    dim_feedforward: int = 2048,
    dropout: float = 0.1,
    activation: Activation | None = None,
    tgt_additive_mask: Operand | None = None,
    memory_additive_mask: Operand | None = None,
    tgt_key_padding_mask: Operand | None = None,
    memory_key_padding_mask: Operand | None = None,
    rng: Rng | None = None,
    add_attn_bias: bool = False,
    fix_parameters: bool = False,
    name: str | None = None,
) -> Operand:
    """One decoder layer of a transformer: self-attention, attention to the encoder, then a feed-forward network.

    Args:
        tgt: Sequences. Shape (L_T, B, embed_dim).
        memory: Result of the encoder. Shape (L_S, B, embed_dim).
        embed_dim: Features of both.
        num_heads: Number of heads.
        dim_feedforward: Features between the two affine layers.
        dropout: Part of the results of each block that is dropped.
        activation: Function between the two affine layers. Default: ReLU.
        tgt_additive_mask: Added to the scores of the self-attention. Shape (L_T, L_T).
        memory_additive_mask: Added to the scores of the attention to the encoder. Shape (L_T, L_S).
        tgt_key_padding_mask: Not zero where an element is padding. Shape (B, L_T).
        memory_key_padding_mask: Not zero where a result of the encoder is not to be seen. Shape (B, L_S).
        add_attn_bias: Add a trained key and a trained value to all sequences.

    Returns:
        Shape (L_T, B, embed_dim).

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.1.

    Example:
        >>> tgt, memory = nn.Variable((5, 2, 16)), nn.Variable((7, 2, 16))
        >>> PF.transformer_decode(tgt, memory, 16, 2, dim_feedforward=32).shape
        (5, 2, 16)
    """
    _require_features("transformer_decode", embed_dim, tgt=tgt, memory=memory)
    attended: Operand
    attended, _ = multi_head_attention(
        tgt,
        tgt,
        tgt,
        num_heads,
        rng=rng,
        add_attn_bias=add_attn_bias,
        additive_mask=tgt_additive_mask,
        key_padding_mask=tgt_key_padding_mask,
        fix_parameters=fix_parameters,
        name="tgt_self_attn",
    )
    tgt = _added(tgt, attended, dropout, fix_parameters, "dec_layer_norm1")
    attended, _ = multi_head_attention(
        tgt,
        memory,
        memory,
        num_heads,
        rng=rng,
        add_attn_bias=add_attn_bias,
        additive_mask=memory_additive_mask,
        key_padding_mask=memory_key_padding_mask,
        fix_parameters=fix_parameters,
        name="tgt_memory_attn",
    )
    tgt = _added(tgt, attended, dropout, fix_parameters, "dec_layer_norm2")
    return _feed_forward(tgt, dim_feedforward, dropout, activation, rng, fix_parameters, "dec", "dec_layer_norm3")


def _feed_forward(
    x: Operand,
    dim_feedforward: int,
    dropout: float,
    activation: Activation | None,
    rng: Rng | None,
    fix_parameters: bool,
    prefix: str,
    norm_name: str,
) -> Operand:
    layer: Callable[..., Any] = partial(affine, base_axis=2, fix_parameters=fix_parameters, rng=rng)
    hidden: Operand = layer(x, dim_feedforward, name=f"{prefix}_affine1")
    hidden = _dropped((activation or F.relu)(hidden), dropout)
    result: Operand = layer(hidden, x.shape[2], name=f"{prefix}_affine2")
    return _added(x, result, dropout, fix_parameters, norm_name)


def _added(x: Operand, result: Operand, dropout: float, fix_parameters: bool, norm_name: str) -> Operand:
    total = F.add2(x, _dropped(result, dropout))
    normalized: Operand = layer_normalization(total, batch_axis=(0, 1), fix_parameters=fix_parameters, name=norm_name)
    return normalized


def _dropped(x: Operand, dropout: float) -> Operand:
    return F.dropout(x, dropout) if dropout > 0 else x


def _require_features(function: str, embed_dim: int, **sequences: Any) -> None:
    for name, sequence in sequences.items():
        if sequence.ndim != 3 or sequence.shape[2] != embed_dim:
            raise ArgumentError(f"{function}: {name} must have the shape (length, batch, {embed_dim}), got {sequence.shape}")
