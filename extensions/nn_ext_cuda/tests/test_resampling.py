"""Regions and warped images of sizes and places that the samples of the conformance kit do not have, emulated."""

import numpy as np
import pytest

from nn_core.operators.reference.image import warp_by_flow, warp_by_grid
from nn_core.operators.reference.normalization import spectral_norm
from nn_core.operators.reference.pooling import roi_align, roi_align_backward

RNG = np.random.default_rng(0)
#: Inside, across each border, beyond it, upside down, without area, of another image.
BOXES = [
    (0, 1.5, 2.25, 7.5, 6), (1, -3, -2, 4, 3), (0, 6, 5, 14, 12), (1, 40, 40, 50, 50), (1, 7, 6, 2, 1), (0, 3, 3, 3, 3),
    (1, 0, 0, 10, 9),
]  # fmt: skip


def ran(device, name, inputs, **args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of(name, inputs, str(inputs[0].dtype), **args)
    assert KERNELS[name].refuse(call) is None
    return emulated.forward(device, KERNELS[name], call, inputs), call


@pytest.mark.parametrize("ratio", [-1, 1, 3])
@pytest.mark.parametrize("channel_last", [False, True])
def test_boxes_across_borders(device, ratio, channel_last):
    images = RNG.normal(size=(2, 9, 10, 3) if channel_last else (2, 3, 9, 10)).astype("float32")
    boxes = np.array(BOXES, "float32")
    args = {"output_size": (3, 4), "spatial_scale": (0.9, 1.1), "sampling_ratio": ratio, "channel_last": channel_last}
    (y,), _ = ran(device, "RoiAlign", [images, boxes], **args)
    np.testing.assert_allclose(y, roi_align(np, images, boxes, **args), rtol=0, atol=2e-6)
    dy = RNG.normal(size=y.shape).astype("float32")
    (dx,), _ = ran(device, "RoiAlignBackward", [dy, boxes], input_shape=images.shape, **args)
    np.testing.assert_allclose(dx, roi_align_backward(np, dy, boxes, input_shape=images.shape, **args), rtol=0, atol=5e-6)


def test_a_box_of_an_image_that_does_not_exist_gives_nan(device):
    images = np.ones((2, 1, 4, 4), "float32")
    boxes = np.array([(0, 0, 0, 4, 4), (2, 0, 0, 4, 4), (0.5, 0, 0, 4, 4)], "float32")
    (y,), _ = ran(device, "RoiAlign", [images, boxes], output_size=(2, 2))
    assert np.isnan(y).all(axis=(1, 2, 3)).tolist() == [False, True, True]


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("box", [(0, 0, np.inf, 4), (-np.inf, 0, np.inf, 4), (np.nan, 0, 3, 3), (0, -1e30, 3, 1e30)])
def test_a_box_without_end_has_no_mean(device, box, ratio):
    """Numbers of samples that no integer holds are the largest one on a device, which would never come to an end.

    Boxes that hosts refuse, since they are not finite or have too many samples, have NaN in the place of means.
    """
    expected = 0 if np.isfinite(box).all() and ratio > 0 else np.nan
    images, boxes = np.ones((1, 1, 4, 4), "float32"), np.array([(0, *box)], "float32")
    args = {"output_size": (2, 2), "sampling_ratio": ratio}
    (y,), _ = ran(device, "RoiAlign", [images, boxes], **args)
    np.testing.assert_array_equal(y, np.full((1, 1, 2, 2), expected))
    (dx,), _ = ran(device, "RoiAlignBackward", [np.ones_like(y), boxes], input_shape=images.shape, **args)
    np.testing.assert_array_equal(dx, np.full((1, 1, 4, 4), expected))


@pytest.mark.parametrize(
    ("name", "places", "args"),
    [
        ("WarpByGrid", np.ones((1, 1, 1, 2)), {"align_corners": True}),
        ("RoiAlign", np.array([(0, 2**24 + 2, 0, 2**24 + 5, 1)]), {"output_size": (1, 1), "sampling_ratio": 1}),
    ],
)
def test_the_last_pixel_of_an_axis_that_float32_cannot_count(device, name, places, args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    length = 2**24 + 4  # the number of the last pixel is rounded to this
    memory = device.asarray(np.zeros(length + 1, "float32"))
    memory.set(np.r_[np.zeros(length - 1), 1, np.nan])
    x, places = memory[:length].reshape(1, 1, 1, length), device.asarray(places.astype("float32"))
    call = emulated.call_of(name, [x.view(np.ndarray), places.view(np.ndarray)], **args)
    y = device.asarray(np.zeros((1, 1, 1, 1), "float32"))
    KERNELS[name].forward(call)(x, places, y)
    assert y.item() == 1


@pytest.mark.parametrize("scale", [0.4, 3.0, 40.0])
def test_flows_inside_and_beyond_the_image(device, scale):
    data = RNG.normal(size=(2, 3, 5, 7)).astype("float32")
    flow = (scale * RNG.normal(size=(2, 2, 5, 7))).astype("float32")
    flow[0, 0, 0, 0] = np.nan
    (y,), _ = ran(device, "WarpByFlow", [data, flow])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(y, warp_by_flow(np, data, flow), rtol=0, atol=2e-5)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zero", "repeat", "reflect"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 2, 3, 1, 4)])
def test_points_far_outside(device, shape, mode, padding_mode, align_corners):
    rank = len(shape) - 2
    x = RNG.normal(size=shape).astype("float32")
    grid = (RNG.normal(size=(shape[0], *(6,) * rank, rank)) * 3).astype("float32")
    grid.ravel()[: 2 * rank] = [-1] * rank + [1] * rank
    args = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners, "channel_last": False}
    (y,), _ = ran(device, "WarpByGrid", [x, grid], **args)
    np.testing.assert_allclose(y, warp_by_grid(np, x, grid, **args), rtol=0, atol=2e-5)


@pytest.mark.parametrize(("padding_mode", "mode", "is_nan"), [("zero", "linear", True), ("zero", "nearest", False)])
def test_a_point_that_is_no_number(device, padding_mode, mode, is_nan):
    x, grid = np.ones((1, 1, 4, 4), "float32"), np.full((1, 1, 1, 2), np.nan, "float32")
    (y,), _ = ran(device, "WarpByGrid", [x, grid], mode=mode, padding_mode=padding_mode)
    assert np.isnan(y).all() == is_nan and (is_nan or not y.any())


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("test", [False, True])
def test_power_iteration_of_a_larger_weight(device, dim, test):
    w = RNG.normal(size=(70, 60, 3)).astype("float32")
    u = RNG.normal(size=w.shape[dim]).astype("float32")
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of("SpectralNorm", [w, u], dim=dim, itr=3, test=test)
    arrays = [device.asarray(array.copy()) for array in (w, u)]
    outputs = [device.asarray(np.zeros(desc.shape, desc.dtype)) for desc in call.outputs]
    KERNELS["SpectralNorm"].forward(call)(*arrays, *outputs)
    *expected, moved = spectral_norm(np, w, u, dim=dim, itr=3, eps=1e-12, test=test, output_u=False)
    for found, own in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(found.get().reshape(own.shape), own, rtol=0, atol=1e-5)
    np.testing.assert_allclose(arrays[1].get(), u if test else moved, rtol=0, atol=1e-5)
