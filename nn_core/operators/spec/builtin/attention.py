"""Specifications of the topic attention.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

SCALED_DOT_PRODUCT_ATTENTION = FunctionSpec(
    name="ScaledDotProductAttention", api="scaled_dot_product_attention", topic="attention",
    doc="Average values by how well their keys fit each query.",
    inputs=(InputSpec(name="q"), InputSpec(name="k"), InputSpec(name="v"), InputSpec(name="mask", optional=True)),
    outputs=(OutputSpec(name="y"), OutputSpec(name="log_sum", dtype="statistic", aux=True, private=True)),
    args=(
        ArgSpec(name="is_causal", type="bool", default=False),
        ArgSpec(name="scale", type="float", default_rule="inverse_root_of_features"),
    ),
    backward=BackwardSpec(needs=("q", "k", "v", "mask", "y", "log_sum")), tags=("numeric_mask",),
)

DROPOUT_ATTENTION = FunctionSpec(
    name="DropoutAttention", api="dropout_attention", topic="attention",
    doc="Average values by how well their keys fit each query, with some of the weights dropped at random.",
    inputs=(InputSpec(name="q"), InputSpec(name="k"), InputSpec(name="v"), InputSpec(name="mask", optional=True)),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="drawn", dtype="index"),
        OutputSpec(name="log_sum", dtype="statistic", aux=True, private=True),
    ),
    args=(
        ArgSpec(name="p", type="float", default=0.5), ArgSpec(name="is_causal", type="bool", default=False),
        ArgSpec(name="scale", type="float", default_rule="inverse_root_of_features"),
        ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(needs=("q", "k", "v", "mask", "y", "drawn", "log_sum")), tags=("seeded", "numeric_mask"),
)

CACHED_ATTENTION = FunctionSpec(
    name="CachedAttention", api="cached_attention", topic="attention",
    doc="Append keys and values to caches, and average all values so far by how well their keys fit each query.",
    inputs=(
        InputSpec(name="q"), InputSpec(name="k"), InputSpec(name="v"),
        InputSpec(name="k_cache", dtype="parameter"), InputSpec(name="v_cache", dtype="parameter"),
        InputSpec(name="lengths", dtype="index"),
    ),
    outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="scale", type="float", default_rule="inverse_root_of_features"),),
    backward=BackwardSpec(none_because="it is for decoding; training sees whole sequences at once"),
    updates=("k_cache", "v_cache"),
)

SPECS: tuple[FunctionSpec, ...] = (SCALED_DOT_PRODUCT_ATTENTION, DROPOUT_ATTENTION, CACHED_ATTENTION)
