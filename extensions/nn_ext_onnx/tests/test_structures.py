"""Texts, sequences and optional values, which no variable holds, and numbers of bfloat16."""

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import nn_core.functions as F
from nn_core.ext import ArgumentError
from nn_ext_onnx import export, load
from nn_ext_onnx.backend import prepare, run_model

BFLOAT16 = np.dtype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))


def model(text, opset=21):
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "ai.onnx.ml": 4]> g {text}')


SPLIT = model(
    "(float[4, 3] x) => (seq(float[]) y, float[] z) { y = SplitToSequence<axis=1, keepdims=0>(x)"
    " one = Constant<value_int=1>() a = SequenceAt(y, one) b = SequenceInsert(y, a)"
    " z = ConcatFromSequence<axis=0, new_axis=1>(b) }"
)


def test_sequences_of_variables_are_built_into_the_graph():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    y, z = run_model(SPLIT, [x])
    assert [part.tolist() for part in y] == x.T.tolist()
    np.testing.assert_array_equal(z, [*x.T, x[:, 1]])


def test_gradients_pass_through_sequences():
    network = load(SPLIT)
    network.inputs["x"].need_grad = True
    loss = F.sum(network.outputs["z"])
    loss.forward()
    loss.backward()
    np.testing.assert_array_equal(network.inputs["x"].g, [[1, 2, 1]] * 4)
    assert [part.shape for part in network.structures["y"]] == [(4,)] * 3


def test_sequences_may_be_given():
    made = model("(seq(float[]) s, int64 i) => (float[] y, int64 n) { y = SequenceAt(s, i) n = SequenceLength(s) }")
    prepared, parts = prepare(made), [np.ones(2, np.float32), np.zeros(3, np.float32)]
    assert [v.tolist() for v in prepared.run([parts, np.int64(-1)])] == [[0, 0, 0], 2]
    assert [v.tolist() for v in prepared.run([parts[:1], np.int64(0)])] == [[1, 1], 1]


def test_positions_beyond_a_sequence_are_refused():
    made = model("(seq(float[]) s, int64 i) => (seq(float[]) y) { y = SequenceErase(s, i) }")
    with pytest.raises(ArgumentError, match="position 3 of a sequence of 2"):
        run_model(made, [[np.ones(2, np.float32)] * 2, np.int64(3)])


def test_texts_are_known_when_a_graph_is_built():
    made = model(
        "(string[N] s, float[2] x) => (string[N] t, float[] y) { t = StringConcat(s, s) "
        'n = ai.onnx.ml.LabelEncoder<keys_strings=["a", "b"], values_floats=[2.0, 3.0]>(s) y = Mul(n, x) }'
    )
    prepared, x = prepare(made), np.ones(2, np.float32)
    t, y = prepared.run([np.array(["b", "a"], object), x])
    assert t.tolist() == ["bb", "aa"] and y.tolist() == [3, 2]
    assert prepared.run([np.array(["b", "b"], object), x])[1].tolist() == [3, 3]


def test_texts_must_be_given():
    made = model("(string[2] s) => (bool[] y) { y = Equal(s, s) }")
    with pytest.raises(ArgumentError, match=r"load\(\.\.\., values=\{'s': \.\.\.\}\)"):
        load(made)


def test_optional_values_may_be_absent():
    made = model("(optional(float[2]) o) => (bool[] y) { y = OptionalHasElement(o) }")
    prepared = prepare(made)
    assert [bool(prepared.run([value])[0]) for value in (None, np.ones(2, np.float32))] == [False, True]


def test_numbers_of_bfloat16_are_rounded_after_each_function():
    """1 + 2^-8 is no number of bfloat16: a sum that is 1 in it gives 0, not 2^-8."""
    made = model("(bfloat16[1] x, bfloat16[1] e) => (bfloat16[1] y) { s = Add(x, e) y = Sub(s, x) }")
    x, e = np.ones(1, BFLOAT16), np.full(1, 2.0**-9, BFLOAT16)
    (y,) = run_model(made, [x, e])
    assert y.dtype == BFLOAT16 and y.astype(np.float32).tolist() == [0.0]


def test_gradients_pass_where_numbers_are_rounded():
    network = load(model("(bfloat16[2] x) => (bfloat16[2] y) { y = Mul(x, x) }"))
    x = network.inputs["x"]
    x.d, x.need_grad = [1.5, 3.0], True
    network.outputs["y"].forward()
    network.outputs["y"].backward()
    np.testing.assert_array_equal(x.g, [3.0, 6.0])


def test_rounding_to_bfloat16_is_written_back(tmp_path):
    network = load(model("(bfloat16[2] x) => (bfloat16[2] y) { y = Exp(x) }"))
    export(tmp_path / "again.onnx", network.outputs, network.inputs, opset=21)
    (y,) = run_model(str(tmp_path / "again.onnx"), [np.array([1.0, 2.0], np.float32)])
    np.testing.assert_array_equal(y, np.exp(np.array([1.0, 2.0], np.float32)).astype(BFLOAT16).astype(np.float32))


def test_samples_are_scanned_one_by_one_before_version_9():
    made = model(
        "(float[2, 1] s, float[2, 3, 1] x) => (float[] y, float[] z) { y, z = Scan<num_scan_inputs=1, body = b (float[1] a, "
        "float[1] c) => (float[1] d, float[1] e) { d = Add(a, c) e = Identity(d) }>(, s, x) }",
        opset=8,
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3, 1)
    y, z = run_model(made, [np.zeros((2, 1), np.float32), x])
    np.testing.assert_array_equal(y, x.sum(axis=1))
    np.testing.assert_array_equal(z, x.cumsum(axis=1))
