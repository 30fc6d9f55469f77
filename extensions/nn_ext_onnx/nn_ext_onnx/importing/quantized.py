"""The quantized functions that onnxruntime adds to those of ONNX: their quantizer writes them into files."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import onnx

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.arithmetic import where
from nn_ext_onnx.importing.levels import fixed
from nn_ext_onnx.importing.quantization import (
    dequantized,
    dynamically_quantized,
    product,
    quantized,
    ratio,
    requantized,
    turned,
)
from nn_ext_onnx.importing.recurrent import Product, Recurrence, written_out
from nn_ext_onnx.importing.registry import Made, Node, find, operator
from nn_ext_onnx.importing.values import UnsupportedError, Value

_DOMAINS: Final = ("com.microsoft",)
_FLOAT: Final = np.dtype(np.float32)
#: The operator set of the functions that quantized ones are made of.
_OPSET: Final = 13


def _triple(node: Node, index: int) -> nn.Variable:
    """Return the values of three inputs: levels, their scale, and their zero point."""
    return dequantized(node[index], node[index + 1], node.optional(index + 2))


def _levels(node: Node, y: nn.Variable, index: int) -> nn.Variable:
    """Return a result by the scale and the zero point that are inputs from `index` on."""
    zero_point = node.optional(index + 1)
    node.gives(node[0].dtype if zero_point is None else zero_point.dtype)
    return quantized(y, node[index], zero_point, node[0].dtype)


def _plain(node: Node, kind: str, x: nn.Variable) -> nn.Variable:
    """Apply the function of ONNX, with the attributes of the node, to values."""
    proto = onnx.helper.make_node(kind, ["x"], ["y"])
    proto.attribute.extend(node.proto.attribute)
    opset = node.attr("opset", _OPSET)
    convert = find("", kind, opset)
    assert convert is not None
    made: Any = convert(Node(proto, [Value("x", _FLOAT, variable=x)], opset, node.builder, [_FLOAT], [None]))
    return made


def _of_two(function: Callable[[nn.Variable, nn.Variable], nn.Variable]) -> Callable[[Node], Made]:
    return lambda node: _levels(node, function(_triple(node, 0), _triple(node, 3)), 6)


operator("QLinearAdd", domains=_DOMAINS, takes_whole=True)(_of_two(F.add2))
operator("QLinearMul", domains=_DOMAINS, takes_whole=True)(_of_two(F.mul2))


def _of_one(kind: str) -> Callable[[Node], Made]:
    return lambda node: _levels(node, _plain(node, kind, _triple(node, 0)), 3)


for _name in ("Sigmoid", "LeakyRelu", "ReduceMean", "Softmax"):
    operator(f"QLinear{_name}", domains=_DOMAINS, takes_whole=True)(_of_one(_name))


def _pooling(kind: str) -> Callable[[Node], Made]:
    def convert(node: Node) -> Made:
        x, is_last = _triple(node, 0), bool(node.attr("channels_last", 0))
        n = x.ndim
        y = _plain(node, kind, F.transpose(x, (0, n - 1, *range(1, n - 1))) if is_last else x)
        return _levels(node, F.transpose(y, (0, *range(2, n), 1)) if is_last else y, 3)

    return convert


for _name in ("AveragePool", "GlobalAveragePool"):
    operator(f"QLinear{_name}", domains=_DOMAINS, takes_whole=True)(_pooling(_name))


@operator("QLinearConcat", domains=_DOMAINS, takes_whole=True)
def _concat(node: Node) -> nn.Variable:
    values = [_triple(node, index) for index in range(2, len(node.inputs), 3)]
    axis = node.axis_of(node.attr("axis", 1), values[0].ndim)
    node.gives(node[1].dtype)
    return quantized(F.concatenate(*values, axis=axis), node[0], node[1])


@operator("QLinearWhere", domains=_DOMAINS, takes_whole=True)
def _where(node: Node) -> nn.Variable:
    node.gives(node[8].dtype)
    return quantized(where(node.x, _triple(node, 1), _triple(node, 4)), node[7], node[8])


# Products -----------------------------------------------------------------------------------------------------------


@operator("QGemm", domains=_DOMAINS, takes_whole=True)
def _gemm(node: Node) -> nn.Variable:
    a = F.transpose(node.x, (1, 0)) if node.attr("transA", 0) else node.x
    b = turned(node[3]) if node.attr("transB", 0) else node.variable(3)
    bias = node.optional_variable(6)
    is_row = bias is not None and bias.ndim and bias.shape[-1] == b.shape[1] and bias.size == b.shape[1]
    row = F.reshape(bias, (-1,)) if bias is not None and is_row else None
    sums = product(a, b, node.optional(2), node.optional(5), row)
    if bias is not None and row is None:
        sums = sums + bias
    factor = _times(ratio(2, [(node[1], None), (node[4], 1)], node.optional(7)), node.attr("alpha", 1.0))
    if node.optional(7) is None:
        node.gives(_FLOAT)
        return sums * factor
    node.gives(node[0].dtype if node.optional(8) is None else node[8].dtype)
    return requantized(sums, factor, node.optional(8), node[0].dtype, node[0].dtype)


def _times(factor: nn.Variable, alpha: float) -> nn.Variable:
    return factor if alpha == 1 else factor * alpha


def _in_floats(node: Node, sums: nn.Variable, factor: nn.Variable, bias: int) -> nn.Variable:
    node.gives(_FLOAT)
    y = sums * factor
    return y if node.optional(bias) is None else y + node.variable(bias)


@operator("MatMulIntegerToFloat", domains=_DOMAINS, takes_whole=True)
def _matmul_integer_to_float(node: Node) -> nn.Variable:
    sums = product(node.x, node.variable(1), node.optional(4), node.optional(5))
    return _in_floats(node, sums, ratio(sums.ndim, [(node[2], -2), (node[3], -1)]), 6)


@operator("DynamicQuantizeMatMul", domains=_DOMAINS)
def _dynamic_quantize_matmul(node: Node) -> nn.Variable:
    sums, factor = dynamic_product(node.x, node.variable(1), node[2], node.optional(3))
    return _in_floats(node, sums, factor, 4)


def dynamic_product(
    x: nn.Variable, weight: nn.Variable, scale: Value, zero_point: Value | None
) -> tuple[nn.Variable, nn.Variable]:
    """Return the product of values, which are quantized for it, and of levels; the sums, and the scale of these."""
    levels, x_scale, x_zero = dynamically_quantized(x)
    sums = product(levels, weight, Value("zero", np.dtype(np.uint8), variable=x_zero), zero_point)
    return sums, ratio(sums.ndim, [(Value("scale", _FLOAT, variable=x_scale), None), (scale, -1)])


# Recurrence ---------------------------------------------------------------------------------------------------------


@operator("DynamicQuantizeLSTM", domains=_DOMAINS)
def _lstm(node: Node) -> list[nn.Variable]:
    """Quantize inputs, all at once, and states, step by step, for their products with the weights."""
    n_outputs = len(node.proto.output)
    node.gives(*[_FLOAT] * n_outputs)
    # the weights of LSTM are (D, 4 H, columns), those here the other way round
    shapes = [(node[k].shape[0], node[k].shape[2], node[k].shape[1]) for k in (1, 2)]
    weights = [Value("weight", _FLOAT, np.broadcast_to(np.float32(0), shape)) for shape in shapes]
    proto = onnx.helper.make_node("LSTM", node.proto.input[:8], node.proto.output)
    proto.attribute.extend(node.proto.attribute)
    plain = Node(proto, [node.inputs[0], *weights, *node.inputs[3:8]], _OPSET, node.builder)

    def products(d: int) -> list[Product]:
        return [_product_with(node, d, *places) for places in ((1, 8, 9), (2, 10, 11))]

    return written_out(Recurrence(plain), products)[:n_outputs]


def _product_with(node: Node, d: int, weight: int, scale: int, zero_point: int) -> Product:
    """Return the product with the weight of one direction."""
    parts = [_of_direction(node[index], d) for index in (weight, scale, zero_point)]

    def multiplied(x: nn.Variable) -> nn.Variable:
        rows = F.reshape(x, (-1, x.shape[-1]))
        sums, factor = dynamic_product(rows, parts[0].variable, *parts[1:])
        return F.reshape(sums * factor, (*x.shape[:-1], sums.shape[-1]))

    return multiplied


def _of_direction(value: Value, d: int) -> Value:
    array = fixed(value)
    if array is None:
        raise UnsupportedError("weights or scales that are computed")
    return Value(value.name, value.dtype, np.ascontiguousarray(array[d]))
