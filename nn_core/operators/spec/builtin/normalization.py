"""Specifications of the topic normalization.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

BATCH_NORMALIZATION = FunctionSpec(
    name="BatchNormalization",
    api="batch_normalization",
    topic="normalization",
    doc="Standardize each channel over the batch, then scale and shift it.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; the C_i are its axes named by `axes`.",
            shape="(N_1, ..., C_i, ..., N_n)",
        ),
        InputSpec(
            name="beta",
            doc="Shift; none if not given.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="gamma",
            doc="Scale; 1 if not given.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="mean",
            doc="Running mean: rewritten if `batch_stat`, else used.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            optional=True,
        ),
        InputSpec(
            name="variance",
            doc="Running variance: rewritten if `batch_stat`, else used.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            optional=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output.", shape="(N_1, ..., C_i, ..., N_n)"),
        OutputSpec(
            name="batch_mean",
            doc="Mean that was subtracted.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="batch_variance",
            doc="Variance that was divided by, biased if of the batch.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes that are kept, such as the channels; statistics are taken over all others.",
            default=(1,),
        ),
        ArgSpec(
            name="decay_rate",
            type="float",
            doc="How much of the running statistics a step keeps.",
            default=0.9,
            minimum=0,
            maximum=1,
        ),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
        ArgSpec(
            name="batch_stat",
            type="bool",
            doc="Standardize by the statistics of this batch (training), not by the running ones.",
            default=True,
        ),
        ArgSpec(name="no_scale", type="bool", doc="States that gamma is not given.", default=False),
        ArgSpec(name="no_bias", type="bool", doc="States that beta is not given.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance", "batch_mean", "batch_variance")),
    tags=("recomputable",),
    updates=("mean", "variance"),
    formula="y = gamma (x - mean) / sqrt(variance + eps) + beta",
    notes=(
        "With M elements a channel the running variance takes in the unbiased variance, M / (M - 1) of the "
        "biased one that x is divided by; with a single element it takes in 0 (NNabla: NaN). An empty "
        "batch leaves the running statistics alone. Without `batch_stat` gradients flow to mean and "
        "variance (NNabla: zero)."
    ),
    references="Ioffe and Szegedy (2015), Batch normalization, algorithms 1 and 2.",
    example=(
        "F.batch_normalization(nn.Variable((8, 3, 4, 4)), *[nn.Variable((1, 3, 1, 1)) for _ in "
        "range(4)]).shape  # (8, 3, 4, 4)"
    ),
)

FUSED_BATCH_NORMALIZATION = FunctionSpec(
    name="FusedBatchNormalization",
    api="fused_batch_normalization",
    topic="normalization",
    doc="Batch normalization, an optional addition, and a ReLU in one function.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; the C_i are its axes named by `axes`.",
            shape="(N_1, ..., C_i, ..., N_n)",
        ),
        InputSpec(name="beta", doc="Shift.", shape="(1, ..., C_i, ..., 1)", dtype="parameter", parameter=True),
        InputSpec(
            name="gamma",
            doc="Scale.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="mean",
            doc="Running mean: rewritten if `batch_stat`, else used.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
        ),
        InputSpec(
            name="variance",
            doc="Running variance: rewritten if `batch_stat`, else used.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
        ),
        InputSpec(
            name="z",
            doc="Added before the nonlinearity, such as the shortcut of a residual block.",
            shape="(N_1, ..., C_i, ..., N_n)",
            optional=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output.", shape="(N_1, ..., C_i, ..., N_n)"),
        OutputSpec(
            name="batch_mean",
            doc="Mean that was subtracted.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="batch_variance",
            doc="Variance that was divided by, biased if of the batch.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes that are kept; statistics are taken over all others.",
            default=(1,),
        ),
        ArgSpec(
            name="decay_rate",
            type="float",
            doc="How much of the running statistics a step keeps.",
            default=0.9,
            minimum=0,
            maximum=1,
        ),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
        ArgSpec(
            name="batch_stat",
            type="bool",
            doc="Standardize by the statistics of this batch (training), not by the running ones.",
            default=True,
        ),
        ArgSpec(name="nonlinearity", type="str", doc="What is applied last.", default="relu", choices=("relu",)),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance", "y", "batch_mean", "batch_variance")),
    tags=("recomputable",),
    updates=("mean", "variance"),
    formula="y = max(gamma (x - mean) / sqrt(variance + eps) + beta + z, 0)",
    notes="The statistics behave as those of `batch_normalization`. Where the sum is exactly 0 the gradient is 0.",
    references="Ioffe and Szegedy (2015), Batch normalization, algorithms 1 and 2.",
    example=(
        "F.fused_batch_normalization(nn.Variable((8, 3, 4, 4)), *[nn.Variable((1, 3, 1, 1)) for _ in "
        "range(4)]).shape  # (8, 3, 4, 4)"
    ),
)

SYNC_BATCH_NORMALIZATION = FunctionSpec(
    name="SyncBatchNormalization",
    api="sync_batch_normalization",
    topic="normalization",
    doc="Batch normalization over the batches of all processes of a group; this operator is the share of one process.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; the C_i are its axes named by `axes`.",
            shape="(N_1, ..., C_i, ..., N_n)",
        ),
        InputSpec(name="beta", doc="Shift.", shape="(1, ..., C_i, ..., 1)", dtype="parameter", parameter=True),
        InputSpec(
            name="gamma",
            doc="Scale.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="mean",
            doc="Running mean: rewritten if `batch_stat`, else used.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
        ),
        InputSpec(
            name="variance",
            doc="Running variance: rewritten if `batch_stat`, else used.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output.", shape="(N_1, ..., C_i, ..., N_n)"),
        OutputSpec(
            name="batch_mean",
            doc="Mean that was subtracted.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="batch_variance",
            doc="Variance that was divided by, biased if of the batch.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="group",
            type="str",
            doc="Processes that share statistics.",
            default="world",
            choices=("world",),
        ),
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes that are kept; statistics are taken over all others.",
            default=(1,),
        ),
        ArgSpec(
            name="decay_rate",
            type="float",
            doc="How much of the running statistics a step keeps.",
            default=0.9,
            minimum=0,
            maximum=1,
        ),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
        ArgSpec(
            name="batch_stat",
            type="bool",
            doc="Standardize by the statistics of this batch (training), not by the running ones.",
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance", "batch_mean", "batch_variance")),
    tags=("recomputable",),
    updates=("mean", "variance"),
    formula="y = gamma (x - mean) / sqrt(variance + eps) + beta",
    notes=(
        "With a group of one process it is `batch_normalization`. Statistics cross processes in the "
        "function that users call, which holds the communicator."
    ),
    references="Ioffe and Szegedy (2015), Batch normalization, algorithms 1 and 2.",
    example=(
        "beta, gamma, mean, variance = (nn.Variable((1, 3, 1, 1)) for _ in range(4))\n"
        "F.sync_batch_normalization(nn.Variable((8, 3, 4, 4)), beta, gamma, mean, variance, "
        "comm=None).shape  # (8, 3, 4, 4)"
    ),
)

LAYER_NORMALIZATION = FunctionSpec(
    name="LayerNormalization",
    api="layer_normalization",
    topic="normalization",
    doc="Standardize each sample over all its elements, then scale and shift each element.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes named by `batch_axis`.",
            shape="(N, D_1, ..., D_n)",
        ),
        InputSpec(
            name="beta",
            doc="Shift; none if not given.",
            shape="(1, D_1, ..., D_n)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="gamma",
            doc="Scale; 1 if not given.",
            shape="(1, D_1, ..., D_n)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output.", shape="(N, D_1, ..., D_n)"),
        OutputSpec(
            name="mean",
            doc="Mean of each sample.",
            shape="(N, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="variance",
            doc="Biased variance of each sample.",
            shape="(N, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="batch_axis",
            type="axes",
            doc="Axes that are kept; statistics are taken over all others.",
            default=(0,),
        ),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
        ArgSpec(name="no_scale", type="bool", doc="States that gamma is not given.", default=False),
        ArgSpec(name="no_bias", type="bool", doc="States that beta is not given.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance")),
    formula="y = gamma (x - mean) / sqrt(variance + eps) + beta",
    references="Ba, Kiros and Hinton (2016), Layer normalization, section 3.",
    example="F.layer_normalization(nn.NdArray.from_numpy_array([[1, 2, 3]]), None, None)  # [[-1.2247, 0, 1.2247]]",
)

INSTANCE_NORMALIZATION = FunctionSpec(
    name="InstanceNormalization",
    api="instance_normalization",
    topic="normalization",
    doc="Standardize each channel of each sample, then scale and shift each channel.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes named by `batch_axis`, C is the axis `channel_axis`.",
            shape="(N, C, D_1, ..., D_n)",
        ),
        InputSpec(
            name="beta",
            doc="Shift; none if not given. (N, C, 1, ..., 1) shifts each sample by its own values.",
            shape="(1, C, 1, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="gamma",
            doc="Scale; 1 if not given. (N, C, 1, ..., 1) scales each sample by its own values.",
            shape="(1, C, 1, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output.", shape="(N, C, D_1, ..., D_n)"),
        OutputSpec(
            name="mean",
            doc="Mean of each channel of each sample.",
            shape="(N, C, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="variance",
            doc="Biased variance of each channel of each sample.",
            shape="(N, C, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(name="channel_axis", type="axis", doc="Axis of the channels.", default=1),
        ArgSpec(name="batch_axis", type="axes", doc="Axes of the samples.", default=(0,)),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
        ArgSpec(name="no_scale", type="bool", doc="States that gamma is not given.", default=False),
        ArgSpec(name="no_bias", type="bool", doc="States that beta is not given.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance")),
    formula="y = gamma (x - mean) / sqrt(variance + eps) + beta",
    references=(
        "Ulyanov, Vedaldi and Lempitsky (2016), Instance normalization: the missing ingredient for "
        "fast stylization, section 2."
    ),
    example=(
        "F.instance_normalization(nn.NdArray.from_numpy_array([[[1, 3], [0, 5]]]), None, None)  # [[[-1, "
        "1], [-1, 1]]]"
    ),
)

GROUP_NORMALIZATION = FunctionSpec(
    name="GroupNormalization",
    api="group_normalization",
    topic="normalization",
    doc="Standardize each group of channels of each sample, then scale and shift each channel.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes named by `batch_axis`, C is the axis `channel_axis`.",
            shape="(N, C, D_1, ..., D_n)",
        ),
        InputSpec(
            name="beta",
            doc="Shift; none if not given.",
            shape="(1, C, 1, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="gamma",
            doc="Scale; 1 if not given.",
            shape="(1, C, 1, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output.", shape="(N, C, D_1, ..., D_n)"),
        OutputSpec(
            name="mean",
            doc="Mean of each group of each sample.",
            shape="(N, G, 1, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="variance",
            doc="Biased variance of each group of each sample.",
            shape="(N, G, 1, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="num_groups",
            type="int",
            doc="Number G of groups; C is a multiple of it.",
            default=1,
            minimum=1,
        ),
        ArgSpec(name="channel_axis", type="axis", doc="Axis of the channels.", default=1),
        ArgSpec(name="batch_axis", type="axes", doc="Axes of the samples.", default=(0,)),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
        ArgSpec(name="no_scale", type="bool", doc="States that gamma is not given.", default=False),
        ArgSpec(name="no_bias", type="bool", doc="States that beta is not given.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance")),
    formula="y = gamma (x - mean) / sqrt(variance + eps) + beta",
    references="Wu and He (2018), Group normalization, section 3.1.",
    example="F.group_normalization(nn.Variable((8, 6, 4, 4)), None, None, num_groups=3).shape  # (8, 6, 4, 4)",
)

TENSOR_NORMALIZATION = FunctionSpec(
    name="TensorNormalization",
    api="tensor_normalization",
    topic="normalization",
    doc="Standardize over all axes but some, then scale and shift; what the normalizations of samples have in common.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; the C_i are its axes named by `axes`.",
            shape="(N_1, ..., C_i, ..., N_n)",
        ),
        InputSpec(
            name="beta",
            doc="Shift; none if not given.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
        InputSpec(
            name="gamma",
            doc="Scale; 1 if not given.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output.", shape="(N_1, ..., C_i, ..., N_n)"),
        OutputSpec(
            name="mean",
            doc="Mean that was subtracted.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="variance",
            doc="Biased variance that was divided by.",
            shape="(1, ..., C_i, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes that are kept; statistics are taken over all others.",
            default=(1,),
        ),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
        ArgSpec(name="no_scale", type="bool", doc="States that gamma is not given.", default=False),
        ArgSpec(name="no_bias", type="bool", doc="States that beta is not given.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "gamma", "mean", "variance")),
    formula="y = gamma (x - mean) / sqrt(variance + eps) + beta",
    example="F.tensor_normalization(nn.Variable((8, 3, 4, 4)), axes=(1,)).shape  # (8, 3, 4, 4)",
)

WEIGHT_STANDARDIZATION = FunctionSpec(
    name="WeightStandardization",
    api="weight_standardization",
    topic="normalization",
    doc="Standardize the weights of each output channel.",
    inputs=(InputSpec(name="w", doc="Weight; C is the axis `channel_axis`.", shape="(C, D_1, ..., D_n)"),),
    outputs=(
        OutputSpec(name="y", doc="Standardized weight.", shape="(C, D_1, ..., D_n)"),
        OutputSpec(
            name="mean",
            doc="Mean of the weights of each channel.",
            shape="(C, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
        OutputSpec(
            name="variance",
            doc="Biased variance of the weights of each channel.",
            shape="(C, 1, ..., 1)",
            dtype="statistic",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(name="channel_axis", type="axis", doc="Axis of the output channels.", default=0),
        ArgSpec(name="eps", type="float", doc="Added to the variance.", default=1e-05, minimum=0),
    ),
    backward=BackwardSpec(needs=("w", "mean", "variance")),
    formula="y = (w - mean) / sqrt(variance + eps)",
    references=(
        "Qiao et al. (2019), Micro-batch training with batch-channel normalization and weight "
        "standardization, section 3."
    ),
    example="F.weight_standardization(nn.Variable((16, 3, 3, 3))).shape  # (16, 3, 3, 3)",
)

NORM_NORMALIZATION = FunctionSpec(
    name="NormNormalization",
    api="norm_normalization",
    topic="normalization",
    doc="Divide by the p-norm over some axes.",
    inputs=(InputSpec(name="x", doc="Input.", shape="(D_1, ..., D_n)"),),
    outputs=(OutputSpec(name="y", doc="Output, of norm 1 over the axes.", shape="(D_1, ..., D_n)"),),
    args=(
        ArgSpec(
            name="p",
            type="float",
            doc="Order of the norm; finite.",
            default=2.0,
            minimum=1.0,
            shown_as_none=True,
        ),
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes that the norm is taken over; all by default.",
            default_rule="all_axes",
        ),
        ArgSpec(
            name="eps",
            type="float",
            doc="Added to the sum, so that zeros stay zeros.",
            default=1e-12,
            minimum=0,
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    formula="y = x / (sum of |x|^p over the axes + eps)^(1/p)",
    notes="The subgradient of |x| at 0 is 0. NNabla takes `eps` and does not use it.",
    example="F.norm_normalization(nn.NdArray.from_numpy_array([3.0, 4.0]))  # [0.6, 0.8]",
)

WEIGHT_NORMALIZATION = FunctionSpec(
    name="WeightNormalization",
    api="weight_normalization",
    topic="normalization",
    doc="Give each slice of a weight the length that a parameter says.",
    inputs=(
        InputSpec(
            name="w",
            doc="Weight, which gives the directions; C is the axis `dim`.",
            shape="(D_1, ..., C, ..., D_n)",
        ),
        InputSpec(name="g", doc="Lengths.", shape="(C)", dtype="parameter", parameter=True),
    ),
    outputs=(OutputSpec(name="w_wn", doc="Scaled weight.", shape="(D_1, ..., C, ..., D_n)"),),
    args=(
        ArgSpec(
            name="dim",
            type="axis",
            doc="Axis whose slices are scaled, such as the output channels.",
            default=0,
        ),
        ArgSpec(name="eps", type="float", doc="Added to the sum of squares.", default=1e-12, minimum=0),
    ),
    backward=BackwardSpec(needs=("w", "g")),
    formula="w_wn = g w / sqrt(sum of w^2 over all axes but dim + eps)",
    references="Salimans and Kingma (2016), Weight normalization, eq. 2 and 3.",
    example="F.weight_normalization(nn.Variable((16, 3, 3, 3)), nn.Variable((16,))).shape  # (16, 3, 3, 3)",
)

SPECTRAL_NORM = FunctionSpec(
    name="SpectralNorm",
    api="spectral_norm",
    topic="normalization",
    doc="Divide a weight by its largest singular value, approached by power iteration.",
    inputs=(
        InputSpec(name="w", doc="Weight; C is the axis `dim`.", shape="(D_1, ..., C, ..., D_n)"),
        InputSpec(
            name="u",
            doc="Approximate left singular vector, rewritten unless `test`.",
            shape="(C)",
            dtype="parameter",
        ),
    ),
    outputs=(
        OutputSpec(
            name="w_sn",
            doc="Weight with a largest singular value of about 1.",
            shape="(D_1, ..., C, ..., D_n)",
        ),
        OutputSpec(name="left", doc="Left singular vector after the iterations.", shape="(C)", aux=True),
        OutputSpec(
            name="right",
            doc="Right singular vector after the iterations, over the D other elements.",
            shape="(D)",
            aux=True,
        ),
        OutputSpec(name="before", doc="u as it was before the run.", shape="(C)", aux=True),
    ),
    args=(
        ArgSpec(name="dim", type="axis", doc="Axis that becomes the rows of the matrix.", default=0),
        ArgSpec(name="itr", type="int", doc="Number of iterations in each run.", default=1, minimum=1),
        ArgSpec(
            name="eps",
            type="float",
            doc="Added to squared lengths of vectors before they are divided by.",
            default=1e-12,
            minimum=0,
        ),
        ArgSpec(name="test", type="bool", doc="Leave u as it is.", default=False),
        ArgSpec(
            name="output_u",
            type="bool",
            doc=(
                "Kept in files for the function that users call, which then returns `before` too; "
                "the operator ignores it."
            ),
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("w", "left", "right")),
    updates=("u",),
    formula="w_sn = w / (u^T W v), where W is w as a matrix with a row for each place on `dim`",
    notes=(
        "The gradient treats the singular vectors as constants, which is exact once the iteration has "
        "converged; a second derivative leaves out how they turn."
    ),
    references=(
        "Miyato et al. (2018), Spectral normalization for generative adversarial networks, section 2 "
        "and algorithm 1."
    ),
    example=(
        "F.spectral_norm(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, "
        "4.0]))  # [0.707, -0.707]"
    ),
)

MEAN_SUBTRACTION = FunctionSpec(
    name="MeanSubtraction",
    api="mean_subtraction",
    topic="normalization",
    doc="Subtract the mean of all samples seen so far.",
    inputs=(
        InputSpec(name="x", doc="Input.", shape="(N_1, ..., N_k, D_1, ..., D_m)"),
        InputSpec(
            name="rmean",
            doc="Running mean, rewritten if `update_running_mean`.",
            shape="(D_1, ..., D_m)",
            dtype="parameter",
        ),
        InputSpec(
            name="t",
            doc="Number of batches seen, rewritten if `update_running_mean`.",
            shape="(1)",
            dtype="same",
        ),
    ),
    outputs=(
        OutputSpec(name="y", doc="Output.", shape="(N_1, ..., N_k, D_1, ..., D_m)"),
        OutputSpec(
            name="rate",
            doc="Weight of this batch in the mean that was subtracted: 1 / (t + 1), or 0.",
            shape="(1)",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="First axis that belongs to a sample; the axes before it are the batch.",
            default=1,
        ),
        ArgSpec(
            name="update_running_mean",
            type="bool",
            doc="Take this batch into the running mean.",
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("rate",)),
    updates=("rmean", "t"),
    formula="y = x - rmean, after rmean += (mean of x over the batch - rmean) / (t + 1) and t += 1",
    notes=(
        "An empty batch changes nothing. The gradient is exact: dy minus its mean over the batch times "
        "rate, and rmean gets its share; NNabla multiplies dy by 1 - rate / N instead and gives rmean "
        "none."
    ),
    example="F.mean_subtraction(nn.Variable((8, 3)), nn.Variable((3,)), nn.Variable((1,))).shape  # (8, 3)",
)

SPECS: tuple[FunctionSpec, ...] = (
    BATCH_NORMALIZATION,
    FUSED_BATCH_NORMALIZATION,
    SYNC_BATCH_NORMALIZATION,
    LAYER_NORMALIZATION,
    INSTANCE_NORMALIZATION,
    GROUP_NORMALIZATION,
    TENSOR_NORMALIZATION,
    WEIGHT_STANDARDIZATION,
    NORM_NORMALIZATION,
    WEIGHT_NORMALIZATION,
    SPECTRAL_NORM,
    MEAN_SUBTRACTION,
)
