"""Specifications of the topic loss.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

SIGMOID_CROSS_ENTROPY = FunctionSpec(
    name="SigmoidCrossEntropy", api="sigmoid_cross_entropy", topic="loss",
    doc="Compare scores with binary labels: the cross entropy of the sigmoid of the scores.",
    inputs=(InputSpec(name="x"), InputSpec(name="target")), outputs=(OutputSpec(name="y", dtype="statistic"),),
    shape="broadcast", backward=BackwardSpec(needs=("x", "target")), tags=("pointwise",),
)

BINARY_CROSS_ENTROPY = FunctionSpec(
    name="BinaryCrossEntropy", api="binary_cross_entropy", topic="loss",
    doc="Compare probabilities with binary labels: the cross entropy.",
    inputs=(InputSpec(name="x"), InputSpec(name="target")), outputs=(OutputSpec(name="y", dtype="statistic"),),
    shape="broadcast", backward=BackwardSpec(needs=("x", "target")), tags=("pointwise",), domain=(0.05, 0.95),
)

SOFTMAX_CROSS_ENTROPY = FunctionSpec(
    name="SoftmaxCrossEntropy", api="softmax_cross_entropy", topic="loss",
    doc="Compare scores with class labels: the cross entropy of the softmax of the scores.",
    inputs=(InputSpec(name="x"), InputSpec(name="target", dtype="index")),
    outputs=(OutputSpec(name="y", dtype="statistic"),),
    args=(ArgSpec(name="axis", type="axis", default_rule="last_axis"),), backward=BackwardSpec(needs=("x", "target")),
)

CATEGORICAL_CROSS_ENTROPY = FunctionSpec(
    name="CategoricalCrossEntropy", api="categorical_cross_entropy", topic="loss",
    doc="Compare probabilities with class labels: the cross entropy.",
    inputs=(InputSpec(name="x"), InputSpec(name="target", dtype="index")),
    outputs=(OutputSpec(name="y", dtype="statistic"),),
    args=(ArgSpec(name="axis", type="axis", default_rule="last_axis"),), backward=BackwardSpec(needs=("x", "target")),
)

CLASS_MASK = FunctionSpec(
    name="ClassMask", api="class_mask", topic="loss", doc="Mark the class of each label along an axis.",
    inputs=(InputSpec(name="target", dtype="index"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="n_classes", type="int", minimum=0), ArgSpec(name="axis", type="axis")),
    backward=BackwardSpec(none_because="labels are numbers of classes"),
)

SQUARED_ERROR = FunctionSpec(
    name="SquaredError", api="squared_error", topic="loss",
    doc="Take the squared difference of two arrays, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y", dtype="statistic"),),
    shape="broadcast", backward=BackwardSpec(needs=("x0", "x1")), tags=("pointwise",),
)

ABSOLUTE_ERROR = FunctionSpec(
    name="AbsoluteError", api="absolute_error", topic="loss",
    doc="Take the absolute difference of two arrays, with broadcasting.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y", dtype="statistic"),),
    shape="broadcast", backward=BackwardSpec(needs=("x0", "x1")), tags=("pointwise",),
)

HUBER_LOSS = FunctionSpec(
    name="HuberLoss", api="huber_loss", topic="loss",
    doc="Take the squared difference of two arrays, continued by straight lines where it is large.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y", dtype="statistic"),),
    args=(ArgSpec(name="delta", type="float", default=1.0, minimum=0),), shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")), tags=("pointwise",),
)

EPSILON_INSENSITIVE_LOSS = FunctionSpec(
    name="EpsilonInsensitiveLoss", api="epsilon_insensitive_loss", topic="loss",
    doc="Take the absolute difference of two arrays as far as it goes beyond a margin.",
    inputs=(InputSpec(name="x0"), InputSpec(name="x1")), outputs=(OutputSpec(name="y", dtype="statistic"),),
    args=(ArgSpec(name="epsilon", type="float", minimum=0),), shape="broadcast",
    backward=BackwardSpec(needs=("x0", "x1")), tags=("pointwise",),
)

KL_MULTINOMIAL = FunctionSpec(
    name="KLMultinomial", api="kl_multinomial", topic="loss",
    doc="Take the Kullback-Leibler divergence of two multinomial distributions.",
    inputs=(InputSpec(name="p"), InputSpec(name="q")), outputs=(OutputSpec(name="D", dtype="statistic"),),
    args=(ArgSpec(name="base_axis", type="axis", default=1),), backward=BackwardSpec(needs=("p", "q")),
    domain=(0.1, 0.9),
)

TOP_N_ERROR = FunctionSpec(
    name="TopNError", api="top_n_error", topic="loss",
    doc="Mark the labels whose class is not among the n highest scores.",
    inputs=(InputSpec(name="x"), InputSpec(name="target", dtype="index")), outputs=(OutputSpec(name="output"),),
    args=(
        ArgSpec(name="axis", type="axis", default_rule="last_axis"),
        ArgSpec(name="n", type="int", default=1, minimum=1),
    ),
    backward=BackwardSpec(none_because="counts of mistakes are piecewise constant"), tags=("discontinuous",),
)

BINARY_ERROR = FunctionSpec(
    name="BinaryError", api="binary_error", topic="loss",
    doc="Mark the probabilities that fall on the other side of 1/2 than their label.",
    inputs=(InputSpec(name="x"), InputSpec(name="target")), outputs=(OutputSpec(name="output"),), shape="broadcast",
    backward=BackwardSpec(none_because="counts of mistakes are piecewise constant"),
    tags=("pointwise", "discontinuous"),
)

CONFUSION_MATRIX = FunctionSpec(
    name="ConfusionMatrix", api="confusion_matrix", topic="loss",
    doc="Count how often each class is predicted for each label.",
    inputs=(InputSpec(name="x"), InputSpec(name="target", dtype="index")),
    outputs=(OutputSpec(name="output", dtype="index"),),
    args=(ArgSpec(name="axis", type="axis", default_rule="last_axis"),),
    backward=BackwardSpec(none_because="counts of mistakes are piecewise constant"),
)

SPECS: tuple[FunctionSpec, ...] = (
    SIGMOID_CROSS_ENTROPY, BINARY_CROSS_ENTROPY, SOFTMAX_CROSS_ENTROPY, CATEGORICAL_CROSS_ENTROPY, CLASS_MASK,
    SQUARED_ERROR, ABSOLUTE_ERROR, HUBER_LOSS, EPSILON_INSENSITIVE_LOSS, KL_MULTINOMIAL, TOP_N_ERROR, BINARY_ERROR,
    CONFUSION_MATRIX,
)
