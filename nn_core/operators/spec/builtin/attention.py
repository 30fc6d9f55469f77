"""Specifications of the topic attention.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

SCALED_DOT_PRODUCT_ATTENTION = FunctionSpec(
    name="ScaledDotProductAttention",
    api="scaled_dot_product_attention",
    topic="attention",
    doc="Average values by how well their keys fit each query.",
    inputs=(
        InputSpec(
            name="q",
            doc="L queries of E features; the leading axes are batches and heads.",
            shape="(B_1, ..., B_k, L, E)",
        ),
        InputSpec(name="k", doc="S keys.", shape="(B_1, ..., B_k, S, E)"),
        InputSpec(name="v", doc="One value of V features for each key.", shape="(B_1, ..., B_k, S, V)"),
        InputSpec(
            name="mask",
            doc="Added to the scores; -inf where a query must not see a key.",
            shape="broadcast to (B_1, ..., B_k, L, S)",
            optional=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Averaged values.", shape="(B_1, ..., B_k, L, V)"),
        OutputSpec(
            name="log_sum",
            doc="Logarithm of the sum of the exponentials of the scores.",
            shape="(B_1, ..., B_k, L)",
            dtype="statistic",
            aux=True,
            private=True,
        ),
    ),
    args=(
        ArgSpec(name="is_causal", type="bool", doc="Query i sees the keys 0 to i only.", default=False),
        ArgSpec(
            name="scale",
            type="float",
            doc="Factor of the scores; default: 1 / sqrt(E).",
            default_rule="inverse_root_of_features",
        ),
    ),
    backward=BackwardSpec(needs=("q", "k", "v", "mask", "y", "log_sum")),
    tags=("numeric_mask",),
    formula="y = softmax(scale * q k^T + mask) v, with the softmax over the keys",
    notes=(
        "A query that sees no key gives zeros. Backends with a kernel for it go through the keys block by "
        "block and never hold the (L, S) weights, so memory is linear in the lengths."
    ),
    references=(
        "Vaswani et al. (2017), Attention is all you need, section 3.2.1. Dao et al. (2022), "
        "FlashAttention: fast and memory-efficient exact attention with IO-awareness."
    ),
    example=(
        "q, k, v = [nn.Variable((2, 4, 6, 8)) for _ in range(3)]\nF.scaled_dot_product_attention(q, k, v, "
        "is_causal=True).shape  # (2, 4, 6, 8)"
    ),
)

DROPOUT_ATTENTION = FunctionSpec(
    name="DropoutAttention",
    api="dropout_attention",
    topic="attention",
    doc="Average values by how well their keys fit each query, with some of the weights dropped at random.",
    inputs=(
        InputSpec(
            name="q",
            doc="L queries of E features; the leading axes are batches and heads.",
            shape="(B_1, ..., B_k, L, E)",
        ),
        InputSpec(name="k", doc="S keys.", shape="(B_1, ..., B_k, S, E)"),
        InputSpec(name="v", doc="One value of V features for each key.", shape="(B_1, ..., B_k, S, V)"),
        InputSpec(
            name="mask",
            doc="Added to the scores; -inf where a query must not see a key.",
            shape="broadcast to (B_1, ..., B_k, L, S)",
            optional=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Averaged values.", shape="(B_1, ..., B_k, L, V)"),
        OutputSpec(
            name="drawn",
            doc=(
                "Seed and counter that the random numbers follow from; `dropout_mask` makes the "
                "factors of the weights of them."
            ),
            shape="(2,)",
            dtype="index",
        ),
        OutputSpec(
            name="log_sum",
            doc="Logarithm of the sum of the exponentials of the scores.",
            shape="(B_1, ..., B_k, L)",
            dtype="statistic",
            aux=True,
            private=True,
        ),
    ),
    args=(
        ArgSpec(name="p", type="float", doc="Chance of a weight to be dropped, in [0, 1).", default=0.5),
        ArgSpec(name="is_causal", type="bool", doc="Query i sees the keys 0 to i only.", default=False),
        ArgSpec(
            name="scale",
            type="float",
            doc="Factor of the scores; default: 1 / sqrt(E).",
            default_rule="inverse_root_of_features",
        ),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(needs=("q", "k", "v", "mask", "y", "drawn", "log_sum")),
    tags=("seeded", "numeric_mask"),
    formula="y = dropout(softmax(scale * q k^T + mask)) v",
    notes=(
        "The weights that are kept are divided by 1 - p. The numbers are those that `dropout` of the "
        "weights draws from the same seed. For training only. Memory is linear in the lengths where a "
        "backend has a kernel for it."
    ),
    references="As of scaled_dot_product_attention and dropout.",
    example=(
        "q, k, v = [nn.Variable((2, 4, 6, 8)) for _ in range(3)]\ny, drawn = F.dropout_attention(q, k, v, "
        "p=0.1)\ny.shape  # (2, 4, 6, 8)"
    ),
)

CACHED_ATTENTION = FunctionSpec(
    name="CachedAttention",
    api="cached_attention",
    topic="attention",
    doc="Append keys and values to caches, and average all values so far by how well their keys fit each query.",
    inputs=(
        InputSpec(
            name="q",
            doc="Queries of the L tokens that follow those in the caches, for H heads.",
            shape="(N, H, L, E)",
        ),
        InputSpec(name="k", doc="Keys of these tokens.", shape="(N, H, L, E)"),
        InputSpec(name="v", doc="Values of these tokens.", shape="(N, H, L, V)"),
        InputSpec(
            name="k_cache",
            doc="Room for C keys of each sequence; it is rewritten when the function runs.",
            shape="(N, H, C, E)",
            dtype="parameter",
        ),
        InputSpec(
            name="v_cache",
            doc="Room for their values; it is rewritten when the function runs.",
            shape="(N, H, C, V)",
            dtype="parameter",
        ),
        InputSpec(
            name="lengths",
            doc="How many tokens of each sequence are in the caches already, from 0 to C - L.",
            shape="(N,)",
            dtype="index",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Averaged values.", shape="(N, H, L, V)"),),
    args=(
        ArgSpec(
            name="scale",
            type="float",
            doc="Factor of the scores; default: 1 / sqrt(E).",
            default_rule="inverse_root_of_features",
        ),
    ),
    backward=BackwardSpec(none_because="it is for decoding; training sees whole sequences at once"),
    updates=("k_cache", "v_cache"),
    formula=(
        "k_cache[n, h, lengths[n] + i] = k[n, h, i], v_cache likewise; y = softmax(scale * q k_cache^T) "
        "v_cache, where query i sees the keys 0 to lengths[n] + i"
    ),
    notes=(
        "What the caches hold beyond the tokens so far is never read, so that they need no initial values, "
        "and a sequence is cut short by a smaller number in `lengths`. The time of a token is linear in "
        "the tokens so far, its memory constant. `nn_core.models.decoding` has what drives it."
    ),
    references="As of scaled_dot_product_attention.",
    example=(
        "q, k, v = [nn.Variable((2, 4, 1, 8)) for _ in range(3)]\nk_cache, v_cache = [nn.Variable((2, 4, "
        "100, 8)) for _ in range(2)]\nF.cached_attention(q, k, v, k_cache, v_cache, "
        "nn.Variable((2,))).shape  # (2, 4, 1, 8)"
    ),
)

SPECS: tuple[FunctionSpec, ...] = (SCALED_DOT_PRODUCT_ATTENTION, DROPOUT_ATTENTION, CACHED_ATTENTION)
