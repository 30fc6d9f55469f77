"""Specifications of the topic normalization.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

BATCH_NORMALIZATION = FunctionSpec(
    name="BatchNormalization", api="batch_normalization", topic="normalization",
    doc="Standardize each channel over the batch, then scale and shift it.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="beta", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="gamma", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="mean", dtype="statistic", optional=True),
        InputSpec(name="variance", dtype="statistic", optional=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="batch_mean", dtype="statistic", aux=True),
        OutputSpec(name="batch_variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="axes", type="axes", default=(1,)),
        ArgSpec(name="decay_rate", type="float", default=0.9, minimum=0, maximum=1),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
        ArgSpec(name="batch_stat", type="bool", default=True),
        ArgSpec(name="no_scale", type="bool", default=False), ArgSpec(name="no_bias", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance", "batch_mean", "batch_variance")),
    tags=("recomputable",), updates=("mean", "variance"),
)

FUSED_BATCH_NORMALIZATION = FunctionSpec(
    name="FusedBatchNormalization", api="fused_batch_normalization", topic="normalization",
    doc="Batch normalization, an optional addition, and a ReLU in one function.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="beta", dtype="parameter", parameter=True),
        InputSpec(name="gamma", dtype="parameter", parameter=True), InputSpec(name="mean", dtype="statistic"),
        InputSpec(name="variance", dtype="statistic"), InputSpec(name="z", optional=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="batch_mean", dtype="statistic", aux=True),
        OutputSpec(name="batch_variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="axes", type="axes", default=(1,)),
        ArgSpec(name="decay_rate", type="float", default=0.9, minimum=0, maximum=1),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
        ArgSpec(name="batch_stat", type="bool", default=True),
        ArgSpec(name="nonlinearity", type="str", default="relu", choices=("relu",)),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance", "y", "batch_mean", "batch_variance")),
    tags=("recomputable",), updates=("mean", "variance"),
)

SYNC_BATCH_NORMALIZATION = FunctionSpec(
    name="SyncBatchNormalization", api="sync_batch_normalization", topic="normalization",
    doc="Batch normalization over the batches of all processes of a group; this operator is the share of one process.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="beta", dtype="parameter", parameter=True),
        InputSpec(name="gamma", dtype="parameter", parameter=True), InputSpec(name="mean", dtype="statistic"),
        InputSpec(name="variance", dtype="statistic"),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="batch_mean", dtype="statistic", aux=True),
        OutputSpec(name="batch_variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="group", type="str", default="world", choices=("world",)),
        ArgSpec(name="axes", type="axes", default=(1,)),
        ArgSpec(name="decay_rate", type="float", default=0.9, minimum=0, maximum=1),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
        ArgSpec(name="batch_stat", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance", "batch_mean", "batch_variance")),
    tags=("recomputable",), updates=("mean", "variance"),
)

LAYER_NORMALIZATION = FunctionSpec(
    name="LayerNormalization", api="layer_normalization", topic="normalization",
    doc="Standardize each sample over all its elements, then scale and shift each element.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="beta", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="gamma", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="mean", dtype="statistic", aux=True),
        OutputSpec(name="variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="batch_axis", type="axes", default=(0,)),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
        ArgSpec(name="no_scale", type="bool", default=False), ArgSpec(name="no_bias", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance")),
)

INSTANCE_NORMALIZATION = FunctionSpec(
    name="InstanceNormalization", api="instance_normalization", topic="normalization",
    doc="Standardize each channel of each sample, then scale and shift each channel.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="beta", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="gamma", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="mean", dtype="statistic", aux=True),
        OutputSpec(name="variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="channel_axis", type="axis", default=1),
        ArgSpec(name="batch_axis", type="axes", default=(0,)),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
        ArgSpec(name="no_scale", type="bool", default=False), ArgSpec(name="no_bias", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance")),
)

GROUP_NORMALIZATION = FunctionSpec(
    name="GroupNormalization", api="group_normalization", topic="normalization",
    doc="Standardize each group of channels of each sample, then scale and shift each channel.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="beta", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="gamma", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="mean", dtype="statistic", aux=True),
        OutputSpec(name="variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="num_groups", type="int", default=1, minimum=1),
        ArgSpec(name="channel_axis", type="axis", default=1),
        ArgSpec(name="batch_axis", type="axes", default=(0,)),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
        ArgSpec(name="no_scale", type="bool", default=False), ArgSpec(name="no_bias", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance")),
)

TENSOR_NORMALIZATION = FunctionSpec(
    name="TensorNormalization", api="tensor_normalization", topic="normalization",
    doc="Standardize over all axes but some, then scale and shift; what the normalizations of samples have in common.",
    inputs=(
        InputSpec(name="x"), InputSpec(name="beta", dtype="parameter", optional=True, parameter=True),
        InputSpec(name="gamma", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="mean", dtype="statistic", aux=True),
        OutputSpec(name="variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="axes", type="axes", default=(1,)),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
        ArgSpec(name="no_scale", type="bool", default=False), ArgSpec(name="no_bias", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance")),
)

WEIGHT_STANDARDIZATION = FunctionSpec(
    name="WeightStandardization", api="weight_standardization", topic="normalization",
    doc="Standardize the weights of each output channel.", inputs=(InputSpec(name="w"),),
    outputs=(
        OutputSpec(name="y"), OutputSpec(name="mean", dtype="statistic", aux=True),
        OutputSpec(name="variance", dtype="statistic", aux=True),
    ),
    args=(
        ArgSpec(name="channel_axis", type="axis", default=0),
        ArgSpec(name="eps", type="float", default=1e-05, minimum=0),
    ),
    backward=BackwardSpec(needs=("w", "mean", "variance")),
)

NORM_NORMALIZATION = FunctionSpec(
    name="NormNormalization", api="norm_normalization", topic="normalization",
    doc="Divide by the p-norm over some axes.", inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="p", type="float", default=2.0, minimum=1.0, shown_as_none=True),
        ArgSpec(name="axes", type="axes", default_rule="all_axes"),
        ArgSpec(name="eps", type="float", default=1e-12, minimum=0),
    ),
    backward=BackwardSpec(needs=("x",)),
)

WEIGHT_NORMALIZATION = FunctionSpec(
    name="WeightNormalization", api="weight_normalization", topic="normalization",
    doc="Give each slice of a weight the length that a parameter says.",
    inputs=(InputSpec(name="w"), InputSpec(name="g", dtype="parameter", parameter=True)),
    outputs=(OutputSpec(name="w_wn"),),
    args=(ArgSpec(name="dim", type="axis", default=0), ArgSpec(name="eps", type="float", default=1e-12, minimum=0)),
    backward=BackwardSpec(needs=("w", "g")),
)

SPECTRAL_NORM = FunctionSpec(
    name="SpectralNorm", api="spectral_norm", topic="normalization",
    doc="Divide a weight by its largest singular value, approached by power iteration.",
    inputs=(InputSpec(name="w"), InputSpec(name="u", dtype="parameter")),
    outputs=(
        OutputSpec(name="w_sn"), OutputSpec(name="left", aux=True), OutputSpec(name="right", aux=True),
        OutputSpec(name="before", aux=True),
    ),
    args=(
        ArgSpec(name="dim", type="axis", default=0), ArgSpec(name="itr", type="int", default=1, minimum=1),
        ArgSpec(name="eps", type="float", default=1e-12, minimum=0),
        ArgSpec(name="test", type="bool", default=False), ArgSpec(name="output_u", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("w", "left", "right")), updates=("u",),
)

MEAN_SUBTRACTION = FunctionSpec(
    name="MeanSubtraction", api="mean_subtraction", topic="normalization",
    doc="Subtract the mean of all samples seen so far.",
    inputs=(InputSpec(name="x"), InputSpec(name="rmean", dtype="parameter"), InputSpec(name="t", dtype="same")),
    outputs=(OutputSpec(name="y"), OutputSpec(name="rate", aux=True)),
    args=(
        ArgSpec(name="base_axis", type="axis", default=1),
        ArgSpec(name="update_running_mean", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("rate",)), updates=("rmean", "t"),
)

SPECS: tuple[FunctionSpec, ...] = (
    BATCH_NORMALIZATION, FUSED_BATCH_NORMALIZATION, SYNC_BATCH_NORMALIZATION, LAYER_NORMALIZATION,
    INSTANCE_NORMALIZATION, GROUP_NORMALIZATION, TENSOR_NORMALIZATION, WEIGHT_STANDARDIZATION, NORM_NORMALIZATION,
    WEIGHT_NORMALIZATION, SPECTRAL_NORM, MEAN_SUBTRACTION,
)
