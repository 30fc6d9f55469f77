"""Non-maximum suppression on the emulated device, beside the reference."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.operators.reference.indexing import nms_detection2d


def boxes(samples, n, classes):
    """Boxes that overlap in many ways, scores of which some are equal."""
    draw = np.random.default_rng(0)
    place = draw.uniform(0, 1, size=(samples, n, 2))
    size = draw.uniform(0.05, 0.4, size=(samples, n, 2))
    scores = draw.integers(0, 11, size=(samples, n, 1 + classes)) / 10
    return np.concatenate([place, size, scores], axis=2).astype("float32")


def ran(device, x, **args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of("NmsDetection2d", [x], **args)
    assert KERNELS["NmsDetection2d"].refuse(call) is None
    (y,) = emulated.forward(device, KERNELS["NmsDetection2d"], call, [x])
    return y, nms_detection2d(np, x, **call.args)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize(("n", "classes"), [(1, 1), (7, 3), (300, 4)])
def test_the_same_boxes_are_kept(device, n, classes, per_class):
    y, expected = ran(device, boxes(2, n, classes), thresh=0.25, nms=0.3, nms_per_class=per_class)
    np.testing.assert_array_equal(y > 0, expected > 0)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_boxes_without_area_and_with_nan(device):
    x = boxes(1, 6, 2)
    x[0, :, 4:] = 0.9
    x[0, 0, 2:4], x[0, 1, 2:4] = 0, 0
    x[0, 2, 0], x[0, 3, 4], x[0, 4, 5] = np.nan, np.nan, np.nan
    with np.errstate(invalid="ignore"):
        y, expected = ran(device, x, nms_per_class=True)
    np.testing.assert_array_equal(y, expected)


def test_boxes_without_classes(device):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    x = boxes(2, 20, 0)
    y, expected = ran(device, x, nms=0.2, nms_per_class=False)
    np.testing.assert_array_equal(y, expected)
    call = emulated.call_of("NmsDetection2d", [x], nms_per_class=True)
    assert "at least one class" in KERNELS["NmsDetection2d"].refuse(call).reason


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    y = F.nms_detection2d(F.identity(nn.Variable.from_numpy_array(boxes(2, 10, 2))))
    emulated.check_recorded(y)
