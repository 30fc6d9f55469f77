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
    """<ir_version: 8, opset_import: ["": 17]> g (float[1, 2, 4, 4] x) => (float[1, 3] y)
       <int8[3, 2, 3, 3] w = {1, -2, 3, -4, 5, -6, 7, -8, 9, 10, -11, 12, -13, 14, -15, 16, -17, 18, 19, -20, 21, -22, 23,
        -24, 25, -26, 27, 28, -29, 30, -31, 32, -33, 34, -35, 36, 37, -38, 39, -40, 41, -42, 43, -44, 45, 46, -47, 48, -49,
        50, -51, 52, -53, 54}, float[3] t = {0.01, 0.02, 0.03}, int8[3] n = {0, 0, 0}, float s = {0.05}, uint8 z = {100},
        int32[3] b = {10, -20, 30}, float[3] u = {0.0005, 0.001, 0.0015}, int32[3] m = {0, 0, 0}> {
        a = QuantizeLinear(x, s, z)  c = DequantizeLinear(a, s, z)  v = DequantizeLinear<axis = 0>(w, t, n)
        d = DequantizeLinear<axis = 0>(b, u, m)  e = Conv<pads = [1, 1, 1, 1]>(c, v, d)  f = Relu(e)
        h = QuantizeLinear(f, s, z)  i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(h)  j = DequantizeLinear(i, s, z)
        k = GlobalAveragePool(j)  y = Flatten(k) }""",
    """<ir_version: 8, opset_import: ["": 17]> g (float[6, 2] x) => (float[4, 2] y, float[2, 2] w, int64 n) {
        first = Constant<value = int64 {1}>()  zero = Constant<value = int64 {0}>()  last = Constant<value = int64 {-1}>()
        sizes = Constant<value = int64[3] {1, 2, 3}>()  parts = SplitToSequence<axis = 0>(x, sizes)
        a = SequenceAt(parts, first)  more = SequenceInsert(parts, a, zero)  less = SequenceErase(more, last)
        b = SequenceAt(less, zero)  pair = SequenceConstruct(a, b)  y = ConcatFromSequence<axis = 0>(pair)
        n = SequenceLength(less)  o = Optional(a)  w = OptionalGetElement(o) }""",
    """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x, bool go) => (float[2, 3] y) {
        y = If(go) <then_branch = t () => (float[2, 3] a) { a = Neg(x) }, else_branch = e () => (float[2, 3] b) {
            s = SequenceConstruct(x, x)  c = SequenceMap(s) <body = m (float[2, 3] v) => (float[2, 3] w) { w = Exp(v) }>
            z = Constant<value = int64 {0}>()  b = SequenceAt(c, z) }> }""",
    """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[3, 1, 2] x) => (float[3, 1, 1, 2] y)
       <int8[1, 2, 8] w = {1, -2, 3, -4, 5, -6, 7, -8, 9, 10, -11, 12, -13, 14, -15, 16}, float[1] s = {0.02},
        int8[1, 2, 8] r = {8, 7, -6, 5, -4, 3, -2, 1, 1, -2, 3, -4, 5, -6, 7, 8}, int8[1] z = {0}, float[1, 16] b = {0.1, 0.2,
        0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}> {
        y = com.microsoft.DynamicQuantizeLSTM<hidden_size: int = 2>(x, w, r, b, , , , , s, z, s, z) }""",
    """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
       g (float[2, 1, 16] q, float[2, 1, 8] k, float[2, 1, 8] v, float[2, 1, 3, 8] p, float[2, 1, 3, 8] u) =>
       (float[2, 1, 16] y) <int32[2] n = {3, 3}, int32 t = {4}> {
        y, a, b = com.microsoft.GroupQueryAttention<num_heads: int = 2, kv_num_heads: int = 1>(q, k, v, p, u, n, t) }""",
    """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[3, 2] x) => (float[3, 1] y) {
        y = ai.onnx.ml.TreeEnsembleRegressor<n_targets: int = 1, nodes_treeids: ints = [0, 0, 0],
            nodes_nodeids: ints = [0, 1, 2], nodes_featureids: ints = [1, 0, 0], nodes_values: floats = [0.1, 0.0, 0.0],
            nodes_modes: strings = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids: ints = [1, 0, 0],
            nodes_falsenodeids: ints = [2, 0, 0], target_treeids: ints = [0, 0], target_nodeids: ints = [1, 2],
            target_ids: ints = [0, 0], target_weights: floats = [1.5, -2.0]>(x) }""",
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
    except Exception:  # the definitions raise whatever NumPy raises; of onnxruntime's own operators they have none
        agrees = _agrees_with_runtime(data, inputs, found)
        return "unjudged" if agrees is None else "equal" if agrees else "another result than onnxruntime's"
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
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        expected = session.run(None, inputs)
    except Exception:  # a class of its own for each status
        return None
    return not _difference(found, expected)


def _shape_of(entry: onnx.ValueInfoProto) -> list[int]:
    return [min(max(axis.dim_value, 0), 16) for axis in entry.type.tensor_type.shape.dim]


def _array(entry: onnx.ValueInfoProto) -> np.ndarray:
    shape = _shape_of(entry)
    code = entry.type.tensor_type.elem_type
    known = code in onnx.TensorProto.DataType.values() and code != onnx.TensorProto.UNDEFINED
    dtype = onnx.helper.tensor_dtype_to_np_dtype(code) if known else np.float32
    return np.linspace(-1, 1, prod(shape)).reshape(shape).astype(dtype)
