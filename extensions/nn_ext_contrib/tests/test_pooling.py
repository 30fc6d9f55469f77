"""Pooling of regions, and its inverse, pixel by pixel."""

import math

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError

C = F.contrib

RNG = np.random.default_rng
ROIS = np.array(
    [[0, 1, 0, 5, 3], [1, 2, 2, 2, 2], [1, 0, 1, 6, 4], [0, -4, -3, 2, 1], [1, 4, 3, 30, 9], [0, 8, 8, 9, 9], [1, 5, 4, 1, 1]],
    np.float64,
)


def distinct(*shape, seed=0):
    return RNG(seed).permutation(math.prod(shape)).reshape(shape) * 0.5


def pixels(first, last, bins, place, length):
    """The pixels of one axis in a bin, asked of each pixel: it is in where it overlaps the bin."""
    size = max(last - first + 1, 1)
    low, high = place * size / bins, (place + 1) * size / bins
    return [n for n in range(length) if n - first + 1 > low + 1e-9 and n - first < high - 1e-9]


def pooled(x, rois, output_size, scale, reduce):
    y = np.zeros((len(rois), x.shape[1], *output_size))
    for r, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (round(corner * scale) for corner in corners)
        for i, j in np.ndindex(*output_size):
            rows, columns = (
                pixels(top, bottom, output_size[0], i, x.shape[2]),
                pixels(left, right, output_size[1], j, x.shape[3]),
            )
            if rows and columns:
                y[r, :, i, j] = [reduce(x[int(image), c][np.ix_(rows, columns)]) for c in range(x.shape[1])]
    return y


@pytest.mark.parametrize("output_size", [(1, 1), (2, 3), (7, 4)])
@pytest.mark.parametrize("scale", [1.0, 0.6])
@pytest.mark.parametrize(("function", "reduce"), [(C.roi_pooling_2d, np.max), (C.roi_average_pooling_2d, np.mean)])
def test_pooling_of_regions(check, function, reduce, scale, output_size):
    rois = nn.Variable.from_numpy_array(ROIS)
    check(
        lambda x: function(x, rois, output_size, scale),
        lambda x: pooled(x, ROIS, output_size, scale, reduce),
        distinct(2, 2, 5, 7),
    )


def sampled(x, v, u):
    """The bilinear mix at row v and column u, pixel (0, 0) covering 0 to 1; up to a pixel outside the edge counts."""
    height, width = x.shape[1:]
    v, u = v - 0.5, u - 0.5
    if not (-1 <= v <= height and -1 <= u <= width):
        return np.zeros(len(x))
    v, u = min(max(v, 0), height - 1), min(max(u, 0), width - 1)
    total = 0
    for row in range(height):
        for column in range(width):
            total = total + max(0, 1 - abs(v - row)) * max(0, 1 - abs(u - column)) * x[:, row, column]
    return total


def aligned(x, rois, output_size, scale, ratio, reduce):
    y = np.zeros((len(rois), x.shape[1], *output_size))
    for r, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (corner * scale for corner in corners)
        for i, j in np.ndindex(*output_size):
            found = [
                sampled(
                    x[int(image)],
                    top + (i + (a + 0.5) / ratio) * (bottom - top) / output_size[0],
                    left + (j + (b + 0.5) / ratio) * (right - left) / output_size[1],
                )
                for a, b in np.ndindex(ratio, ratio)
            ]
            y[r, :, i, j] = reduce(found, axis=0)
    return y


@pytest.mark.parametrize(("function", "reduce"), [(C.roi_max_align_2d, np.max), (C.roi_average_align_2d, np.mean)])
@pytest.mark.parametrize(("output_size", "scale", "ratio"), [((2, 2), 1.0, 1), ((2, 3), 0.7, 3)])
def test_samples_of_regions(check, function, reduce, output_size, scale, ratio):
    rois = np.array([[0, 0.3, 0.8, 5.1, 3.9], [1, 1.7, 0.2, 6.8, 4.4], [1, 2.2, 2.1, 2.9, 3.3]])
    given = nn.Variable.from_numpy_array(rois)
    check(
        lambda x: function(x, given, output_size, scale, ratio),
        lambda x: aligned(x, rois, output_size, scale, ratio, reduce),
        distinct(2, 2, 5, 7),
    )


def test_samples_must_be_a_number():
    with pytest.raises(ArgumentError, match="sampling_ratio must be at least 1, got 0"):
        C.roi_max_align_2d(nn.Variable((1, 1, 4, 4)), nn.Variable((1, 5)), (2, 2), sampling_ratio=0)


WINDOWS = [
    (2, None, None, True, (4, 6)),
    (3, 2, 1, True, (5, 6)),
    ((3, 2), (2, 1), (1, 0), False, (5, 6)),
    (2, 3, 0, False, (6, 7)),
]


def corners(size, kernel, stride, pad, cover_all):
    """First row or column of each window of one axis."""
    slack = stride - 1 if cover_all else 0
    return [n * stride - pad for n in range((size + 2 * pad - kernel + slack) // stride + 1)]


def windows(size, kernel, stride, pad, cover_all):
    """For each window of an image its place, and its pixels by number in the window."""
    kernel, stride, pad = ((n, n) if isinstance(n, int) else n for n in (kernel, stride or kernel, pad or 0))
    rows, columns = (corners(*part, cover_all) for part in zip(size, kernel, stride, pad, strict=True))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            inside = {
                a * kernel[1] + b: (row + a, column + b)
                for a, b in np.ndindex(*kernel)
                if 0 <= row + a < size[0] and 0 <= column + b < size[1]
            }
            yield i, j, inside


@pytest.mark.parametrize(("kernel", "stride", "pad", "cover_all", "size"), WINDOWS)
def test_places_of_maxima(kernel, stride, pad, cover_all, size):
    x = distinct(2, 2, *size)
    indexes = C.max_pooling_2d_indexes(nn.NdArray.from_numpy_array(x), kernel, stride, pad, cover_all).data
    for i, j, inside in windows(size, kernel, stride, pad, cover_all):
        for n, c in np.ndindex(2, 2):
            best = max(inside, key=lambda number, n=n, c=c, inside=inside: x[n, c][inside[number]])
            assert indexes[n, c, i, j] == best


@pytest.mark.parametrize(("kernel", "stride", "pad", "cover_all", "size"), WINDOWS)
def test_upsampling_pixel_by_pixel(check, kernel, stride, pad, cover_all, size):
    image = distinct(2, 2, *size)
    indexes = C.max_pooling_2d_indexes(nn.NdArray.from_numpy_array(image), kernel, stride, pad, cover_all).data

    def expected(x):
        y = np.zeros((2, 2, *size))
        for i, j, inside in windows(size, kernel, stride, pad, cover_all):
            for n, c in np.ndindex(2, 2):
                y[n, c][inside[indexes[n, c, i, j]]] += x[n, c, i, j]
        return y

    check(
        lambda x: C.upsampling_2d(x, nn.Variable.from_numpy_array(indexes), kernel, stride, pad, size, cover_all),
        expected,
        RNG(1).normal(size=indexes.shape),
    )


def test_upsampling_undoes_a_max_pooling():
    x = np.maximum(distinct(1, 2, 4, 6), 0)
    pooled = F.max_pooling(nn.NdArray.from_numpy_array(x), (2, 2))
    y = C.upsampling_2d(pooled, C.max_pooling_2d_indexes(nn.NdArray.from_numpy_array(x), 2), 2, output_size=(4, 6)).data
    kept = y != 0
    np.testing.assert_array_equal(y[kept], x[kept])
    assert F.max_pooling(nn.NdArray.from_numpy_array(y), (2, 2)).data.tolist() == pooled.data.tolist()
