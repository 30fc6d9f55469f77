"""Specifications of the topic loss.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

SIGMOID_CROSS_ENTROPY = FunctionSpec(
    name="SigmoidCrossEntropy",
    api="sigmoid_cross_entropy",
    topic="loss",
    doc="Compare scores with binary labels: the cross entropy of the sigmoid of the scores.",
    inputs=(
        InputSpec(name="x", doc="Scores, before the sigmoid.", shape="any"),
        InputSpec(name="target", doc="Labels 0 and 1; probabilities between them are taken too.", shape="any"),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Loss of every element; take its mean to train.",
            shape="common shape of the inputs",
            dtype="statistic",
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(needs=("x", "target")),
    tags=("pointwise",),
    formula="y = -(target log s(x) + (1 - target) log(1 - s(x))), s the sigmoid",
    notes=(
        "The inputs broadcast against each other. Computed from the scores without forming the sigmoid, so "
        "large scores neither overflow nor lose digits."
    ),
    example="F.sigmoid_cross_entropy(nn.Variable((8, 10)), nn.Variable((8, 10))).shape  # (8, 10)",
)

BINARY_CROSS_ENTROPY = FunctionSpec(
    name="BinaryCrossEntropy",
    api="binary_cross_entropy",
    topic="loss",
    doc="Compare probabilities with binary labels: the cross entropy.",
    inputs=(
        InputSpec(name="x", doc="Probabilities in [0, 1].", shape="any"),
        InputSpec(name="target", doc="Labels 0 and 1, or probabilities.", shape="any"),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Loss of every element; take its mean to train.",
            shape="common shape of the inputs",
            dtype="statistic",
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(needs=("x", "target")),
    tags=("pointwise",),
    domain=(0.05, 0.95),
    formula="y = -(target log x + (1 - target) log(1 - x))",
    notes=(
        "The inputs broadcast against each other. Logarithms are taken of 2^-126 at least, which bounds "
        "the loss of a certain and wrong prediction by 87.4; the gradient divides by 2^-24 where it would "
        "divide by 0. Prefer sigmoid_cross_entropy, which has neither limit."
    ),
    example="F.binary_cross_entropy(nn.Variable((8, 10)), nn.Variable((8, 10))).shape  # (8, 10)",
)

SOFTMAX_CROSS_ENTROPY = FunctionSpec(
    name="SoftmaxCrossEntropy",
    api="softmax_cross_entropy",
    topic="loss",
    doc="Compare scores with class labels: the cross entropy of the softmax of the scores.",
    inputs=(
        InputSpec(name="x", doc="Scores, before the softmax.", shape="(N_1, ..., C, ..., N_k)"),
        InputSpec(
            name="target",
            doc="Labels: numbers of classes from 0 to C - 1.",
            shape="(N_1, ..., 1, ..., N_k)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Loss of every label; take its mean to train.",
            shape="(N_1, ..., 1, ..., N_k)",
            dtype="statistic",
        ),
    ),
    args=(
        ArgSpec(
            name="axis",
            type="axis",
            doc="Axis of the classes; default: the last.",
            default_rule="last_axis",
        ),
    ),
    backward=BackwardSpec(needs=("x", "target")),
    formula="y = log(sum over j of exp(x_j)) - x_target",
    notes=(
        "A negative label is ignored: its loss and its gradient are 0. A label of C or more raises "
        "ArgumentError. Half precision is computed in float32."
    ),
    example="F.softmax_cross_entropy(nn.Variable((8, 10)), nn.Variable((8, 1))).shape  # (8, 1)",
)

CATEGORICAL_CROSS_ENTROPY = FunctionSpec(
    name="CategoricalCrossEntropy",
    api="categorical_cross_entropy",
    topic="loss",
    doc="Compare probabilities with class labels: the cross entropy.",
    inputs=(
        InputSpec(name="x", doc="Probabilities of the classes in [0, 1].", shape="(N_1, ..., C, ..., N_k)"),
        InputSpec(
            name="target",
            doc="Labels: numbers of classes from 0 to C - 1.",
            shape="(N_1, ..., 1, ..., N_k)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Loss of every label; take its mean to train.",
            shape="(N_1, ..., 1, ..., N_k)",
            dtype="statistic",
        ),
    ),
    args=(
        ArgSpec(
            name="axis",
            type="axis",
            doc="Axis of the classes; default: the last.",
            default_rule="last_axis",
        ),
    ),
    backward=BackwardSpec(needs=("x", "target")),
    formula="y = -log x_target",
    notes=(
        "A negative label is ignored: its loss and its gradient are 0. A label of C or more raises "
        "ArgumentError. The logarithm is taken of 2^-126 at least; the gradient divides by 2^-24 where it "
        "would divide by 0. Prefer softmax_cross_entropy, which has neither limit."
    ),
    example="F.categorical_cross_entropy(nn.Variable((8, 10)), nn.Variable((8, 1))).shape  # (8, 1)",
)

CLASS_MASK = FunctionSpec(
    name="ClassMask",
    api="class_mask",
    topic="loss",
    doc="Mark the class of each label along an axis.",
    inputs=(
        InputSpec(
            name="target",
            doc="Labels: numbers of classes; others mark nothing.",
            shape="(N_1, ..., 1, ..., N_k)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="1 at the place of the label, 0 elsewhere.",
            shape="(N_1, ..., C, ..., N_k)",
        ),
    ),
    args=(
        ArgSpec(name="n_classes", type="int", doc="Number of classes C.", minimum=0),
        ArgSpec(name="axis", type="axis", doc="Axis of the classes; the target has length 1 there."),
    ),
    backward=BackwardSpec(none_because="labels are numbers of classes"),
    formula="y_c = [c = target]",
    notes=(
        "What the gradients of the class losses are made of; like one_hot, with the classes on any axis "
        "and negative labels allowed."
    ),
    example="F.class_mask(nn.Variable((8, 1)), 10, 1).shape  # (8, 10)",
)

SQUARED_ERROR = FunctionSpec(
    name="SquaredError",
    api="squared_error",
    topic="loss",
    doc="Take the squared difference of two arrays, with broadcasting.",
    inputs=(InputSpec(name="x0", doc="Prediction.", shape="any"), InputSpec(name="x1", doc="Target.", shape="any")),
    outputs=(
        OutputSpec(
            name="y",
            doc="Loss of every element; take its mean to train.",
            shape="common shape of the inputs",
            dtype="statistic",
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")),
    tags=("pointwise",),
    formula="y = (x0 - x1)^2",
    example=(
        "F.squared_error(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, "
        "4.0]))  # [2.25, 20.2]"
    ),
)

ABSOLUTE_ERROR = FunctionSpec(
    name="AbsoluteError",
    api="absolute_error",
    topic="loss",
    doc="Take the absolute difference of two arrays, with broadcasting.",
    inputs=(InputSpec(name="x0", doc="Prediction.", shape="any"), InputSpec(name="x1", doc="Target.", shape="any")),
    outputs=(
        OutputSpec(
            name="y",
            doc="Loss of every element; take its mean to train.",
            shape="common shape of the inputs",
            dtype="statistic",
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")),
    tags=("pointwise",),
    formula="y = |x0 - x1|",
    notes="Where both are equal the gradient of x0 is -1 and that of x1 is 1.",
    example=(
        "F.absolute_error(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, "
        "4.0]))  # [1.5, 4.5]"
    ),
)

HUBER_LOSS = FunctionSpec(
    name="HuberLoss",
    api="huber_loss",
    topic="loss",
    doc="Take the squared difference of two arrays, continued by straight lines where it is large.",
    inputs=(InputSpec(name="x0", doc="Prediction.", shape="any"), InputSpec(name="x1", doc="Target.", shape="any")),
    outputs=(
        OutputSpec(
            name="y",
            doc="Loss of every element; take its mean to train.",
            shape="common shape of the inputs",
            dtype="statistic",
        ),
    ),
    args=(ArgSpec(name="delta", type="float", doc="Difference at which the lines begin.", default=1.0, minimum=0),),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")),
    tags=("pointwise",),
    formula="y = d^2 (|d| < delta), delta (2 |d| - delta) (otherwise), with d = x0 - x1",
    notes=(
        "The inputs broadcast against each other. Twice the loss of the paper, so that it equals "
        "squared_error near 0."
    ),
    references="P. J. Huber (1964), Robust estimation of a location parameter.",
    example="F.huber_loss(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [2, 8]",
)

EPSILON_INSENSITIVE_LOSS = FunctionSpec(
    name="EpsilonInsensitiveLoss",
    api="epsilon_insensitive_loss",
    topic="loss",
    doc="Take the absolute difference of two arrays as far as it goes beyond a margin.",
    inputs=(InputSpec(name="x0", doc="Prediction.", shape="any"), InputSpec(name="x1", doc="Target.", shape="any")),
    outputs=(
        OutputSpec(
            name="y",
            doc="Loss of every element; take its mean to train.",
            shape="common shape of the inputs",
            dtype="statistic",
        ),
    ),
    args=(ArgSpec(name="epsilon", type="float", doc="Margin within which the loss is 0.", minimum=0),),
    shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")),
    tags=("pointwise",),
    formula="y = max(0, |x0 - x1| - epsilon)",
    notes="The inputs broadcast against each other. The gradient is 0 at the margin itself.",
    references="V. Vapnik (1995), The nature of statistical learning theory.",
    example=(
        "F.epsilon_insensitive_loss(nn.NdArray.from_numpy_array([0.5, -0.5]), "
        "nn.NdArray.from_numpy_array([2.0, 4.0]), epsilon=1)  # [0.5, 3.5]"
    ),
)

KL_MULTINOMIAL = FunctionSpec(
    name="KLMultinomial",
    api="kl_multinomial",
    topic="loss",
    doc="Take the Kullback-Leibler divergence of two multinomial distributions.",
    inputs=(
        InputSpec(
            name="p",
            doc="Probabilities of the source distribution.",
            shape="(N_1, ..., N_k, D_1, ..., D_m)",
        ),
        InputSpec(
            name="q",
            doc="Probabilities of the target distribution.",
            shape="(N_1, ..., N_k, D_1, ..., D_m)",
        ),
    ),
    outputs=(OutputSpec(name="D", doc="Divergence of each sample.", shape="(N_1, ..., N_k, 1)", dtype="statistic"),),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="First axis of the probabilities; those before it are sample axes.",
            default=1,
        ),
    ),
    backward=BackwardSpec(needs=("p", "q")),
    domain=(0.1, 0.9),
    formula="D = sum over i of p_i log(p_i / q_i)",
    notes=(
        "Logarithms are taken of 2^-126 at least, so that 0 log 0 is 0; the gradient uses 2^-24 in the "
        "place of a 0. Half precision is computed in float32."
    ),
    references="S. Kullback, R. A. Leibler (1951), On information and sufficiency.",
    example="F.kl_multinomial(nn.Variable((8, 10)), nn.Variable((8, 10))).shape  # (8, 1)",
)

TOP_N_ERROR = FunctionSpec(
    name="TopNError",
    api="top_n_error",
    topic="loss",
    doc="Mark the labels whose class is not among the n highest scores.",
    inputs=(
        InputSpec(name="x", doc="Scores or probabilities.", shape="(N_1, ..., C, ..., N_k)"),
        InputSpec(
            name="target",
            doc="Labels: numbers of classes from 0 to C - 1.",
            shape="(N_1, ..., 1, ..., N_k)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="output",
            doc="1 for a mistake, 0 for a hit; the mean is the error rate.",
            shape="(N_1, ..., 1, ..., N_k)",
        ),
    ),
    args=(
        ArgSpec(
            name="axis",
            type="axis",
            doc="Axis of the classes; default: the last.",
            default_rule="last_axis",
        ),
        ArgSpec(name="n", type="int", doc="Number of guesses.", default=1, minimum=1),
    ),
    backward=BackwardSpec(none_because="counts of mistakes are piecewise constant"),
    tags=("discontinuous",),
    formula="output = [number of classes j with x_j >= x_target > n]",
    notes=(
        "Classes with the score of the label count against it. A negative label is ignored: its error is "
        "0. A label of C or more raises ArgumentError."
    ),
    example="F.top_n_error(nn.Variable((8, 10)), nn.Variable((8, 1))).shape  # (8, 1)",
)

BINARY_ERROR = FunctionSpec(
    name="BinaryError",
    api="binary_error",
    topic="loss",
    doc="Mark the probabilities that fall on the other side of 1/2 than their label.",
    inputs=(
        InputSpec(name="x", doc="Probabilities.", shape="any"),
        InputSpec(name="target", doc="Labels 0 and 1.", shape="any"),
    ),
    outputs=(
        OutputSpec(
            name="output",
            doc="1 for a mistake, 0 for a hit; the mean is the error rate.",
            shape="common shape of the inputs",
        ),
    ),
    shape="broadcast",
    backward=BackwardSpec(none_because="counts of mistakes are piecewise constant"),
    tags=("pointwise", "discontinuous"),
    formula="output = [(x >= 1/2) != (target >= 1/2)]",
    notes="The inputs broadcast against each other.",
    example="F.binary_error(nn.Variable((8, 1)), nn.Variable((8, 1))).shape  # (8, 1)",
)

CONFUSION_MATRIX = FunctionSpec(
    name="ConfusionMatrix",
    api="confusion_matrix",
    topic="loss",
    doc="Count how often each class is predicted for each label.",
    inputs=(
        InputSpec(name="x", doc="Scores or probabilities.", shape="(N_1, ..., C, ..., N_k)"),
        InputSpec(
            name="target",
            doc="Labels: numbers of classes from 0 to C - 1.",
            shape="(N_1, ..., 1, ..., N_k)",
            dtype="index",
        ),
    ),
    outputs=(
        OutputSpec(
            name="output",
            doc="Counts: labels in rows, predictions in columns.",
            shape="(C, C)",
            dtype="index",
        ),
    ),
    args=(
        ArgSpec(
            name="axis",
            type="axis",
            doc="Axis of the classes; default: the last.",
            default_rule="last_axis",
        ),
    ),
    backward=BackwardSpec(none_because="counts of mistakes are piecewise constant"),
    formula="output_ij = number of samples with label i whose highest score is that of class j",
    notes=(
        "Of equal scores the first class counts. A negative label is not counted. A label of C or more "
        "raises ArgumentError."
    ),
    example="F.confusion_matrix(nn.Variable((8, 10)), nn.Variable((8, 1))).shape  # (10, 10)",
)

SPECS: tuple[FunctionSpec, ...] = (
    SIGMOID_CROSS_ENTROPY,
    BINARY_CROSS_ENTROPY,
    SOFTMAX_CROSS_ENTROPY,
    CATEGORICAL_CROSS_ENTROPY,
    CLASS_MASK,
    SQUARED_ERROR,
    ABSOLUTE_ERROR,
    HUBER_LOSS,
    EPSILON_INSENSITIVE_LOSS,
    KL_MULTINOMIAL,
    TOP_N_ERROR,
    BINARY_ERROR,
    CONFUSION_MATRIX,
)
