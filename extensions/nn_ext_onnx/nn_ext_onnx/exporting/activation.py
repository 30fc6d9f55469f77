"""Activations."""

from typing import Any

from nn_ext_onnx.exporting.registry import Call, converter, expressions
from nn_ext_onnx.exporting.values import Value


def softplus(x: Value, beta: float = 1.0) -> Value:
    """log(1 + exp(beta x)) / beta."""
    return x.op("Softplus") if beta == 1 else (x * beta).op("Softplus") / beta


def _sinc(x: Value) -> Value:
    return x.compare("Equal", 0.0).op("Where", 1.0, x.op("Sin") / x)


def _gelu(x: Value) -> Value:
    if x.graph.opset >= 20:
        return x.op("Gelu", approximate="tanh")
    return 0.5 * x * (1.0 + (0.7978845608028654 * (x + 0.044715 * x * x * x)).op("Tanh"))


def _mish(x: Value) -> Value:
    return x.op("Mish") if x.graph.opset >= 18 else x * softplus(x).op("Tanh")


expressions(
    {
        "Sigmoid": lambda x: x.op("Sigmoid"),
        "Swish": lambda x: x * x.op("Sigmoid"),
        "Tanh": lambda x: x.op("Tanh"),
        "ReLU": lambda x, inplace: x.op("Relu"),
        "LeakyReLU": lambda x, alpha, inplace: x.op("LeakyRelu", alpha=alpha),
        "Softmax": lambda x, axis: x.op("Softmax", axis=axis),
        "LogSoftmax": lambda x, axis: x.op("LogSoftmax", axis=axis),
        "ELU": lambda x, alpha: x.op("Elu", alpha=alpha),
        "SELU": lambda x, scale, alpha: x.op("Selu", alpha=alpha, gamma=scale),
        "GELU": _gelu,
        "Mish": _mish,
        "ReLU6": lambda x: x.clip(0.0, 6.0),
        "HardSigmoid": lambda x: x.op("HardSigmoid", alpha=0.2, beta=0.5),
        "HardTanh": lambda x: x.clip(-1.0, 1.0),
        "LogSigmoid": lambda x: -softplus(-x),
        "SoftPlus": softplus,
        "SoftSign": lambda x: x.op("Softsign"),
        "TanhShrink": lambda x: x - x.op("Tanh"),
        "Sinc": _sinc,
    }
)


@converter("CReLU", "CELU")
def _concatenated(call: Call) -> Value:
    settings: dict[str, Any] = {"alpha": call.args["alpha"]} if call.name == "CELU" else {}
    kind = "Elu" if call.name == "CELU" else "Relu"
    parts = [call.x.op(kind, **settings), (-call.x).op(kind, **settings)]
    return call.graph.op("Concat", *parts, axis=call.args["axis"])


@converter("PReLU")
def _prelu(call: Call) -> Value:
    after = call.ndim - call.args["base_axis"] - 1
    is_one = len(call.shapes[1]) == 0 or call.shapes[1] == (1,)
    slope = call[1].reshape((1,) if is_one else (call.shapes[1][0],) + (1,) * after)
    return call.x.op("PRelu", slope)
