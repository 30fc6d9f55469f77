"""Tests of the operators of the topic pooling."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import SHAPE_RULES
from nn_core.testing.operators import check_forward, check_gradient, check_table, run, run_gradient

rng = np.random.default_rng(23)


def distinct(*shape: int) -> np.ndarray:
    """Values far enough from each other for differences at maxima."""
    size = int(np.prod(shape))
    return rng.permutation(size).reshape(shape) - size / 2.0


def pooled(
    x: np.ndarray,
    reduce: Callable[[np.ndarray, int], float],
    kernel: tuple,
    stride: tuple,
    ignore_border: bool,
    pad: tuple,
) -> np.ndarray:
    """The definition over the last axes: `reduce` gets what a window has in x, and its size in the padded x."""
    n = len(kernel)
    lengths, batch = x.shape[-n:], x.shape[:-n]
    counts = [
        (lengths[a] + 2 * pad[a] - kernel[a]) // stride[a] + 1
        if ignore_border
        else int(np.ceil((lengths[a] + pad[a]) / stride[a]))
        for a in range(n)
    ]
    y = np.zeros((*batch, *counts))
    for place in np.ndindex(*counts):
        starts = [place[a] * stride[a] - pad[a] for a in range(n)]
        stops = [min(starts[a] + kernel[a], lengths[a] + pad[a]) for a in range(n)]
        size = int(np.prod([stop - start for start, stop in zip(starts, stops, strict=True)]))
        window = tuple(slice(max(start, 0), min(stops[a], lengths[a])) for a, start in enumerate(starts))
        for b in np.ndindex(*batch):
            y[(*b, *place)] = reduce(x[(*b, *window)], size)
    return y


def test_table() -> None:
    check_table("pooling")


# shape, kernel, stride, ignore_border, pad
POOLING = [
    ((2, 3, 4, 6), (2, 2), (2, 2), True, (0, 0)),
    ((1, 2, 5, 7), (3, 2), (2, 1), True, (0, 0)),
    ((1, 2, 5, 7), (3, 2), (2, 3), True, (1, 1)),
    ((1, 2, 5, 7), (3, 2), (2, 3), False, (0, 1)),
    ((1, 1, 5, 5), (3, 3), (1, 1), False, (0, 0)),
    ((1, 1, 6, 6), (3, 3), (2, 2), False, (1, 1)),
    ((6, 5), (2, 2), (3, 3), False, (0, 0)),
    ((6, 5), (2, 2), (3, 3), True, (0, 0)),
    ((2, 7), (3,), (2,), False, (2,)),
    ((1, 2, 4, 3, 4), (2, 1, 3), (1, 2, 2), True, (1, 0, 0)),
]
REDUCTIONS: list[tuple[str, dict, Callable]] = [
    ("MaxPooling", {}, lambda window, _: window.max()),
    ("SumPooling", {}, lambda window, _: window.sum()),
    ("AveragePooling", {"including_pad": True}, lambda window, size: window.sum() / size),
    ("AveragePooling", {"including_pad": False}, lambda window, _: window.mean()),
]


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize(("shape", "kernel", "stride", "ignore_border", "pad"), POOLING)
@pytest.mark.parametrize(("name", "settings", "reduce"), REDUCTIONS)
def test_poolings(
    name: str,
    settings: dict,
    reduce: Callable,
    shape: tuple,
    kernel: tuple,
    stride: tuple,
    ignore_border: bool,
    pad: tuple,
    channel_last: bool,
) -> None:
    args: dict[str, Any] = {"kernel": kernel, "stride": stride, "ignore_border": ignore_border, "pad": pad}
    x, channel = distinct(*shape), -1 - len(kernel)
    if channel_last:
        x = np.moveaxis(x[None], channel, -1)

    def truth(x: np.ndarray) -> np.ndarray:
        if channel_last:
            return np.moveaxis(pooled(np.moveaxis(x, -1, channel), reduce, **args), channel, -1)
        return pooled(x, reduce, **args)

    check_forward(name, [x], truth, channel_last=channel_last, **settings, **args)
    check_gradient(name, [x], channel_last=channel_last, **settings, **args)


@pytest.mark.parametrize(("name", "settings", "reduce"), REDUCTIONS)
def test_poolings_of_an_empty_batch(name: str, settings: dict, reduce: Callable) -> None:
    check_forward(name, [np.zeros((0, 2, 4, 4))], np.zeros((0, 2, 2, 2)), kernel=(2, 2), **settings)
    check_gradient(name, [np.zeros((0, 2, 4, 4))], kernel=(2, 2), **settings)


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize(("shape", "kernel", "stride", "ignore_border", "pad"), POOLING)
def test_max_pooling_gather_and_backward_are_transposes(
    shape: tuple, kernel: tuple, stride: tuple, ignore_border: bool, pad: tuple, channel_last: bool
) -> None:
    args: dict[str, Any] = {"kernel": kernel, "stride": stride, "ignore_border": ignore_border, "pad": pad}
    args["channel_last"] = channel_last
    x = distinct(*shape)
    if channel_last:
        x = np.moveaxis(x[None], -1 - len(kernel), -1)
    values = rng.standard_normal(x.shape)
    (y,) = run("MaxPooling", x, **args)
    np.testing.assert_array_equal(run("MaxPoolingGather", x, x, **args)[0], y)
    dy = rng.standard_normal(y.shape)
    check_gradient("MaxPoolingGather", [values, x], wrt=(0,), **args)
    check_gradient("MaxPoolingBackward", [dy, x], wrt=(0,), **args)
    (gathered,) = run("MaxPoolingGather", values, x, **args)
    (scattered,) = run("MaxPoolingBackward", dy, x, **args)
    np.testing.assert_allclose((gathered * dy).sum(), (scattered * values).sum())


def test_max_pooling_gives_ties_to_the_first_maximum() -> None:
    (dx,) = run_gradient("MaxPooling", np.zeros((1, 1, 3, 3)), kernel=(2, 2), stride=(2, 2), pad=(1, 1))
    np.testing.assert_array_equal(dx[0, 0], [[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    (dx,) = run_gradient("MaxPooling", np.zeros((1, 1, 3, 3)), kernel=(2, 2), stride=(1, 1))
    np.testing.assert_array_equal(dx[0, 0], [[1, 1, 0], [1, 1, 0], [0, 0, 0]])


def test_max_pooling_keeps_nan_and_never_takes_padding() -> None:
    x = np.array([[-3.0, np.nan, -1.0, -2.0]])
    np.testing.assert_array_equal(run("MaxPooling", x, kernel=(2,), pad=(1,))[0], [[-3, np.nan, -2]])


def test_sum_pooling_accumulates_half_precision_in_single() -> None:
    x = np.full((1, 1, 64, 64), 0.5, np.float16)
    assert run("SumPooling", x, kernel=(64, 64))[0].item() == 2048.0


PLAIN: dict[str, Any] = {
    "kernel": (2, 2), "stride": (2, 2), "ignore_border": True, "pad": (0, 0), "channel_last": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "args", "error", "message"),
    [
        ((1, 1, 4, 4), {"kernel": ()}, ArgumentError, r"kernel must have at least one length, got \(\)"),
        ((4,), {}, ShapeError, "x must have an axis for each axis of kernel, got 1 and 2"),
        ((4, 4), {"channel_last": True}, ShapeError, "x must have an axis for each axis of kernel, got 1 and 2"),
        (
            (4, 4),
            {"stride": (1,)},
            ArgumentError,
            r"stride must have one value for each of the 2 axes of kernel, got \(1,\)",
        ),
        ((4, 4), {"pad": (1,)}, ArgumentError, r"pad must have one value for each of the 2 axes of kernel, got \(1,\)"),
        (
            (4, 4),
            {"pad": (1, 2)},
            ArgumentError,
            r"pad must be less than kernel on each axis, got \(1, 2\) and \(2, 2\)",
        ),
        ((4, 1), {}, ShapeError, r"x with its padding must be as long as kernel, got \(4, 1\) and \(2, 2\)"),
    ],
)
def test_poolings_refuse(shape: tuple, args: dict, error: type, message: str) -> None:
    for name in ("MaxPooling", "SumPooling", "AveragePooling"):
        with pytest.raises(error, match=message):
            SHAPE_RULES[name](shape, **{**PLAIN, **args})


def test_max_pooling_backward_and_gather_refuse_other_shapes() -> None:
    with pytest.raises(ShapeError, match=r"dy must have the shape of the max pooling of x, got \(4, 4\) and \(2, 2\)"):
        SHAPE_RULES["MaxPoolingBackward"]((4, 4), (4, 4), **PLAIN)
    with pytest.raises(ShapeError, match=r"values must have the shape of x, got \(2, 2\) and \(4, 4\)"):
        SHAPE_RULES["MaxPoolingGather"]((2, 2), (4, 4), **PLAIN)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4), (1, 2, 3, 2, 2), (0, 3, 2, 2)])
def test_global_average_pooling(shape: tuple) -> None:
    x = rng.standard_normal(shape)
    truth = np.array([[channel.sum() / channel.size for channel in sample] for sample in x]).reshape(shape[0], shape[1])
    check_forward("GlobalAveragePooling", [x], truth.reshape(*shape[:2], *[1] * (len(shape) - 2)), dtypes=("float64",))
    check_forward("GlobalAveragePooling", [x], lambda x: x.mean(tuple(range(2, x.ndim)), keepdims=True))
    check_gradient("GlobalAveragePooling", [x])


def test_global_average_pooling_refuses_arrays_without_spatial_axes() -> None:
    with pytest.raises(ShapeError, match="x must have a spatial axis after samples and channels, got 2 axes"):
        SHAPE_RULES["GlobalAveragePooling"]((2, 3))


@pytest.mark.parametrize("shape", [(2, 3, 2, 3), (2, 3), (0, 1, 2, 2)])
def test_unpooling(shape: tuple) -> None:
    x = rng.standard_normal(shape)
    check_forward("Unpooling", [x], lambda x: np.kron(x, np.ones((2, 3))) if x.size else np.zeros((0, 1, 4, 6)), kernel=(2, 3))
    check_gradient("Unpooling", [x], kernel=(2, 3))


def test_unpooling_with_channels_last() -> None:
    x = rng.standard_normal((2, 2, 3, 4))
    expected = np.moveaxis(run("Unpooling", np.moveaxis(x, -1, 1), kernel=(2, 1))[0], 1, -1)
    check_forward("Unpooling", [x], expected, dtypes=("float64",), kernel=(2, 1), channel_last=True)
    check_gradient("Unpooling", [x], kernel=(2, 1), channel_last=True)


def aligned(images: np.ndarray, boxes: np.ndarray, size: tuple, scale: tuple, ratio: int) -> np.ndarray:
    """The definition of RoI align, one sample after the other."""
    height, width = images.shape[2:]
    y = np.zeros((len(boxes), images.shape[1], *size))
    for k, (image, left, top, right, bottom) in enumerate(boxes):
        bins = (bottom - top) * scale[0] / size[0], (right - left) * scale[1] / size[1]
        counts = [ratio if ratio > 0 else int(np.ceil(length)) for length in bins]
        for i, j in np.ndindex(*size):
            for p, q in np.ndindex(*counts):
                row = top * scale[0] - 0.5 + (i + (p + 0.5) / counts[0]) * bins[0]
                col = left * scale[1] - 0.5 + (j + (q + 0.5) / counts[1]) * bins[1]
                if not (-1 <= row <= height and -1 <= col <= width):
                    continue
                row, col = min(max(row, 0), height - 1), min(max(col, 0), width - 1)
                r, c = min(int(row), height - 2), min(int(col), width - 2)
                patch = images[int(image), :, r : r + 2, c : c + 2]
                weights = np.outer([1 - (row - r), row - r], [1 - (col - c), col - c])
                y[k, :, i, j] += (patch * weights).sum((1, 2)) / np.prod(counts)
    return y


BOXES = np.array([[0, 1, 2, 5, 6], [1, -3, -3, 12, 12], [1, 1.2, 2.3, 1.9, 2.8], [0, 0, 0, 8, 7], [0, 3, 3, 3, 3]], float)


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize(
    ("size", "scale", "ratio"), [((2, 2), (1.0, 1.0), -1), ((2, 3), (0.5, 0.75), 2), ((1, 4), (1.0, 1.0), 1)]
)
def test_roi_align(size: tuple, scale: tuple, ratio: int, channel_last: bool) -> None:
    images = rng.standard_normal((2, 3, 7, 8))
    args = {"output_size": size, "spatial_scale": scale, "sampling_ratio": ratio, "channel_last": channel_last}
    expected = aligned(images, BOXES, size, scale, ratio)
    dy = rng.standard_normal(expected.shape)
    if channel_last:
        images, expected, dy = (np.moveaxis(array, 1, -1) for array in (images, expected, dy))
    check_forward("RoiAlign", [images, BOXES], expected, dtypes=("float64",), **args)
    check_forward("RoiAlign", [images, BOXES], expected, dtypes=("float32",), rtol=1e-8, atol=1e-11, **args)
    check_gradient("RoiAlign", [images, BOXES], wrt=(0,), **args)
    check_gradient("RoiAlignBackward", [dy, BOXES], wrt=(0,), input_shape=images.shape, **args)


def test_roi_align_agrees_with_nnabla() -> None:
    image = np.arange(64.0).reshape(1, 1, 8, 8)
    boxes = np.array([[0, 1, 2, 6, 7], [0, -3, -3, 12, 12]], float)
    args = {"output_size": (2, 2), "spatial_scale": (0.5, 0.25), "sampling_ratio": 1}
    np.testing.assert_allclose(run("RoiAlign", image, boxes, **args)[0][0, 0], [[9.0625, 9.6875], [19.0625, 19.6875]])
    (y,) = run("RoiAlign", image, boxes, output_size=(2, 2))
    np.testing.assert_allclose(y[1, 0], [[5.9765625, 6.063965], [15.042969, 13.060547]], rtol=1e-6)


@pytest.mark.parametrize("number", [-1.0, 1.0, 0.5, np.nan])
def test_roi_align_of_an_image_that_does_not_exist(number: float) -> None:
    with pytest.raises(ArgumentError, match="boxes must begin with the number of an image, from 0 to 0"):
        run("RoiAlign", np.ones((1, 2, 4, 4)), [[number, 0, 0, 2, 2]], output_size=(1, 1))


@pytest.mark.parametrize("place", [np.nan, np.inf, -np.inf])
def test_roi_align_of_boxes_that_are_not_finite(place: float) -> None:
    with pytest.raises(ArgumentError, match=f"roi_align: boxes must be finite, got {place}"):
        run("RoiAlign", np.ones((1, 2, 4, 4)), [[0, 0, 0, place, 2]], output_size=(1, 1))


@pytest.mark.parametrize("place", [65541 * 2.0, 1e10, 1e30])
def test_roi_align_of_boxes_that_need_too_many_samples(place: float) -> None:
    image, boxes = np.ones((1, 2, 4, 4)), [[0, 0, 0, place, 2]]
    message = "roi_align: bins must have at most 65536 samples on an axis, got .*\n  hint: clip boxes"
    with pytest.raises(ArgumentError, match=message):
        run("RoiAlign", image, boxes, output_size=(2, 2))
    with pytest.raises(ArgumentError, match=message):
        run("RoiAlign", image, boxes, output_size=(2, 2), sampling_ratio=2**40)
    (y,) = run("RoiAlign", image, boxes, output_size=(2, 2), sampling_ratio=2)
    assert np.isfinite(y).all()


def test_roi_align_without_boxes() -> None:
    check_forward("RoiAlign", [np.ones((1, 2, 4, 4)), np.zeros((0, 5))], np.zeros((0, 2, 3, 3)), output_size=(3, 3))
    check_gradient("RoiAlign", [np.ones((1, 2, 4, 4)), np.zeros((0, 5))], wrt=(0,), output_size=(3, 3))


@pytest.mark.parametrize(
    ("shapes", "args", "error", "message"),
    [
        (((2, 3, 4), (1, 5)), {}, ShapeError, "input must have 4 axes, got 3"),
        (((2, 3, 4, 4), (1, 4)), {}, ShapeError, r"boxes must have shape \(K, 5\), got \(1, 4\)"),
        (
            ((2, 3, 4, 4), (1, 5)),
            {"output_size": (2,)},
            ArgumentError,
            r"output_size must have two values, .*, got \(2,\)",
        ),
        (
            ((2, 3, 4, 4), (1, 5)),
            {"spatial_scale": (2.0,)},
            ArgumentError,
            r"spatial_scale must have two values, .*, got \(2.0,\)",
        ),
    ],
)
def test_roi_align_refuses(shapes: tuple, args: dict, error: type, message: str) -> None:
    plain = {"output_size": (2, 2), "spatial_scale": (1.0, 1.0), "sampling_ratio": -1, "channel_last": False}
    with pytest.raises(error, match=message):
        SHAPE_RULES["RoiAlign"](*shapes, **{**plain, **args})
    with pytest.raises(
        ShapeError, match=r"dy must have the shape that roi_align gives, got \(1, 3, 2, 3\) and \(1, 3, 2, 2\)"
    ):
        SHAPE_RULES["RoiAlignBackward"]((1, 3, 2, 3), (1, 5), input_shape=(2, 3, 4, 4), **plain)


@pytest.mark.parametrize(
    ("name", "args", "expected", "gradient"),
    [
        ("average_pooling", {"kernel": (64, 64)}, 6.5, 1 / 12),
        ("average_pooling", {"kernel": (64, 64), "pad": (1, 1)}, 78 / 30, 1 / 30),
        ("average_pooling", {"kernel": (64, 64), "pad": (1, 1), "including_pad": False}, 6.5, 1 / 12),
        ("average_pooling", {"kernel": (4, 6), "stride": (2, 3), "pad": (0, 1)}, 78 / 18, 1 / 18),
        ("sum_pooling", {"kernel": (64, 64)}, 78, 1),
        ("max_pooling", {"kernel": (64, 64)}, 12, None),
    ],
)
def test_a_window_that_is_longer_than_x_ends_with_it(name, args, expected, gradient) -> None:
    x = nn.Variable.from_numpy_array(np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4), need_grad=True)
    y = getattr(F, name)(x, **args)
    x.grad.zero()
    y.forward()
    y.backward()
    assert y.shape == (1, 1, 1, 1)
    np.testing.assert_allclose(y.d.item(), expected, rtol=1e-6)
    wanted = np.full((3, 4), gradient) if gradient else np.eye(12)[-1].reshape(3, 4)
    np.testing.assert_allclose(x.g[0, 0], wanted, rtol=1e-6)


def test_the_window_is_as_long_as_asked_for_where_x_grows() -> None:
    x = nn.Variable.from_numpy_array(np.ones((1, 1, 2, 2), np.float32))
    y = F.average_pooling(x, (64, 64))
    x.reset_shape((1, 1, 128, 64), force=True)
    x.d = 1
    y.forward()
    assert y.shape == (1, 1, 2, 1)


def test_a_window_that_is_longer_by_a_stride_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"x with its padding must be as long as kernel, got \(3, 4\) and \(3, 6\)"):
        F.average_pooling(nn.Variable((1, 1, 3, 4)), (4, 6), stride=(2, 2))
    with pytest.raises(ShapeError, match="as long as kernel"):
        F.average_pooling(nn.Variable((1, 1, 0, 4)), (2, 2))
