"""Losses and errors."""

from typing import Final

from nn_ext_onnx.exporting.activation import softplus
from nn_ext_onnx.exporting.arithmetic import where
from nn_ext_onnx.exporting.registry import Call, converter, expressions
from nn_ext_onnx.exporting.values import BOOL, INT, Value

#: The smallest argument of a logarithm.
SMALLEST: Final = 2.0**-126


def _log(x: Value) -> Value:
    return x.op("Max", SMALLEST).op("Log")


def _sigmoid_cross_entropy(x: Value, target: Value) -> Value:
    return x.op("Relu") - target * x + softplus(-x.op("Abs"))


def _huber(x0: Value, x1: Value, delta: float) -> Value:
    distance = (x0 - x1).op("Abs")
    return where(distance.compare("Less", delta), distance * distance, delta * (2.0 * distance - delta))


def _differ(x: Value, target: Value) -> Value:
    return x.compare("GreaterOrEqual", 0.5).op("Xor", target.compare("GreaterOrEqual", 0.5), dtype=BOOL).real()


expressions(
    {
        "SigmoidCrossEntropy": _sigmoid_cross_entropy,
        "BinaryCrossEntropy": lambda x, target: -(target * _log(x) + (1.0 - target) * _log(1.0 - x)),
        "SquaredError": lambda x0, x1: (x0 - x1) * (x0 - x1),
        "AbsoluteError": lambda x0, x1: (x0 - x1).op("Abs"),
        "HuberLoss": _huber,
        "EpsilonInsensitiveLoss": lambda x0, x1, epsilon: ((x0 - x1).op("Abs") - epsilon).op("Relu"),
        "BinaryError": _differ,
    }
)


def _of_label(x: Value, target: Value, axis: int) -> Value:
    """Return the element that each label names; 0 for negative labels."""
    chosen = x.op("GatherElements", target.op("Max", 0), axis=axis)
    return where(target.compare("GreaterOrEqual", 0), chosen, 0.0)


@converter("SoftmaxCrossEntropy", "CategoricalCrossEntropy")
def _cross_entropy(call: Call) -> Value:
    axis = call.args["axis"]
    logarithms = call.x.op("LogSoftmax", axis=axis) if call.name == "SoftmaxCrossEntropy" else _log(call.x)
    return -_of_label(logarithms, call[1], axis)


@converter("KLMultinomial")
def _kl_multinomial(call: Call) -> Value:
    p, q, base_axis = call[0], call[1], call.args["base_axis"]
    total = (p * (_log(p) - _log(q))).reduce("ReduceSum", range(base_axis, call.ndim), False)
    return total.reshape(call.output_shape)


@converter("TopNError")
def _top_n_error(call: Call) -> Value:
    axis, target = call.args["axis"], call[1]
    rank = call.x.compare("GreaterOrEqual", _of_label(call.x, target, axis)).cast(INT).reduce("ReduceSum", [axis])
    return rank.compare("Greater", call.args["n"]).op("And", target.compare("GreaterOrEqual", 0)).real()


@converter("ConfusionMatrix")
def _confusion_matrix(call: Call) -> Value:
    axis, n = call.args["axis"], call.shape[call.args["axis"]]
    labels = call[1].reshape((-1,))
    predictions = call.x.op("ArgMax", axis=axis, keepdims=0, dtype=INT).reshape((-1,))
    levels, depth = call.graph.constant([0.0, 1.0]), call.graph.constant(n, INT)
    counted = labels.compare("GreaterOrEqual", 0).real().unsqueeze(1)
    rows = labels.op("OneHot", depth, levels, axis=-1, dtype=levels.dtype) * counted
    columns = predictions.op("OneHot", depth, levels, axis=-1, dtype=levels.dtype)
    return rows.transpose([1, 0]).op("MatMul", columns).cast(INT)
