"""Specifications of the topic quantization.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

BINARY_SIGMOID = FunctionSpec(
    name="BinarySigmoid",
    api="binary_sigmoid",
    topic="quantization",
    doc="Map positive elements to 1 and all others to 0, with a gradient that lets the input be trained.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="0 or 1.", shape="that of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    domain=(-2.0, 2.0),
    formula="y = [x > 0]",
    notes="The gradient is that of the hard sigmoid, 1/2 within (-1, 1) and 0 elsewhere.",
    references="M. Courbariaux, I. Hubara, D. Soudry, R. El-Yaniv, Y. Bengio, Binarized neural networks, 2016.",
    example="F.binary_sigmoid(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 0]",
)

BINARY_TANH = FunctionSpec(
    name="BinaryTanh",
    api="binary_tanh",
    topic="quantization",
    doc="Map positive elements to 1 and all others to -1, with a gradient that lets the input be trained.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="-1 or 1.", shape="that of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    domain=(-2.0, 2.0),
    formula="y = 2 [x > 0] - 1",
    notes="The gradient is that of the hard tanh, 1 within (-1, 1) and 0 elsewhere.",
    references="M. Courbariaux, I. Hubara, D. Soudry, R. El-Yaniv, Y. Bengio, Binarized neural networks, 2016.",
    example="F.binary_tanh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, -1]",
)

BINARY_CONNECT_AFFINE = FunctionSpec(
    name="BinaryConnectAffine",
    api="binary_connect_affine",
    topic="quantization",
    doc="Apply an affine layer whose weights are the signs of trained weights.",
    inputs=(
        InputSpec(name="x", doc="Input, flattened from base_axis on.", shape="(N_1, ..., N_k, D_1, ..., D_m)"),
        InputSpec(
            name="weight",
            doc="Trained weight.",
            shape="(D, K_1, ..., K_l)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="binary_weight",
            doc="Receives the signs in each forward pass; its values are not read.",
            shape="(D, K_1, ..., K_l)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias.",
            shape="(K_1, ..., K_l)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Output.", shape="(N_1, ..., N_k, K_1, ..., K_l)"),),
    args=(
        ArgSpec(name="base_axis", type="axis", doc="First axis of x that is flattened.", default=1),
        ArgSpec(name="quantize_zero_to", type="float", doc="Sign of a weight of zero.", default=1.0),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    updates=("binary_weight",),
    formula="y = x sign(w) + b",
    notes=(
        "The gradient of the signs is passed on to the weight as it is. To share weights between layers, "
        "share `weight`; `binary_weight` fits to it only after a forward pass."
    ),
    references=(
        "M. Courbariaux, Y. Bengio, J.-P. David, BinaryConnect: Training deep neural networks with "
        "binary weights during propagations, 2015."
    ),
    example="F.binary_connect_affine(nn.Variable((8, 4)), nn.Variable((4, 3)), nn.Variable((4, 3))).shape  # (8, 3)",
)

BINARY_CONNECT_CONVOLUTION = FunctionSpec(
    name="BinaryConnectConvolution",
    api="binary_connect_convolution",
    topic="quantization",
    doc="Convolve with filters that are the signs of trained filters.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
        ),
        InputSpec(
            name="weight",
            doc="Trained filters.",
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="binary_weight",
            doc="Receives the signs in each forward pass; its values are not read.",
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(K)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Output, of the lengths that convolution gives.",
            shape="(N, K, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="Axis of the channels; the axes before it are the batch.",
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the zero border on each spatial axis; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring places of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="group",
            type="int",
            doc="Number of groups: C / group input channels feed K / group output channels each.",
            default=1,
            minimum=1,
        ),
        ArgSpec(name="quantize_zero_to", type="float", doc="Sign of a weight of zero.", default=1.0),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    updates=("binary_weight",),
    formula="y = convolution(x, sign(w), b)",
    notes=(
        "The gradient of the signs is passed on to the weight as it is. To share weights between layers, "
        "share `weight`; `binary_weight` fits to it only after a forward pass."
    ),
    references=(
        "M. Courbariaux, Y. Bengio, J.-P. David, BinaryConnect: Training deep neural networks with "
        "binary weights during propagations, 2015."
    ),
    example=(
        "F.binary_connect_convolution(nn.Variable((8, 3, 8, 8)), nn.Variable((4, 3, 3, 3)), "
        "nn.Variable((4, 3, 3, 3))).shape  # (8, 4, 6, 6)"
    ),
)

BINARY_WEIGHT_AFFINE = FunctionSpec(
    name="BinaryWeightAffine",
    api="binary_weight_affine",
    topic="quantization",
    doc="Apply an affine layer whose weights are the signs of trained weights, scaled by their mean magnitude.",
    inputs=(
        InputSpec(name="x", doc="Input, flattened from base_axis on.", shape="(N_1, ..., N_k, D_1, ..., D_m)"),
        InputSpec(
            name="weight",
            doc="Trained weight.",
            shape="(D, K_1, ..., K_l)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="binary_weight",
            doc="Receives the signs in each forward pass; its values are not read.",
            shape="(D, K_1, ..., K_l)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="alpha",
            doc="Receives the scale of each output in each forward pass; its values are not read.",
            shape="K elements",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias.",
            shape="(K_1, ..., K_l)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Output.", shape="(N_1, ..., N_k, K_1, ..., K_l)"),),
    args=(
        ArgSpec(name="base_axis", type="axis", doc="First axis of x that is flattened.", default=1),
        ArgSpec(name="quantize_zero_to", type="float", doc="Sign of a weight of zero.", default=1.0),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    updates=("binary_weight", "alpha"),
    formula="y_j = alpha_j sum_i x_i sign(w_ij) + b_j, alpha_j = mean_i |w_ij|",
    notes=(
        "The gradient of the scaled signs is passed on to the weight as it is. `binary_weight` and `alpha` "
        "fit to the weight only after a forward pass."
    ),
    references=(
        "M. Rastegari, V. Ordonez, J. Redmon, A. Farhadi, XNOR-Net: ImageNet classification using "
        "binary convolutional neural networks, 2016."
    ),
    example=(
        "F.binary_weight_affine(nn.Variable((8, 4)), nn.Variable((4, 3)), nn.Variable((4, 3)), "
        "nn.Variable((3,))).shape  # (8, 3)"
    ),
)

BINARY_WEIGHT_CONVOLUTION = FunctionSpec(
    name="BinaryWeightConvolution",
    api="binary_weight_convolution",
    topic="quantization",
    doc="Convolve with the signs of trained filters, scaled by the mean magnitude of each filter.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
        ),
        InputSpec(
            name="weight",
            doc="Trained filters.",
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="binary_weight",
            doc="Receives the signs in each forward pass; its values are not read.",
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="alpha",
            doc="Receives the scale of each filter in each forward pass; its values are not read.",
            shape="K elements",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(K)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Output, of the lengths that convolution gives.",
            shape="(N, K, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="Axis of the channels; the axes before it are the batch.",
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the zero border on each spatial axis; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring places of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="group",
            type="int",
            doc="Number of groups: C / group input channels feed K / group output channels each.",
            default=1,
            minimum=1,
        ),
        ArgSpec(name="quantize_zero_to", type="float", doc="Sign of a weight of zero.", default=1.0),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    updates=("binary_weight", "alpha"),
    formula="y = convolution(x, alpha_k sign(w_k), b), alpha_k = mean |w_k|",
    notes=(
        "The gradient of the scaled signs is passed on to the weight as it is. `binary_weight` and `alpha` "
        "fit to the weight only after a forward pass."
    ),
    references=(
        "M. Rastegari, V. Ordonez, J. Redmon, A. Farhadi, XNOR-Net: ImageNet classification using "
        "binary convolutional neural networks, 2016."
    ),
    example=(
        "F.binary_weight_convolution(nn.Variable((8, 3, 8, 8)), nn.Variable((4, 3, 3, 3)), "
        "nn.Variable((4, 3, 3, 3)), nn.Variable((4,))).shape  # (8, 4, 6, 6)"
    ),
)

INQ_AFFINE = FunctionSpec(
    name="INQAffine",
    api="inq_affine",
    topic="quantization",
    doc="Apply an affine layer whose weights are fixed to powers of two, step by step while the others are trained.",
    inputs=(
        InputSpec(name="x", doc="Input, flattened from base_axis on.", shape="(N_1, ..., N_k, D_1, ..., D_m)"),
        InputSpec(
            name="weight",
            doc="Weight; its fixed elements are rewritten with their levels.",
            shape="(D, K_1, ..., K_l)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="indicator_fixedweights",
            doc=(
                "1 where the weight is fixed. Elsewhere 0, or minus the number of forward passes "
                "done while inq_iterations is not over."
            ),
            shape="(D, K_1, ..., K_l)",
            dtype="same",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias.",
            shape="(K_1, ..., K_l)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Output.", shape="(N_1, ..., N_k, K_1, ..., K_l)"),),
    args=(
        ArgSpec(name="base_axis", type="axis", doc="First axis of x that is flattened.", default=1),
        ArgSpec(
            name="num_bits",
            type="int",
            doc=(
                "Bits of a fixed weight: one for the sign, one for zero, the others for the "
                "2^(num_bits - 2) exponents."
            ),
            default=4,
            minimum=2,
            maximum=64,
        ),
        ArgSpec(
            name="inq_iterations",
            type="ints",
            doc=(
                "After how many forward passes half of the learnable weights (one at least) become "
                "fixed; at the last number all of them do."
            ),
            default=(),
            minimum=0,
        ),
        ArgSpec(
            name="selection_algorithm",
            type="str",
            doc="The learnable weights to fix first.",
            default="largest_abs",
            choices=("largest_abs", "random"),
        ),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random selection; -1 takes it from the generator of the framework.",
            default=-1,
            minimum=-1,
        ),
    ),
    backward=BackwardSpec(needs=("x", "weight", "indicator_fixedweights")),
    tags=("seeded",),
    updates=("weight", "indicator_fixedweights"),
    formula="y = x w' + b, with w'_i = 2^k sign(w_i) or 0 where w_i is fixed and w_i elsewhere",
    notes=(
        "The largest exponent is floor(log2(4 max|w| / 3)); a weight takes the exponent floor(log2(4 |w| / "
        "3)) within the available ones, or zero below half of the smallest level. Fixed weights get no "
        "gradient, and are rounded again in every pass, so that a solver cannot move them by small steps. "
        "The number of passes is part of the indicator, so that training continues where it stopped after "
        "parameters are saved and loaded."
    ),
    references=(
        "A. Zhou, A. Yao, Y. Guo, L. Xu, Y. Chen, Incremental network quantization: Towards lossless "
        "CNNs with low-precision weights, 2017."
    ),
    example="F.inq_affine(nn.Variable((8, 4)), nn.Variable((4, 3)), nn.Variable((4, 3))).shape  # (8, 3)",
)

INQ_CONVOLUTION = FunctionSpec(
    name="INQConvolution",
    api="inq_convolution",
    topic="quantization",
    doc="Convolve with filters that are fixed to powers of two, step by step while the others are trained.",
    inputs=(
        InputSpec(
            name="x",
            doc="Input; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
        ),
        InputSpec(
            name="weight",
            doc="Filters; their fixed elements are rewritten with their levels.",
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="indicator_fixedweights",
            doc=(
                "1 where the weight is fixed. Elsewhere 0, or minus the number of forward passes "
                "done while inq_iterations is not over."
            ),
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="same",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias of each output channel.",
            shape="(K)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Output, of the lengths that convolution gives.",
            shape="(N, K, O_1, ..., O_n)",
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="Axis of the channels; the axes before it are the batch.",
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the zero border on each spatial axis; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring places of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="group",
            type="int",
            doc="Number of groups: C / group input channels feed K / group output channels each.",
            default=1,
            minimum=1,
        ),
        ArgSpec(
            name="num_bits",
            type="int",
            doc=(
                "Bits of a fixed weight: one for the sign, one for zero, the others for the "
                "2^(num_bits - 2) exponents."
            ),
            default=4,
            minimum=2,
            maximum=64,
        ),
        ArgSpec(
            name="inq_iterations",
            type="ints",
            doc=(
                "After how many forward passes half of the learnable weights (one at least) become "
                "fixed; at the last number all of them do."
            ),
            default=(),
            minimum=0,
        ),
        ArgSpec(
            name="selection_algorithm",
            type="str",
            doc="The learnable weights to fix first.",
            default="largest_abs",
            choices=("largest_abs", "random"),
        ),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random selection; -1 takes it from the generator of the framework.",
            default=-1,
            minimum=-1,
        ),
    ),
    backward=BackwardSpec(needs=("x", "weight", "indicator_fixedweights")),
    tags=("seeded",),
    updates=("weight", "indicator_fixedweights"),
    formula="y = convolution(x, w', b), with w'_i = 2^k sign(w_i) or 0 where w_i is fixed and w_i elsewhere",
    notes="Weights are fixed and rounded as in inq_affine.",
    references=(
        "A. Zhou, A. Yao, Y. Guo, L. Xu, Y. Chen, Incremental network quantization: Towards lossless "
        "CNNs with low-precision weights, 2017."
    ),
    example=(
        "F.inq_convolution(nn.Variable((8, 3, 8, 8)), nn.Variable((4, 3, 3, 3)), nn.Variable((4, 3, 3, "
        "3))).shape  # (8, 4, 6, 6)"
    ),
)

FIXED_POINT_QUANTIZE = FunctionSpec(
    name="FixedPointQuantize",
    api="fixed_point_quantize",
    topic="quantization",
    doc="Round to the levels of a fixed-point number.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Levels, in floating point.", shape="that of x"),),
    args=(
        ArgSpec(
            name="sign",
            type="bool",
            doc=(
                "Levels are signed: one bit is the sign, max = (2^(n-1) - 1) delta and min = -max. "
                "Otherwise max = (2^n - 1) delta and min = 0."
            ),
            default=True,
        ),
        ArgSpec(name="n", type="int", doc="Number of bits.", default=8, minimum=1, maximum=64),
        ArgSpec(name="delta", type="float", doc="Distance of two levels, positive and finite.", default=0.0625),
        ArgSpec(
            name="ste_fine_grained",
            type="bool",
            doc="The gradient is 0 outside of [min, max]; otherwise it passes everywhere.",
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = clip(sign(x) floor(|x| / delta + 1/2) delta, min, max)",
    notes="The gradient is that of clip(x, min, max), or of the identity without ste_fine_grained.",
    references=(
        "Y. Bengio, N. Leonard, A. Courville, Estimating or propagating gradients through stochastic "
        "neurons for conditional computation, 2013 (straight-through estimator)."
    ),
    example="F.fixed_point_quantize(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

POW2_QUANTIZE = FunctionSpec(
    name="Pow2Quantize",
    api="pow2_quantize",
    topic="quantization",
    doc="Round to powers of two.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Levels, in floating point.", shape="that of x"),),
    args=(
        ArgSpec(
            name="sign",
            type="bool",
            doc="Levels are signed, which takes a bit; otherwise negative elements go to the lowest level.",
            default=True,
        ),
        ArgSpec(
            name="with_zero",
            type="bool",
            doc=(
                "Zero is a level, which takes a bit: what is below min / sqrt(2) becomes 0. "
                "Otherwise it becomes min with the sign of x."
            ),
            default=True,
        ),
        ArgSpec(
            name="n",
            type="int",
            doc="Number of bits; b of them are left for the exponent.",
            default=8,
            minimum=1,
            maximum=64,
        ),
        ArgSpec(name="m", type="int", doc="Exponent of the largest level.", default=1, maximum=127),
        ArgSpec(
            name="ste_fine_grained",
            type="bool",
            doc=(
                "The gradient is 0 where x rounds to more than max and, without sign, where x is "
                "negative; otherwise it passes everywhere."
            ),
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise", "inplace_ok", "discontinuous"),
    formula="y = sign(x) clip(2^round(log2 |x|), min, max), max = 2^m, min = 2^(m - (2^b - 1))",
    notes="Rounding the logarithm puts the threshold between two levels at their geometric mean.",
    references=(
        "D. Miyashita, E. H. Lee, B. Murmann, Convolutional neural networks using logarithmic data "
        "representation, 2016."
    ),
    example="F.pow2_quantize(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

MIN_MAX_QUANTIZE = FunctionSpec(
    name="MinMaxQuantize",
    api="min_max_quantize",
    topic="quantization",
    doc="Round to evenly spaced levels between a minimum and a maximum that may follow the data.",
    inputs=(
        InputSpec(name="x", doc="Input.", shape="(D_1, ..., D_n)"),
        InputSpec(
            name="qr_min",
            doc="Lower end of the range of values; each E is D or 1. Rewritten in each forward pass.",
            shape="(E_1, ..., E_n)",
            dtype="parameter",
        ),
        InputSpec(
            name="qr_max",
            doc="Upper end of the range of values; rewritten in each forward pass, at least qr_min + eps.",
            shape="(E_1, ..., E_n)",
            dtype="parameter",
        ),
        InputSpec(name="ql_min", doc="Lowest level, typically 0.", shape="(E_1, ..., E_n)"),
        InputSpec(name="ql_max", doc="Highest level, typically 255.", shape="(E_1, ..., E_n)"),
    ),
    outputs=(
        OutputSpec(name="y", doc="Levels, as values of the range.", shape="(D_1, ..., D_n)"),
        OutputSpec(
            name="range_min",
            doc=(
                "m, the range moved so that 0 is a level: (ql_min - z) s with the zero point z = "
                "clip(round(ql_min - qr_min / s), ql_min, ql_max)."
            ),
            shape="(E_1, ..., E_n)",
            aux=True,
        ),
        OutputSpec(name="range_max", doc="M = (ql_max - z) s.", shape="(E_1, ..., E_n)", aux=True),
    ),
    args=(
        ArgSpec(
            name="decay",
            type="float",
            doc="Weight of the old range in the moving average.",
            default=0.999,
            minimum=0,
            maximum=1,
        ),
        ArgSpec(
            name="x_min_max",
            type="bool",
            doc="The range is that of x in this pass, taken over the axes where E is 1.",
            default=False,
        ),
        ArgSpec(
            name="ema",
            type="bool",
            doc=(
                "With x_min_max, the range is a moving average. Alone, the range is used as it is "
                "and gets no gradient."
            ),
            default=False,
        ),
        ArgSpec(
            name="ste_fine_grained",
            type="bool",
            doc="The gradient of x is 0 outside of [m, M]; otherwise it passes everywhere.",
            default=True,
        ),
        ArgSpec(name="eps", type="float", doc="Smallest width of the range.", default=0.01, minimum=0),
    ),
    backward=BackwardSpec(needs=("x", "range_min", "range_max")),
    tags=("discontinuous",),
    updates=("qr_min", "qr_max"),
    formula="y = round((clip(x, m, M) - m) / s) s + m, s = (qr_max - qr_min) / (ql_max - ql_min)",
    notes=(
        "With neither x_min_max nor ema the range is trained: qr_min gets the gradients of what is below "
        "m, qr_max of what is above M."
    ),
    references=(
        "B. Jacob et al., Quantization and training of neural networks for efficient "
        "integer-arithmetic-only inference, 2018, section 3."
    ),
    example=(
        "F.min_max_quantize(nn.Variable((8, 4)), nn.Variable((1, 1)), nn.Variable((1, 1)), "
        "nn.Variable((1, 1)), nn.Variable((1, 1))).shape  # (8, 4)"
    ),
)

PRUNE = FunctionSpec(
    name="Prune",
    api="prune",
    topic="quantization",
    doc="Set the elements of smallest magnitude to zero.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Elements that are left, zeros elsewhere.", shape="that of x"),),
    args=(
        ArgSpec(
            name="rate",
            type="float",
            doc="Fraction of elements to set to zero; at 1 all of them are.",
            default=0.9,
            minimum=0,
            maximum=1,
        ),
    ),
    shape="same_as x",
    formula="y = x [|x| >= t], t = sort(|x|)[floor((size - 1) rate)]",
    notes="The gradient passes straight through, also to what was pruned.",
    references=(
        "S. Han, J. Pool, J. Tran, W. Dally, Learning both weights and connections for efficient "
        "neural networks, 2015."
    ),
    example="F.prune(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

QUANTIZE_LINEAR = FunctionSpec(
    name="QuantizeLinear",
    api="quantize_linear",
    topic="quantization",
    doc="Quantize to 8-bit integers with a scale and a zero point.",
    inputs=(
        InputSpec(name="x", doc="Input.", shape="(D_1, ..., D_n)"),
        InputSpec(
            name="scale",
            doc="Distance of two levels, positive; each E is D or 1.",
            shape="(E_1, ..., E_n)",
        ),
        InputSpec(
            name="zero_point",
            doc=(
                "Level of the value 0; each E is D or 1. Rewritten in each forward pass with its "
                "rounded and saturated value."
            ),
            shape="(E_1, ..., E_n)",
            dtype="parameter",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Levels, stored as floating-point numbers.", shape="(D_1, ..., D_n)"),),
    args=(
        ArgSpec(
            name="round_mode",
            type="str",
            doc="How halves are rounded.",
            default="HALF_AWAY_FROM_ZERO",
            choices=("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"),
        ),
        ArgSpec(
            name="narrow_range",
            type="bool",
            doc="Leave the lowest level out, so that the range of signed levels is symmetric.",
            default=False,
        ),
        ArgSpec(
            name="dtype",
            type="int",
            doc="1 for int8, levels from -128 to 127; 2 for uint8, levels from 0 to 255.",
            default=1,
            minimum=1,
            maximum=2,
        ),
    ),
    backward=BackwardSpec(needs=("x", "scale")),
    tags=("discontinuous",),
    updates=("zero_point",),
    formula="y = saturate(round(x / scale) + zero_point)",
    notes="The gradient is that of x / scale + zero_point, straight through rounding and saturation.",
    references="ONNX Operators, QuantizeLinear.",
    example=(
        "scale, zero_point = nn.NdArray.from_numpy_array([0.5]), nn.NdArray.from_numpy_array([10])\n"
        "F.quantize_linear(nn.NdArray.from_numpy_array([0, 1, -2]), scale, zero_point)  # [10, 12, 6]"
    ),
)

DEQUANTIZE_LINEAR = FunctionSpec(
    name="DequantizeLinear",
    api="dequantize_linear",
    topic="quantization",
    doc="Turn levels of quantize_linear back into values.",
    inputs=(
        InputSpec(name="x", doc="Levels.", shape="(D_1, ..., D_n)"),
        InputSpec(
            name="scale",
            doc="Distance of two levels, positive; each E is D or 1.",
            shape="(E_1, ..., E_n)",
        ),
        InputSpec(name="zero_point", doc="Level of the value 0; each E is D or 1.", shape="(E_1, ..., E_n)"),
    ),
    outputs=(OutputSpec(name="y", doc="Values.", shape="(D_1, ..., D_n)"),),
    backward=BackwardSpec(needs=("x", "scale", "zero_point")),
    formula="y = (x - zero_point) scale",
    references="ONNX Operators, DequantizeLinear.",
    example=(
        "scale, zero_point = nn.NdArray.from_numpy_array([0.5]), nn.NdArray.from_numpy_array([10])\n"
        "F.dequantize_linear(nn.NdArray.from_numpy_array([10, 12, 6]), scale, zero_point)  # [0, 1, -2]"
    ),
)

QUANTIZE_INTEGER = FunctionSpec(
    name="QuantizeInteger",
    api="quantize_integer",
    topic="quantization",
    doc="Quantize to integers of the dtype of the zero point.",
    inputs=(
        InputSpec(name="x", doc="Input.", shape="(D_1, ..., D_n)"),
        InputSpec(
            name="scale",
            doc="Distance of two levels, positive; each E is D or 1.",
            shape="(E_1, ..., E_n)",
        ),
        InputSpec(
            name="zero_point",
            doc="Level of the value 0, of dtype int8, uint8, int16 or uint16; each E is D or 1.",
            shape="(E_1, ..., E_n)",
            dtype="same",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Levels, integers of the dtype of the zero point.",
            shape="(D_1, ..., D_n)",
            dtype="same",
        ),
    ),
    backward=BackwardSpec(none_because="integers have no gradient"),
    tags=("discontinuous",),
    formula="y = saturate(round(x / scale) + zero_point)",
    notes=(
        "Halves are rounded to the even neighbour. Levels are limited to the range of the dtype; NaN "
        "becomes the zero point. Raises DTypeError for a zero point of another dtype. `quantize_linear` "
        "stores its levels as floating-point numbers and has a gradient."
    ),
    references="ONNX Operators, QuantizeLinear.",
    example=(
        "scale, zero_point = nn.NdArray.from_numpy_array([0.5]), "
        "nn.NdArray.from_numpy_array(np.array([10], np.uint8))\n"
        "F.quantize_integer(nn.NdArray.from_numpy_array([0, 1, -9]), scale, zero_point)  # [10, 12, 0]"
    ),
)

MATMUL_INTEGER = FunctionSpec(
    name="MatMulInteger",
    api="matmul_integer",
    topic="quantization",
    doc="Multiply matrices of integers, less their zero points, and add up exactly.",
    inputs=(
        InputSpec(
            name="a",
            doc="Levels; the leading axes are broadcast against those of b.",
            shape="(..., M, K)",
            dtype="same",
        ),
        InputSpec(name="b", doc="Levels.", shape="(..., K, N)", dtype="same"),
        InputSpec(
            name="a_zero_point",
            doc="Levels with as many axes as a, which are broadcast over it; 0 by default.",
            shape="(..., M or 1, 1)",
            dtype="same",
            optional=True,
        ),
        InputSpec(
            name="b_zero_point",
            doc="Levels with as many axes as b, which are broadcast over it; 0 by default.",
            shape="(..., 1, N or 1)",
            dtype="same",
            optional=True,
        ),
        InputSpec(
            name="bias",
            doc="Integers that are added to the sums.",
            shape="(N)",
            dtype="int32",
            optional=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Sums of products.", shape="(..., M, N)", dtype="int32"),),
    backward=BackwardSpec(none_because="integers have no gradient"),
    formula="y = (a - a_zero_point) (b - b_zero_point) + bias",
    notes=(
        "All inputs but the bias hold int8, uint8, int16 or uint16, which may differ; DTypeError "
        "otherwise. Sums are exact; those outside of the range of int32 wrap around."
    ),
    references="ONNX Operators, MatMulInteger.",
    example=(
        "a, b = (nn.NdArray.from_numpy_array(np.array(values, np.int8)) for values in ([[1, 2]], [[3], "
        "[4]]))\nF.matmul_integer(a, b)  # [[11]]"
    ),
)

CONV_INTEGER = FunctionSpec(
    name="ConvInteger",
    api="conv_integer",
    topic="quantization",
    doc="Convolve integers, less their zero points, and add up exactly.",
    inputs=(
        InputSpec(
            name="x",
            doc="Levels; N stands for the axes before `base_axis`.",
            shape="(N, C, L_1, ..., L_n)",
            dtype="same",
        ),
        InputSpec(
            name="weight",
            doc="Filters of levels.",
            shape="(K, C / group, R_1, ..., R_n)",
            dtype="same",
        ),
        InputSpec(
            name="x_zero_point",
            doc="Level of the value 0 in x, which the border holds too; 0 by default.",
            shape="one element",
            dtype="same",
            optional=True,
        ),
        InputSpec(
            name="weight_zero_point",
            doc="Level of the value 0 in all filters, or in each; 0 by default.",
            shape="one element, or (K)",
            dtype="same",
            optional=True,
        ),
        InputSpec(
            name="bias",
            doc="Integers that are added to the sums of each output channel.",
            shape="(K)",
            dtype="int32",
            optional=True,
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Sums of products, of the lengths that convolution gives.",
            shape="(N, K, O_1, ..., O_n)",
            dtype="int32",
        ),
    ),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="Axis of the channels; the axes before it are the batch.",
            default=1,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc="Width of the border on each spatial axis; 0 by default.",
            default_rule="spatial_zeros",
            minimum=0,
        ),
        ArgSpec(
            name="stride",
            type="ints",
            doc="Distance between neighbouring places of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="dilation",
            type="ints",
            doc="Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.",
            default_rule="spatial_ones",
            minimum=1,
        ),
        ArgSpec(
            name="group",
            type="int",
            doc="Number of groups: C / group input channels feed K / group output channels each.",
            default=1,
            minimum=1,
        ),
    ),
    backward=BackwardSpec(none_because="integers have no gradient"),
    formula="y = convolution(x - x_zero_point, weight - weight_zero_point) + bias",
    notes=(
        "All inputs but the bias hold int8, uint8, int16 or uint16, which may differ; DTypeError "
        "otherwise. Sums are exact; those outside of the range of int32 wrap around."
    ),
    references="ONNX Operators, ConvInteger.",
    example=(
        "x, weight = (nn.NdArray.from_numpy_array(np.ones(shape, np.uint8)) for shape in ((1, 1, 3, 3), "
        "(1, 1, 2, 2)))\nF.conv_integer(x, weight).numpy().tolist()  # [[[[4, 4], [4, 4]]]]"
    ),
)

SPECS: tuple[FunctionSpec, ...] = (
    BINARY_SIGMOID,
    BINARY_TANH,
    BINARY_CONNECT_AFFINE,
    BINARY_CONNECT_CONVOLUTION,
    BINARY_WEIGHT_AFFINE,
    BINARY_WEIGHT_CONVOLUTION,
    INQ_AFFINE,
    INQ_CONVOLUTION,
    FIXED_POINT_QUANTIZE,
    POW2_QUANTIZE,
    MIN_MAX_QUANTIZE,
    PRUNE,
    QUANTIZE_LINEAR,
    DEQUANTIZE_LINEAR,
    QUANTIZE_INTEGER,
    MATMUL_INTEGER,
    CONV_INTEGER,
)
