"""Models of ONNX for the lane of mutated files, and ONNX's own definitions as the judge of what is computed.

Where the definitions see another result, onnxruntime has the last word: what a Loop collects they join along an axis that is
there already if it has two. What it refuses, which the definitions compute otherwise, has no judge.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import parser
from onnx.reference import ReferenceEvaluator

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext import NNCoreError
from nn_ext_onnx import export_model
from nn_ext_onnx.backend import prepare

TOLERANCE = 1e-3
#: Elements of the inputs of a model that is computed; a model may declare more than there is memory for.
_COMPUTED = 100_000

_TEXTS = (
    """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2] y, float[3, 2] all) {
        n = Constant<value = int64 {3}>()  go = Constant<value = bool {1}>()  s = ReduceSum<keepdims = 0>(x, axis)
        y, all = Loop(n, go, s) <body = b (int64 i, bool c, float[2] p) => (bool k, float[2] t, float[2] u) {
            k = Identity(c)  t = Add(p, p)  u = Identity(t) }> }""".replace("(x, axis)", "(x, one)").replace(
        "n = Constant", "one = Constant<value = int64[1] {1}>()  n = Constant"
    ),
    """<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2, 3] x) => (float[3, 2] y) {
        a = own.twice<alpha = 3.0>(x)  s = Shape(a)  first = Constant<value = int64[1] {0}>()  n = Gather(s, first)
        rest = Constant<value = int64[1] {-1}>()  target = Concat<axis = 0>(rest, n)  y = Reshape(a, target) }
       <domain: "own", opset_import: ["": 17]> twice<alpha>(a) => (b) {
        c = LeakyRelu<alpha: float = @alpha>(a)  b = Add(c, c) }""",
    """<ir_version: 10, opset_import: ["": 21]> g (float[2, 3] x) => (float[2, 2] y)
       <int8[3, 2] w = {5, -7, 64, 3, -60, 9}, float s = {0.05}, float[2] t = {0.01, 0.02}, uint8 z = {128},
        int8[2] n = {0, 3}> {
        a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)  v = DequantizeLinear<axis = 1>(w, t, n)  c = MatMul(b, v)
        d, e, f = DynamicQuantizeLinear(c)  h = MatMulInteger(a, w, z)  i = Cast<to = 1>(h)  j = Mul(i, s)
        k = DequantizeLinear(d, e, f)  y = Add(j, k) }""",
    """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[1, 2, 4, 4] x) => (float[1, 2, 2, 2] y)
       <uint8[2, 2, 2, 2] w = {5, 7, 64, 3, 60, 9, 0, 255, 1, 2, 3, 4, 5, 6, 7, 8}, float s = {0.05}, uint8 z = {128},
        int32[2] b = {100, -7}> {
        a = QuantizeLinear(x, s, z)  c = QLinearConv<pads = [0, 0, 1, 1], strides = [2, 2]>(a, s, z, w, s, z, s, z, b)
        d = com.microsoft.QLinearLeakyRelu<alpha: float = 0.1>(c, s, z, s, z)
        e = com.microsoft.QLinearAdd(d, s, z, c, s, z, s, z)
        y = DequantizeLinear(e, s, z) }""",
)


def models() -> list[bytes]:
    """Small models of several kinds."""
    nn.seed(0)
    with nn.parameter_scope("", {}):
        x = nn.Variable((2, 3))
        dense = export_model({"y": F.softmax(PF.affine(F.relu(PF.affine(x, 4, name="a")), 3, name="b"))}, {"x": x})
        images = nn.Variable((1, 2, 5, 5))
        h = F.max_pooling(PF.convolution(images, 3, (3, 3), pad=(1, 1), name="c"), (2, 2))
        conv = export_model({"y": F.mean(F.tanh(h), axis=(2, 3))}, {"x": images})
        steps, state = nn.Variable((3, 2, 2)), nn.Variable((1, 1, 2, 3))
        y, *_ = F.lstm(steps, state, state, nn.Variable.from_numpy_array(np.full((1, 4, 3, 5), 0.1, np.float32)))
        recurrent = export_model({"y": y}, {"x": steps, "h": state})
    made = [dense, conv, recurrent, *(parser.parse_model(text) for text in _TEXTS)]
    return [model.SerializeToString() for model in made]


def outcome(data: bytes) -> str:
    """ "refused", "equal", "unjudged" where the definitions fail or inputs are too large, or what is wrong."""
    model = onnx.ModelProto()
    try:
        prepared = prepare(data)
        model.ParseFromString(data)
        given = [entry for entry in model.graph.input if entry.name in prepared.names]
        if sum(prod(_shape_of(entry)) for entry in given) > _COMPUTED:
            return "unjudged"
        arrays = [_array(entry) for entry in given]
        found = prepared.run(arrays)
    except NNCoreError:
        return "refused"
    except Exception as error:  # whatever it is, it is a finding
        return f"{type(error).__name__}: {error}"
    inputs = dict(zip(prepared.names, arrays, strict=True))
    try:
        expected = ReferenceEvaluator(model).run(None, inputs)
    except Exception:  # the definitions raise whatever NumPy raises
        return "unjudged"
    difference = _difference(found, expected)
    agrees = _agrees_with_runtime(data, inputs, found) if difference else True
    return "unjudged" if agrees is None else "equal" if agrees else difference


def _difference(found: Sequence[Any], expected: Sequence[Any]) -> str:
    """Return how results differ; empty where they do not."""
    for mine, theirs in zip(found, expected, strict=True):
        wanted = np.asarray(theirs)
        if mine.shape != wanted.shape or not np.allclose(mine, wanted, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            return f"another result: {mine.shape} {mine.reshape(-1)[:4]} in place of {wanted.shape} {wanted.reshape(-1)[:4]}"
    return ""


def _agrees_with_runtime(data: bytes, inputs: dict[str, Any], found: Sequence[Any]) -> bool | None:
    """Return whether onnxruntime has these results; None where it takes the model for wrong."""
    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        expected = session.run(None, inputs)
    except Exception:  # a class of its own for each status
        return None
    return not _difference(found, expected)


def _shape_of(entry: onnx.ValueInfoProto) -> list[int]:
    return [min(max(axis.dim_value, 0), 8) for axis in entry.type.tensor_type.shape.dim]


def _array(entry: onnx.ValueInfoProto) -> np.ndarray:
    shape = _shape_of(entry)
    code = entry.type.tensor_type.elem_type
    known = code in onnx.TensorProto.DataType.values() and code != onnx.TensorProto.UNDEFINED
    dtype = onnx.helper.tensor_dtype_to_np_dtype(code) if known else np.float32
    return np.linspace(-1, 1, prod(shape)).reshape(shape).astype(dtype)
