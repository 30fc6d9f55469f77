"""Specifications of the topic activation.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

SIGMOID = FunctionSpec(
    name="Sigmoid",
    api="sigmoid",
    topic="activation",
    doc="Squash every element into (0, 1) with the logistic function.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
    formula="y = 1 / (1 + exp(-x))",
    example="F.sigmoid(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.622, 0.378]",
)

SWISH = FunctionSpec(
    name="Swish",
    api="swish",
    topic="activation",
    doc="Weight every element with its sigmoid.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = x / (1 + exp(-x))",
    notes="Also known as SiLU. Minus infinity gives NaN.",
    references="P. Ramachandran, B. Zoph, Q. V. Le (2017), Searching for activation functions.",
    example="F.swish(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.311, -0.189]",
)

TANH = FunctionSpec(
    name="Tanh",
    api="tanh",
    topic="activation",
    doc="Squash every element into (-1, 1) with the hyperbolic tangent.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
    formula="y = tanh x",
    example="F.tanh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.462, -0.462]",
)

RELU = FunctionSpec(
    name="ReLU",
    api="relu",
    topic="activation",
    doc="Set negative elements to 0 (rectified linear unit).",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    args=(ArgSpec(name="inplace", type="bool", doc="Let the result be written over the input.", default=False),),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
    formula="y = max(0, x)",
    notes="The gradient at 0 is 0. NaN stays NaN.",
    references="V. Nair, G. E. Hinton (2010), Rectified linear units improve restricted Boltzmann machines.",
    example="F.relu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, 0]",
)

LEAKY_RELU = FunctionSpec(
    name="LeakyReLU",
    api="leaky_relu",
    topic="activation",
    doc="Scale negative elements down.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    args=(
        ArgSpec(name="alpha", type="float", doc="Slope for negative elements.", default=0.1),
        ArgSpec(name="inplace", type="bool", doc="Let the result be written over the input.", default=False),
    ),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",), needs_if_negative=(("alpha", ("x",)),)),
    tags=("pointwise", "inplace_ok"),
    formula="y = x (x > 0), alpha x (otherwise)",
    notes="The gradient at 0 is alpha.",
    references=(
        "A. L. Maas, A. Y. Hannun, A. Y. Ng (2013), Rectifier nonlinearities improve neural network "
        "acoustic models."
    ),
    example="F.leaky_relu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.05]",
)

SOFTMAX = FunctionSpec(
    name="Softmax",
    api="softmax",
    topic="activation",
    doc="Turn scores along an axis into probabilities.",
    inputs=(InputSpec(name="x", doc="Scores.", shape="any with at least one axis"),),
    outputs=(OutputSpec(name="y", doc="Probabilities that sum to 1 along the axis.", shape="of x"),),
    args=(
        ArgSpec(
            name="axis",
            type="axis",
            doc="Axis of the classes; default: the last.",
            default_rule="last_axis",
        ),
    ),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    formula="y_i = exp(x_i) / sum over j of exp(x_j)",
    notes="The maximum is subtracted first, so large scores do not overflow. Half precision is computed in float32.",
    example="F.softmax(nn.NdArray.from_numpy_array([0.0, 0.0]), axis=0)  # [0.5, 0.5]",
)

LOG_SOFTMAX = FunctionSpec(
    name="LogSoftmax",
    api="log_softmax",
    topic="activation",
    doc="Turn scores along an axis into logarithms of probabilities.",
    inputs=(InputSpec(name="x", doc="Scores.", shape="any with at least one axis"),),
    outputs=(OutputSpec(name="y", doc="Logarithms of the softmax, not positive.", shape="of x"),),
    args=(
        ArgSpec(
            name="axis",
            type="axis",
            doc="Axis of the classes; default: the last.",
            default_rule="last_axis",
        ),
    ),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    formula="y_i = x_i - log(sum over j of exp(x_j))",
    notes="The maximum is subtracted first, so large scores do not overflow. Half precision is computed in float32.",
    example="F.log_softmax(nn.NdArray.from_numpy_array([0.0, 0.0]), axis=0)  # [-0.693, -0.693]",
)

ELU = FunctionSpec(
    name="ELU",
    api="elu",
    topic="activation",
    doc="Bend negative elements towards -alpha (exponential linear unit).",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    args=(
        ArgSpec(
            name="alpha",
            type="float",
            doc="Limit for large negative elements, as a positive number.",
            default=1.0,
        ),
    ),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = x (x > 0), alpha (exp(x) - 1) (otherwise)",
    notes="The gradient at 0 is 1.",
    references=(
        "D.-A. Clevert, T. Unterthiner, S. Hochreiter (2016), Fast and accurate deep network learning "
        "by exponential linear units."
    ),
    example="F.elu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.393]",
)

SELU = FunctionSpec(
    name="SELU",
    api="selu",
    topic="activation",
    doc="Apply the exponential linear unit whose scale keeps mean 0 and variance 1 through layers.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    args=(
        ArgSpec(name="scale", type="float", doc="Factor of the result.", default=1.05070098735548),
        ArgSpec(
            name="alpha",
            type="float",
            doc="Limit for large negative elements before scaling, as a positive number.",
            default=1.673263242354377,
        ),
    ),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = scale x (x > 0), scale alpha (exp(x) - 1) (otherwise)",
    notes="The gradient at 0 is scale alpha.",
    references="G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter (2017), Self-normalizing neural networks.",
    example="F.selu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.525, -0.692]",
)

CRELU = FunctionSpec(
    name="CReLU",
    api="crelu",
    topic="activation",
    doc="Rectify the input and its negative and join both along an axis.",
    inputs=(InputSpec(name="x", doc="Input.", shape="(N_1, ..., C, ..., N_k)"),),
    outputs=(OutputSpec(name="y", doc="Activations of x, then those of -x.", shape="(N_1, ..., 2 C, ..., N_k)"),),
    args=(ArgSpec(name="axis", type="axis", doc="Axis along which the two halves are joined.", default=1),),
    backward=BackwardSpec(needs=("x",)),
    tags=("selecting",),
    formula="y = [max(0, x), max(0, -x)]",
    notes="At 0 the gradient is that of the second half.",
    references=(
        "W. Shang, K. Sohn, D. Almeida, H. Lee (2016), Understanding and improving convolutional "
        "neural networks via concatenated rectified linear units."
    ),
    example="F.crelu(nn.NdArray.from_numpy_array([1.0, -2.0]), axis=0)  # [1, 0, 0, 2]",
)

CELU = FunctionSpec(
    name="CELU",
    api="celu",
    topic="activation",
    doc="Apply the exponential linear unit to the input and its negative and join both along an axis.",
    inputs=(InputSpec(name="x", doc="Input.", shape="(N_1, ..., C, ..., N_k)"),),
    outputs=(OutputSpec(name="y", doc="Activations of x, then those of -x.", shape="(N_1, ..., 2 C, ..., N_k)"),),
    args=(
        ArgSpec(
            name="alpha",
            type="float",
            doc="Limit for large negative elements, as a positive number.",
            default=1.0,
        ),
        ArgSpec(name="axis", type="axis", doc="Axis along which the two halves are joined.", default=1),
    ),
    backward=BackwardSpec(needs=("x",)),
    formula="y = [elu(x), elu(-x)]",
    notes="This is the concatenated unit, not the continuously differentiable one that shares the abbreviation.",
    references=(
        "D.-A. Clevert, T. Unterthiner, S. Hochreiter (2016), Fast and accurate deep network learning "
        "by exponential linear units."
    ),
    example="F.celu(nn.NdArray.from_numpy_array([1.0, -2.0]), axis=0)  # [1, -0.865, -0.632, 2]",
)

PRELU = FunctionSpec(
    name="PReLU",
    api="prelu",
    topic="activation",
    doc="Scale negative elements by learned slopes.",
    inputs=(
        InputSpec(name="x0", doc="Input.", shape="(N_1, ..., N_k, C, ...)"),
        InputSpec(
            name="x1",
            doc="Slope for negative elements: one for all, or one per channel.",
            shape="() or (1) or (C)",
            dtype="parameter",
            parameter=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x0"),),
    args=(ArgSpec(name="base_axis", type="axis", doc="Axis of the channels.", default=1),),
    backward=BackwardSpec(needs=("x0", "x1")),
    formula="y = x0 (x0 >= 0), x1 x0 (otherwise)",
    notes="The gradient at 0 is 1.",
    references="K. He, X. Zhang, S. Ren, J. Sun (2015), Delving deep into rectifiers.",
    example=(
        "F.prelu(nn.NdArray.from_numpy_array([[0.5, -2]]), nn.NdArray.from_numpy_array([0.25, 0.1]))  # "
        "[[0.5, -0.2]]"
    ),
)

GELU = FunctionSpec(
    name="GELU",
    api="gelu",
    topic="activation",
    doc="Weight every element with the normal distribution function, in its tanh approximation.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))",
    notes="Minus infinity gives NaN.",
    references="D. Hendrycks, K. Gimpel (2016), Gaussian error linear units.",
    example="F.gelu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.346, -0.154]",
)

MISH = FunctionSpec(
    name="Mish",
    api="mish",
    topic="activation",
    doc="Weight every element with the hyperbolic tangent of its softplus.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = x tanh(log(1 + exp(x)))",
    notes="Minus infinity gives NaN.",
    references="D. Misra (2019), Mish: a self regularized non-monotonic activation function.",
    example="F.mish(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.375, -0.221]",
)

RELU6 = FunctionSpec(
    name="ReLU6",
    api="relu6",
    topic="activation",
    doc="Limit every element to [0, 6].",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("y",)),
    tags=("pointwise", "inplace_ok"),
    formula="y = min(max(0, x), 6)",
    notes="The gradient at 0 and 6 is 0.",
    references="A. Krizhevsky (2010), Convolutional deep belief networks on CIFAR-10.",
    example="F.relu6(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, 0]",
)

HARD_SIGMOID = FunctionSpec(
    name="HardSigmoid",
    api="hard_sigmoid",
    topic="activation",
    doc="Approximate the sigmoid by three straight lines.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = min(max(0, 0.2 x + 0.5), 1)",
    notes="The gradient at -2.5 and 2.5 is 0.2.",
    example="F.hard_sigmoid(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.6, 0.4]",
)

HARD_TANH = FunctionSpec(
    name="HardTanh",
    api="hard_tanh",
    topic="activation",
    doc="Limit every element to [-1, 1].",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = min(max(-1, x), 1)",
    notes="The gradient at -1 and 1 is 1.",
    example="F.hard_tanh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]",
)

LOG_SIGMOID = FunctionSpec(
    name="LogSigmoid",
    api="log_sigmoid",
    topic="activation",
    doc="Take the logarithm of the sigmoid without forming the sigmoid.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = -log(1 + exp(-x))",
    notes="Large negative elements are passed through, never minus infinity.",
    example="F.log_sigmoid(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [-0.474, -0.974]",
)

SOFTPLUS = FunctionSpec(
    name="SoftPlus",
    api="softplus",
    topic="activation",
    doc="Rectify smoothly.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    args=(ArgSpec(name="beta", type="float", doc="Sharpness of the bend at 0; finite, and not 0.", default=1.0),),
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = log(1 + exp(beta x)) / beta",
    notes="Computed without overflow for large elements.",
    example="F.softplus(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.974, 0.474]",
)

SOFTSIGN = FunctionSpec(
    name="SoftSign",
    api="softsign",
    topic="activation",
    doc="Squash every element into (-1, 1) with a rational function.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = x / (1 + |x|)",
    notes="Infinities give NaN.",
    example="F.softsign(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.333, -0.333]",
)

TANH_SHRINK = FunctionSpec(
    name="TanhShrink",
    api="tanh_shrink",
    topic="activation",
    doc="Subtract its hyperbolic tangent from every element.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = x - tanh x",
    example="F.tanh_shrink(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.038, -0.038]",
)

SINC = FunctionSpec(
    name="Sinc",
    api="sinc",
    topic="activation",
    doc="Apply the unnormalised sinc function.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Activation.", shape="of x"),),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    tags=("pointwise",),
    formula="y = sin(x) / x (x != 0), 1 (x = 0)",
    notes="There is no factor pi as in numpy.sinc. Infinities give NaN.",
    example="F.sinc(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.959, 0.959]",
)

SPECS: tuple[FunctionSpec, ...] = (
    SIGMOID,
    SWISH,
    TANH,
    RELU,
    LEAKY_RELU,
    SOFTMAX,
    LOG_SOFTMAX,
    ELU,
    SELU,
    CRELU,
    CELU,
    PRELU,
    GELU,
    MISH,
    RELU6,
    HARD_SIGMOID,
    HARD_TANH,
    LOG_SIGMOID,
    SOFTPLUS,
    SOFTSIGN,
    TANH_SHRINK,
    SINC,
)
