"""Models with results whose shapes follow from the numbers that they get: beside onnxruntime, and how they are loaded."""

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import nn_ext_onnx.importing.builder as builder
from nn_core.ext import ArgumentError
from nn_ext_onnx import load
from nn_ext_onnx.backend import prepare

DETECTION = """(float[1, 3, 8, 8] image) => (float[K, 4] chosen, int64[K, 3] places, float[1, 64, 4] boxes) {
    found = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(image, weights)
    parts = Constant<value = int64[2] {4, 2}>()
    corners, classes = Split<axis = 1>(found, parts)
    flat = Constant<value = int64[3] {1, 4, 64}>()  two = Constant<value = int64[3] {1, 2, 64}>()
    rows = Reshape(corners, flat)  boxes = Transpose<perm = [0, 2, 1]>(rows)
    sums = Reshape(classes, two)  scores = Sigmoid(sums)
    most = Constant<value = int64 {50}>()  overlap = Constant<value = float {0.5}>()  least = Constant<value = float {0.9}>()
    places = NonMaxSuppression(boxes, scores, most, overlap, least)
    last = Constant<value = int64 {2}>()  which = Gather<axis = 1>(places, last)
    all = Squeeze(boxes, zero)  chosen = Gather<axis = 0>(all, which)
}"""


def text_model(text, **constants):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


def detection():
    weights = np.random.default_rng(0).standard_normal((6, 3, 3, 3)).astype(np.float32) / 3
    return text_model(DETECTION, weights=weights, zero=np.array([0]))


def image(seed):
    return np.random.default_rng(seed).standard_normal((1, 3, 8, 8)).astype(np.float32)


def expected(model, *arrays):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([entry.name for entry in session.get_inputs()], arrays, strict=True)))


def assert_equal(found, wanted):
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_every_image_has_as_many_boxes_as_onnxruntime_finds():
    model = detection()
    prepared = prepare(model)
    counts = set()
    for seed in (1, 2, 3, 4, 1):
        found = prepared.run([image(seed)])
        assert_equal(found, expected(model, image(seed)))
        counts.add(len(found[0]))
    assert len(counts) > 1
    assert len(prepared.networks) == 4


def test_the_graph_is_computed_by_the_backend(monkeypatch):
    folded, evaluated, compute, evaluate = [], [], builder.computed, builder.evaluate
    monkeypatch.setattr(builder, "computed", lambda convert, node: folded.append(node.kind) or compute(convert, node))
    monkeypatch.setattr(builder, "evaluate", lambda proto, *rest: evaluated.append(proto.op_type) or evaluate(proto, *rest))
    prepare(detection()).run([image(1)])
    assert "Constant" in folded
    assert not {"Conv", "Sigmoid", "Transpose", "NonMaxSuppression"} & set(folded)
    assert evaluated == []


def test_without_numbers_the_error_says_how_to_give_them():
    message = r"NonMaxSuppression.*load\(\.\.\., values=\{'image': \.\.\.\}\), or .*backend\.prepare"
    with pytest.raises(ArgumentError, match=message):
        load(detection())


def test_inputs_from_which_shapes_follow_become_part_of_the_graph():
    model = text_model(
        """(float[2, 3] x, float[3] y) => (int64[2, K] places, float[3] z, float[2, 3] w) {
            places = NonZero(x)  z = Mul(y, y)  w = Add(x, y) }"""
    )
    x = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    network = load(model, values={"x": x})
    assert list(network.inputs) == ["y"]
    np.testing.assert_array_equal(network.bound["x"], x)
    network.inputs["y"].d = y = np.array([1, 2, 3], np.float32)
    for name, wanted in zip(network.outputs, expected(model, x, y), strict=True):
        if network.outputs[name].parent is not None:
            network.outputs[name].forward()
        np.testing.assert_array_equal(network.outputs[name].d, wanted)


def test_inputs_that_decide_nothing_stay_inputs():
    model = text_model("(float[3] x, float[3] y) => (int64[1, K] places, float[3] z) { places = NonZero(x)  z = Exp(y) }")
    prepared = prepare(model)
    x = np.array([1, 0, 2], np.float32)
    for y in (np.zeros(3, np.float32), np.ones(3, np.float32)):
        assert_equal(prepared.run([x, y]), expected(model, x, y))
    assert len(prepared.networks) == 1


@pytest.mark.parametrize("start", [0.5, 3.0, 60.0])
def test_loops_run_as_long_as_their_numbers_say(start):
    model = text_model(
        """(float[100] x) => (float[100] y) {
            limit = Constant<value = int64 {40}>()  go = Constant<value = bool {1}>()
            y = Loop(limit, go, x) <body = b (int64 i, bool c, float[100] s) => (bool k, float[100] t) {
                t = Mul(s, half)  m = ReduceMax<keepdims = 0>(t)  k = Greater(m, one) }> }""",
        half=np.array([0.5], np.float32),
        one=np.array(1, np.float32),
    )
    x = np.full(100, start, np.float32)
    assert_equal(prepare(model).run([x]), expected(model, x))


@pytest.mark.parametrize("sign", [1, -1])
def test_branches_are_chosen_by_computed_numbers(sign):
    model = text_model(
        """(float[100] x) => (float[100] y) {
            s = ReduceSum<keepdims = 0>(x)  c = Greater(s, zero)
            y = If(c) <then_branch = a () => (float[100] p) { p = Exp(x) },
                       else_branch = b () => (float[100] q) { q = Neg(x) }> }""",
        zero=np.array(0, np.float32),
    )
    x = sign * np.linspace(0, 1, 100, dtype=np.float32)
    prepared = prepare(model)
    assert_equal(prepared.run([x]), expected(model, x))
    assert_equal(prepared.run([-x]), expected(model, -x))


@pytest.mark.parametrize("seed", range(20))
def test_boxes_are_picked_as_onnxruntime_does(seed):
    given = "float[B, N, 4] b, float[B, C, N] s, int64 k, float i" + (", float t" if seed % 3 else "")
    names = "b, s, k, i" + (", t" if seed % 3 else "")
    model = text_model(f"({given}) => (int64[K, 3] y) {{ y = NonMaxSuppression<center_point_box = {seed % 2}>({names}) }}")
    rng = np.random.default_rng(seed)
    n, k = rng.integers(1, 12), rng.integers(0, 5)
    arrays = [
        rng.integers(0, 6, (2, n, 4)).astype(np.float32),
        (rng.integers(0, 5, (2, 3, n)) / 4).astype(np.float32) - 0.5 * (seed % 3 == 0),
        np.array(k),
        np.array(rng.choice([0, 0.25, 0.5, 1 / 3]), np.float32),
        np.array(rng.choice([0, 0.25, 0.5]), np.float32),
    ][: 5 if seed % 3 else 4]
    assert_equal(prepare(model).run([array.astype(array.dtype) for array in arrays]), expected(model, *arrays))
