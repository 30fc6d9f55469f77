"""Arrays resized as ONNX says it, of sizes that the samples of the conformance kit do not have, emulated."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.operators.reference import image

RNG = np.random.default_rng(0)
MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")


def compare(device, x, **args):
    """Both directions of the function and of its transpose, beside the reference in double precision."""
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    resize, transposed = KERNELS["ONNXResize"], KERNELS["ONNXResizeBackward"]
    call = emulated.call_of("ONNXResize", [x], **args)
    assert resize.refuse(call) is None
    (y,) = emulated.forward(device, resize, call, [x])
    expected = image.onnx_resize(np, x.astype("float64"), **call.args)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5)
    dy = RNG.normal(size=y.shape).astype("float32")
    args = {key: value for key, value in call.args.items() if key != "extrapolation_value"}
    expected = image.onnx_resize_backward(np, dy.astype("float64"), input_size=x.shape, **args)
    (dx,) = emulated.backward(device, resize, call, [x], dy)
    np.testing.assert_allclose(dx, expected, rtol=0, atol=1e-5)
    back = emulated.call_of("ONNXResizeBackward", [dy], input_size=x.shape, **args)
    np.testing.assert_array_equal(emulated.forward(device, transposed, back, [dy])[0], dx)
    (ddy,) = emulated.backward(device, transposed, back, [dy], x)
    expected = image.onnx_resize(np, x.astype("float64"), extrapolation_value=0.0, **args)
    np.testing.assert_allclose(ddy, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("transformation", MODES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [(2, 3, 17, 5), (2, 3, 1, 24), (2, 5, 3, 4)])
def test_sizes(device, sizes, mode, transformation):
    args = {"sizes": sizes, "mode": mode, "coordinate_transformation_mode": transformation, "extrapolation_value": 7.0}
    if transformation == "tf_crop_and_resize":
        args["roi"] = (0, 0, -0.3, 0.2, 1, 1, 1.1, 0.8)
    compare(device, RNG.normal(size=(2, 3, 6, 8)).astype("float32"), **args)


@pytest.mark.parametrize("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_roundings(device, nearest_mode):
    x = RNG.normal(size=(1, 9, 4)).astype("float32")
    compare(device, x, scales=(1.0, 0.6, 2.5), nearest_mode=nearest_mode, coordinate_transformation_mode="asymmetric")


def test_weights_beyond_the_border_are_left_out(device):
    x = RNG.normal(size=(7, 5)).astype("float32")
    compare(device, x, scales=(1.7, 1.0), mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    x = nn.Variable.from_numpy_array(RNG.normal(size=(1, 2, 4, 4)).astype("float32"), need_grad=True)
    loss = F.sum(F.onnx_resize(x, scales=(1, 1, 2, 2), mode="linear") ** 2)
    emulated.check_recorded(loss, x)
