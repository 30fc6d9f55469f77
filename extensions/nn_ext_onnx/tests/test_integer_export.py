"""Networks of integers in files: what is read again has the same bits."""

import numpy as np
import onnxruntime
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext import ArgumentError
from nn_core.utils.quantization import quantize
from nn_ext_onnx import export, load


@pytest.fixture
def rng():
    """Random numbers, the same in each test."""
    return np.random.default_rng(0)


def levels(rng, *shape, dtype=np.int8):
    """Draw any levels."""
    info = np.iinfo(dtype)
    return nn.Variable.from_numpy_array(rng.integers(info.min, info.max, shape, dtype, endpoint=True))


def again(path, y, x):
    """Write a network, and return the results of what is read for the present input."""
    export(path, {"y": y}, {"x": x})
    network = load(path)
    network.inputs["x"].d = x.d
    network.outputs["y"].forward()
    return network.outputs["y"].d


def test_a_quantized_network_is_read_with_the_same_bits(tmp_path, rng):
    x = nn.Variable((4, 3, 8, 8))
    h = F.relu(PF.batch_normalization(PF.convolution(x, 16, (3, 3), pad=(1, 1), name="a"), batch_stat=False, name="a"))
    h = F.relu(h + PF.depthwise_convolution(h, (3, 3), pad=(1, 1), name="b"))
    y = PF.affine(F.relu(PF.affine(F.max_pooling(h, (2, 2)), 20, name="c")), 10, name="d")
    samples = rng.normal(size=(16, 3, 8, 8)).astype(np.float32)
    network = quantize(y, [x], calibration=samples)
    found = network(samples[:4])
    export(tmp_path / "net.onnx", network.outputs, network.inputs)
    read = load(tmp_path / "net.onnx")
    (given,), (result,) = read.inputs.values(), read.outputs.values()
    given.d = samples[:4]
    result.forward()
    np.testing.assert_array_equal(result.d, found)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_functions_of_integers_are_read_with_the_same_bits(tmp_path, rng, dtype):
    x = nn.Variable.from_numpy_array(rng.normal(size=(3, 7)).astype(np.float32) * 40)
    one, zero = nn.Variable.from_numpy_array(np.full((1, 1), 0.7, np.float32)), levels(rng, 1, 1, dtype=dtype)
    scales = nn.Variable.from_numpy_array(rng.uniform(20, 90, 4).astype(np.float32))
    bias = nn.Variable.from_numpy_array(rng.integers(-900, 900, 4).astype(np.int32))
    weight, shift = levels(rng, 7, 4), levels(rng, 1, dtype=dtype)
    q = F.quantize_integer(x, one, zero)
    columns = F.quantize_integer(
        x, nn.Variable.from_numpy_array(rng.uniform(0.5, 2, (1, 7)).astype(np.float32)), levels(rng, 1, 7)
    )
    image, filters = F.reshape(q, (1, 3, 7)), levels(rng, 4, 3, 3)
    cases = [
        q,
        columns,
        F.matmul_integer(q, weight, zero, None, bias) * 1.0,
        F.conv_integer(image, filters, shift, None, bias, pad=(1,)) * 1.0,
        F.qlinear_matmul(q, weight, nn.Variable.from_numpy_array(np.array([77.7], np.float32)), shift, zero, None, None),
        F.qlinear_matmul(q, weight, scales, shift, zero, None, bias),
        F.qlinear_conv(image, filters, scales, shift, shift, levels(rng, 4), bias, pad=(1,), stride=(2,)),
    ]
    for number, y in enumerate(cases):
        y.forward()
        wanted = y.d.copy()
        np.testing.assert_array_equal(again(tmp_path / "net.onnx", y, x), wanted, err_msg=str(number))
        theirs = onnxruntime.InferenceSession(tmp_path / "net.onnx").run(None, {"x": x.d})[0]
        np.testing.assert_allclose(theirs.astype(float), wanted.astype(float), atol=1.001, err_msg=str(number))


def test_what_onnx_lacks_is_refused(tmp_path, rng):
    x = nn.Variable((3, 7))
    wide = F.quantize_integer(x, nn.Variable.from_numpy_array(np.ones((1, 1), np.float32)), levels(rng, 1, 1, dtype=np.int16))
    with pytest.raises(ArgumentError, match="levels must have 8 bits in products of ONNX, got int16"):
        export(tmp_path / "net.onnx", {"y": F.matmul_integer(wide, levels(rng, 7, 2)) * 1.0}, {"x": x})
