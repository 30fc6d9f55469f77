"""Attention as a module."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import nn_core.parametric_functions as PF
from nn_core.initializer import Rng
from nn_core.layers.layer import Layer, checked
from nn_core.parametric_functions.initial import counted
from nn_core.parametric_functions.scope import Initializer


@checked
@dataclass(eq=False, repr=False)
class MultiHeadAttention(Layer):
    """Attention of several heads; of a sequence to itself where no keys are given.

    Args:
        num_heads: Number of heads; it divides the features.
        dropout: Fraction of the attention weights that is dropped while the network trains.
        k_embed_dim: Features of projected queries and keys. Default: those of the queries.
        v_embed_dim: Features of projected values. Default: those of the values.
        out_dim: Features of the result. Default: `v_embed_dim`.
        rng: Generator of the usual initial values.
        with_bias: Add biases to all projections.
        add_attn_bias: Add a trained key and a trained value to all sequences.
        fix_parameters: Do not train the parameters.
        param_init: Initial values by the names of `nn_core.parametric_functions.multi_head_attention`.
        output_weights: Also return the attention weights, shape (B * num_heads, L_T, L_S).

    Raises:
        ArgumentError: when `num_heads` is not positive.

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.2.

    Example:
        >>> nn.layers.MultiHeadAttention(4)(nn.Variable((5, 2, 24))).shape  # length 5, batch 2
        (5, 2, 24)
    """

    num_heads: int
    _: KW_ONLY
    dropout: float = 0.0
    k_embed_dim: int | None = None
    v_embed_dim: int | None = None
    out_dim: int | None = None
    rng: Rng | None = None
    with_bias: bool = True
    add_attn_bias: bool = False
    fix_parameters: bool = False
    param_init: Mapping[str, Initializer] | None = None
    output_weights: bool = False

    def __post_init__(self) -> None:
        counted("num_heads", self.num_heads, "MultiHeadAttention")

    def call(
        self, query: Any, key: Any = None, value: Any = None, additive_mask: Any = None, key_padding_mask: Any = None
    ) -> Any:
        """Map shape (L_T, B, E) of queries, and (L_S, B, E) of keys and values, to (L_T, B, out_dim).

        Args:
            query: Queries.
            key: Keys. Default: the queries.
            value: Values. Default: the keys.
            additive_mask: Added to the scores, such as -inf where a query must not see a key. Shape (L_T, L_S).
            key_padding_mask: Not zero where a key is padding. Shape (B, L_S).
        """
        key = query if key is None else key
        settings = self.settings()
        output_weights = settings.pop("output_weights")
        settings["dropout"] = self.dropout if self.training else 0.0
        y, weights = PF.multi_head_attention(
            query,
            key,
            key if value is None else value,
            additive_mask=additive_mask,
            key_padding_mask=key_padding_mask,
            **settings,
        )
        return (y, weights) if output_weights else y
