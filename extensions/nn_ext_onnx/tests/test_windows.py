"""Operators that put windows together or take them apart, beside onnxruntime."""

import numpy as np
import pytest
from onnx import helper

from extensions.nn_ext_onnx.tests.quantized import model_of
from extensions.nn_ext_onnx.tests.test_fused import drawn
from nn_core.ext import ArgumentError
from nn_ext_onnx import load
from nn_ext_onnx.backend import prepare
from nn_ext_onnx.exporting.verification import run_model

INDICES = np.array([[[[5, 7], [13, 15]], [[16, 22], [25, 27]]]], np.int64)
#: Operator, attributes, the first input, further inputs as constants by name, the shape of the result, operator set.
CASES = {
    "stft": (
        "STFT", {}, drawn(2, 64, 1), {"step": np.int64(8), "window": np.hanning(16).astype(np.float32)}, (2, 7, 9, 2), 17,
    ),
    "stft_both_sides": (
        "STFT", {"onesided": 0}, drawn(1, 30, 1), {"step": np.int64(5), "": None, "size": np.int64(10)}, (1, 5, 10, 2), 17,
    ),
    "col2im": (
        "Col2Im", {"strides": [2, 1], "pads": [1, 0, 0, 1], "dilations": [1, 2]}, drawn(2, 12, 9),
        {"image": np.array([6, 4], np.int64), "block": np.array([2, 2], np.int64)}, (2, 3, 6, 4), 18,
    ),
    "affine_grid": (
        "AffineGrid", {"align_corners": 1}, drawn(2, 2, 3), {"size": np.array([2, 1, 3, 4], np.int64)}, (2, 3, 4, 2), 20,
    ),
    "max_unpool": (
        "MaxUnpool", {"kernel_shape": [2, 2], "strides": [2, 2]}, drawn(1, 2, 2, 2), {"i": INDICES}, (1, 2, 4, 4), 11,
    ),
}  # fmt: skip


def model(case):
    kind, attributes, x, constants, shape, opset = CASES[case]
    node = helper.make_node(kind, ["x", *constants], ["y"], **attributes)
    given = {name: value for name, value in constants.items() if name}
    return model_of([node], {"x": list(x.shape)}, {"y": list(shape)}, given, opset), x


@pytest.mark.parametrize("case", sorted(CASES))
def test_windows_are_those_of_onnxruntime(case):
    made, x = model(case)
    (found,), (wanted,) = prepare(made).run({"x": x}), run_model(made, {"x": x})
    assert found.shape == wanted.shape == CASES[case][4]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_banks_of_filters_follow_from_five_numbers():
    numbers = {
        "bins": np.int64(8),
        "length": np.int64(16),
        "rate": np.int64(8192),
        "low": np.float32(0),
        "high": np.float32(4096),
    }
    nodes = [helper.make_node("MelWeightMatrix", list(numbers), ["w"]), helper.make_node("MatMul", ["x", "w"], ["y"])]
    made, x = model_of(nodes, {"x": [3, 9]}, {"y": [3, 8]}, numbers, 17), drawn(3, 9)
    np.testing.assert_allclose(prepare(made).run({"x": x})[0], run_model(made, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_results_of_a_transposed_convolution_are_filled_up():
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 2], output_shape=[10, 8])
    made, x = model_of([node], {"x": [1, 1, 3, 3]}, {"y": [1, 2, 10, 8]}, {"w": drawn(1, 2, 3, 3)}), drawn(1, 1, 3, 3)
    np.testing.assert_allclose(prepare(made).run({"x": x})[0], run_model(made, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_complex_signals_are_refused():
    node = helper.make_node("STFT", ["x", "step", "", "size"], ["y"], onesided=0)
    made = model_of([node], {"x": [1, 30, 2]}, {"y": [1, 5, 10, 2]}, {"step": np.int64(5), "size": np.int64(10)}, 17)
    with pytest.raises(ArgumentError, match=r"STFT .*: complex signals"):
        load(made)
