"""Images whose channels are last: what onnxruntime makes of quantized models, and its convolution of floats."""

import numpy as np
import onnx
import onnxruntime
import pytest

from extensions.nn_ext_onnx.tests.quantized import expected, make, model_of, quantized
from extensions.nn_ext_onnx.tests.test_fused import drawn
from nn_ext_onnx.backend import run_model


def optimized(model, path):
    """Return the model that onnxruntime makes of one for this processor, as it saves it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


@pytest.mark.parametrize(("net", "way"), [("convolutional", "qoperator_uint8"), ("pooled", "qdq_channels")])
def test_optimized_models_are_those_of_onnxruntime(net, way, tmp_path):
    model, samples = quantized(net, way, 13, tmp_path / "net.onnx")
    model = optimized(model, tmp_path / "optimized.onnx")
    made = {node.op_type for node in model.graph.node}
    assert {"QLinearConv", "NhwcMaxPool"} <= made if net == "convolutional" else "QLinearConv" in made
    (wanted,), (found,) = expected(model, samples[0]), run_model(model, samples[0])
    np.testing.assert_allclose(found, wanted, atol=0.05)  # two levels after a chain of functions, each within one
    assert np.abs(found - wanted).mean() < 0.01


CONVOLUTIONS = {
    "plain": ({}, (5, 4, 3, 2)),
    "grouped": ({"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 2]}, (6, 2, 3, 3)),
    "same": ({"auto_pad": "SAME_UPPER", "strides": [1, 2]}, (5, 4, 3, 2)),
}


@pytest.mark.parametrize("case", sorted(CONVOLUTIONS))
def test_convolutions_of_floats_are_those_with_channels_second(case):
    """onnxruntime has no kernel of NhwcConv for processors; its schema says how the axes of the weight are ordered."""
    attributes, shape = CONVOLUTIONS[case]
    x, w, b = drawn(2, 9, 8, 4), drawn(*shape), drawn(shape[0])
    nodes = [make("NhwcConv", ["x", "w", "b"], ["y"], domain="com.microsoft", **attributes)]
    model = model_of(nodes, {"x": list(x.shape)}, {}, {"w": w, "b": b})
    model.graph.output.extend([onnx.ValueInfoProto(name="y")])
    plain = model_of([make("Conv", ["x", "w", "b"], ["y"], **attributes)], {"x": [2, 4, 9, 8]}, {}, {"w": w, "b": b})
    plain.graph.output.extend([onnx.ValueInfoProto(name="y")])
    (wanted,) = expected(plain, {"x": x.transpose(0, 3, 1, 2)})
    np.testing.assert_allclose(run_model(model, {"x": x})[0], wanted.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)
