"""Resampling, Fourier transforms, warping and patch correlation against loops, NumPy, SciPy and torch."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.arguments import resolve_args
from nn_core.testing.operators import check_forward, check_gradient, check_table, infer_shapes, run, spec_of


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def shapes(name, *inputs, **args):
    return infer_shapes(spec_of(name), inputs, resolve_args(spec_of(name), args, inputs))


def inner(a, b):
    return float(np.sum(a * b))


def test_every_function_has_its_attachments():
    check_table("image")


# --- Resampling

COORDINATES = ({"align_corners": True}, {"align_corners": False, "half_pixel": True}, {"align_corners": False})


def coordinate(o, n_in, n_out, align_corners, half_pixel=False):
    if n_out == 1:
        return Fraction(0)
    if align_corners:
        return Fraction(o * (n_in - 1), n_out - 1)
    if half_pixel:
        return Fraction((2 * o + 1) * n_in, 2 * n_out) - Fraction(1, 2)
    return Fraction(o * n_in, n_out)


def along_each(x, first_axis, sizes, line):
    """Apply line(values, n_out) along each axis from `first_axis`."""
    for axis, size in enumerate(sizes, first_axis):
        x = np.apply_along_axis(line, axis, x, size)
    return x


@pytest.mark.parametrize("settings", COORDINATES)
@pytest.mark.parametrize("size", [(9,), (3, 7), (1, 5, 2)])
def test_interpolate_linear_reads_between_neighbours(settings, size):
    def line(values, n_out):
        places = [float(coordinate(o, len(values), n_out, **settings)) for o in range(n_out)]
        return np.interp(places, np.arange(len(values)), values)

    x = normal(2, 3, 4, 5, 3)[(slice(None), slice(None), *(0,) * (3 - len(size)))]
    check_forward("Interpolate", [x], lambda x: along_each(x, 2, size, line), output_size=size, mode="linear", **settings)
    check_gradient("Interpolate", [x[:1, :1]], output_size=size, mode="linear", **settings)


@pytest.mark.parametrize("settings", COORDINATES)
@pytest.mark.parametrize("n_out", [1, 3, 5, 10, 7])
def test_interpolate_nearest_rounds_the_exact_coordinate_down(settings, n_out):
    x = normal(2, 5)
    places = [max(coordinate(o, 5, n_out, **settings), 0).__floor__() for o in range(n_out)]
    check_forward("Interpolate", [x], lambda x: x[:, places], output_size=(n_out,), mode="nearest", **settings)
    check_gradient("Interpolate", [x], output_size=(n_out,), mode="nearest", **settings)


def test_interpolate_half_pixel_for_nn_takes_the_cell_of_the_middle():
    x = normal(2, 6)
    places = [((2 * o + 1) * 6) // 8 for o in range(4)]
    args = {"mode": "nearest", "align_corners": True, "half_pixel_for_nn": True}
    check_forward("Interpolate", [x], lambda x: x[:, places], output_size=(4,), **args)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_interpolate_channel_last_moves_the_channel(mode):
    x = normal(2, 4, 5, 3)
    y = run("Interpolate", np.moveaxis(x, -1, 1), output_size=(7, 3), mode=mode)[0]
    check_forward(
        "Interpolate",
        [x],
        lambda x: np.moveaxis(y, 1, -1),
        dtypes=("float64",),
        output_size=(7, 3),
        mode=mode,
        channel_last=True,
    )
    check_gradient("Interpolate", [x[:1]], output_size=(7, 3), mode=mode, channel_last=True)


@pytest.mark.parametrize(
    ("mode", "settings", "torch_settings"),
    [
        ("linear", {"align_corners": True}, {"mode": "bilinear", "align_corners": True}),
        ("linear", {"align_corners": False, "half_pixel": True}, {"mode": "bilinear", "align_corners": False}),
        ("nearest", {"align_corners": False}, {"mode": "nearest"}),
        ("nearest", {"align_corners": False, "half_pixel_for_nn": True}, {"mode": "nearest-exact"}),
    ],
)
def test_interpolate_agrees_with_torch(mode, settings, torch_settings):
    torch = pytest.importorskip("torch")
    x = normal(2, 3, 6, 4)
    y = torch.nn.functional.interpolate(torch.tensor(x), size=(9, 3), **torch_settings).numpy()
    check_forward("Interpolate", [x], lambda _: y, dtypes=("float64",), output_size=(9, 3), mode=mode, **settings)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_interpolate_backward_is_the_transpose_and_has_a_gradient(mode):
    x, dy = normal(2, 3, 4, 5), normal(2, 3, 7, 3)
    y = run("Interpolate", x, output_size=(7, 3), mode=mode)[0]
    dx = run("InterpolateBackward", dy, input_size=(4, 5), mode=mode)[0]
    assert inner(y, dy) == pytest.approx(inner(x, dx))
    check_gradient("InterpolateBackward", [dy[:1, :1]], input_size=(4, 5), mode=mode)


def test_interpolate_takes_an_empty_batch():
    assert run("Interpolate", np.zeros((0, 3, 4)), output_size=(6,), mode="linear")[0].shape == (0, 3, 6)


@pytest.mark.parametrize(
    ("error", "text", "shape", "args"),
    [
        (ArgumentError, "align_corners and half_pixel must not be True together", (1, 1, 4), {"half_pixel": True}),
        (ArgumentError, "output_size must have 1, 2 or 3 lengths, got 4", (1, 1, 4), {"output_size": (1, 2, 3, 4)}),
        (ShapeError, "x must have an axis for each of output_size, got 1 axes", (4,), {"output_size": (2, 2)}),
        (ShapeError, r"spatial lengths must be at least 1, got \(0,\) resized to \(2,\)", (1, 0), {}),
    ],
)
def test_interpolate_refuses(error, text, shape, args):
    with pytest.raises(error, match=text):
        shapes("Interpolate", shape, **{"output_size": (2,), "mode": "linear", **args})


RESIZE_MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")


def resize_place(o, n_in, n_out, scale, transformation, start, end):
    if transformation == "tf_crop_and_resize":
        if n_out == 1:
            return 0.5 * (start + end) * (n_in - 1)
        return start * (n_in - 1) + o * (end - start) * (n_in - 1) / (n_out - 1)
    if n_out == 1 and transformation in ("pytorch_half_pixel", "align_corners"):
        return 0.0
    if transformation == "align_corners":
        return o * (n_in - 1) / (n_out - 1)
    return o / scale if transformation == "asymmetric" else (o + 0.5) / scale - 0.5


def cubic_weight(distance, a):
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a if distance < 2 else 0.0


def resize_line(values, n_out, scale, transformation, mode, start=0.0, end=1.0, extrapolation=0.0, a=-0.75, exclude=False):
    result = []
    for o in range(n_out):
        place = resize_place(o, len(values), n_out, scale, transformation, start, end)
        if transformation == "tf_crop_and_resize" and not 0 <= place <= len(values) - 1:
            result.append(extrapolation)
        elif mode == "nearest":
            result.append(values[int(np.clip(np.ceil(place - 0.5), 0, len(values) - 1))])
        elif mode == "linear":
            result.append(np.interp(place, np.arange(len(values)), values))
        else:
            taps = [int(np.floor(place)) + k for k in range(-1, 3)]
            weights = np.array([cubic_weight(abs(place - tap), a) for tap in taps])
            if exclude:
                weights *= [0 <= tap < len(values) for tap in taps]
                weights /= weights.sum()
            result.append(sum(w * values[np.clip(tap, 0, len(values) - 1)] for w, tap in zip(weights, taps, strict=True)))
    return np.array(result)


@pytest.mark.parametrize("transformation", RESIZE_MODES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(("scale", "exclude"), [(1.7, 0), (0.45, 1), (0.2, 0)])
def test_onnx_resize_by_scales(transformation, mode, scale, exclude):
    x = normal(2, 6)
    crop = {"roi": (0.0, 0.23, 1.0, 1.1), "extrapolation_value": -3.0} if transformation == "tf_crop_and_resize" else {}

    def truth(x):
        n_out = int(np.floor(6 * scale))
        args = (n_out, scale, transformation, mode, 0.23, 1.1, -3.0, -0.6, bool(exclude))
        return np.apply_along_axis(resize_line, 1, x, *args)

    args = {
        "mode": mode,
        "coordinate_transformation_mode": transformation,
        "cubic_coeff_a": -0.6,
        "exclude_outside": exclude,
    }
    check_forward("ONNXResize", [x], truth, scales=(1.0, scale), **args, **crop)
    check_gradient("ONNXResize", [x], scales=(1.0, scale), **args, **crop)


def test_onnx_resize_by_sizes_and_several_axes():
    x = normal(3, 4, 5)
    truth = along_each(x, 0, (5, 2, 7), lambda v, n: resize_line(v, n, n / len(v), "half_pixel", "linear"))
    check_forward("ONNXResize", [x], lambda _: truth, dtypes=("float64",), sizes=(5, 2, 7), mode="linear")


@pytest.mark.parametrize(
    ("nearest_mode", "expected"),
    [
        ("round_prefer_floor", [0, 0, 1, 1]),
        ("round_prefer_ceil", [0, 1, 1, 1]),
        ("floor", [0, 0, 1, 1]),
        ("ceil", [0, 1, 1, 1]),
    ],
)
def test_onnx_resize_rounds_as_asked(nearest_mode, expected):
    args = {
        "sizes": (4,),
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": nearest_mode,
    }
    np.testing.assert_array_equal(run("ONNXResize", np.arange(2.0), **args)[0], expected)


def test_onnx_resize_cubic_agrees_with_torch():
    torch = pytest.importorskip("torch")
    x = normal(1, 2, 6, 5)
    y = torch.nn.functional.interpolate(torch.tensor(x), size=(9, 8), mode="bicubic", align_corners=False).numpy()
    check_forward("ONNXResize", [x], lambda _: y, dtypes=("float64",), sizes=(1, 2, 9, 8), mode="cubic")


def test_onnx_resize_backward_has_a_gradient():
    crop = {"roi": (0.0, 0.1, 1.0, 1.3), "coordinate_transformation_mode": "tf_crop_and_resize", "mode": "cubic"}
    check_gradient("ONNXResizeBackward", [normal(2, 7)], input_size=(2, 5), sizes=(2, 7), **crop)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("exactly one of scales and sizes must be given", {}),
        ("exactly one of scales and sizes must be given", {"scales": (1.0, 1.0), "sizes": (2, 3)}),
        ("sizes must have one entry per axis of the input, got 1 for 2 axes", {"sizes": (3,)}),
        (r"scales must be positive, got \(1.0, -1.0\)", {"scales": (1.0, -1.0)}),
        (
            "roi must have a start and an end per axis",
            {"sizes": (2, 3), "coordinate_transformation_mode": "tf_crop_and_resize"},
        ),
    ],
)
def test_onnx_resize_refuses_arguments(text, args):
    with pytest.raises(ArgumentError, match=text):
        shapes("ONNXResize", (2, 4), **args)


def test_onnx_resize_refuses_empty_results():
    with pytest.raises(ShapeError, match=r"lengths must be at least 1, got \(2, 4\) resized to \(2, 0\)"):
        shapes("ONNXResize", (2, 4), scales=(1.0, 0.1))
    with pytest.raises(ArgumentError, match="input_size must have one length per axis of dy, got 1 for 2 axes"):
        shapes("ONNXResizeBackward", (2, 4), input_size=(3,), sizes=(2, 4))


# --- Fourier transforms


def dft(z, ndim, sign):
    for axis in range(-ndim, 0):
        n = z.shape[axis]
        matrix = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
        z = np.moveaxis(np.tensordot(z, matrix, axes=((axis,), (0,))), -1, axis)
    return z


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_fft_and_ifft_are_sums_of_waves(ndim, normalized):
    x = normal(2, 3, 4, 5, 2)
    n = np.prod(x.shape[-1 - ndim : -1])

    def truth(x, sign):
        z = dft(x[..., 0] + 1j * x[..., 1], ndim, sign) / (np.sqrt(n) if normalized else n if sign > 0 else 1)
        return np.stack((z.real, z.imag), axis=-1)

    args = {"signal_ndim": ndim, "normalized": normalized}
    check_forward("FFT", [x], lambda x: truth(x, -1), atol=1e-10, **args)
    check_forward("IFFT", [x], lambda x: truth(x, 1), atol=1e-10, **args)
    check_gradient("FFT", [x[:1, :2, :2, :3]], **args)
    check_gradient("IFFT", [x[:1, :2, :2, :3]], **args)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("x must have at least signal_ndim \\+ 1 = 3 axes, got 2", (4, 2)),
        ("the last axis of x must hold real and imaginary part, got length 3", (4, 4, 3)),
        (r"signals must have lengths of at least 1, got \(4, 0\)", (4, 0, 2)),
    ],
)
def test_fft_refuses(text, shape):
    with pytest.raises(ShapeError, match=text):
        shapes("FFT", shape, signal_ndim=2)


def periodic_window(kind, size, fft_size):
    n = np.arange(size)
    cosine = np.cos(2 * np.pi * n / size)
    window = {"hanning": 0.5 - 0.5 * cosine, "hamming": 0.54 - 0.46 * cosine, "rectangular": np.ones(size)}[kind]
    left = (fft_size - size) // 2
    return np.pad(window, (left, fft_size - size - left))


def stft_truth(x, window_size, stride, fft_size, window_type, center, pad_mode):
    window = periodic_window(window_type, window_size, fft_size)
    x = np.pad(x, ((0, 0), (fft_size // 2,) * 2), mode=pad_mode) if center else x
    bins = np.exp(-2j * np.pi * np.outer(np.arange(fft_size // 2 + 1), np.arange(fft_size)) / fft_size)
    starts = range(0, x.shape[1] - fft_size + 1, stride)
    return np.stack([(x[:, start : start + fft_size] * window) @ bins.T for start in starts], axis=2)


SETTINGS = [
    {"window_size": 8, "stride": 4, "fft_size": 8, "window_type": "hanning", "center": True, "pad_mode": "reflect"},
    {"window_size": 6, "stride": 2, "fft_size": 8, "window_type": "hamming", "center": True, "pad_mode": "constant"},
    {"window_size": 5, "stride": 3, "fft_size": 9, "window_type": "rectangular", "center": True, "pad_mode": "reflect"},
    {"window_size": 7, "stride": 7, "fft_size": 7, "window_type": "hamming", "center": False, "pad_mode": "reflect"},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n_samples", [16, 19])
def test_stft_is_the_transform_of_windowed_frames(settings, n_samples):
    x = normal(2, n_samples)

    def truth(x):
        z = stft_truth(x, **settings)
        return z.real, z.imag

    check_forward("STFT", [x], truth, atol=1e-11, **settings)
    check_gradient("STFT", [x], **settings)


@pytest.mark.parametrize("settings", SETTINGS)
def test_istft_rebuilds_the_signal(settings):
    x = normal(2, 29)
    y_r, y_i = run("STFT", x, **settings)
    rebuilt = run("ISTFT", y_r, y_i, **settings)[0]
    covered = rebuilt.shape[1] - (settings["fft_size"] // 2 if settings["center"] else 0)
    np.testing.assert_allclose(rebuilt[:, :covered], x[:, :covered], atol=1e-12)
    check_gradient("ISTFT", [y_r[:1, :, :3], y_i[:1, :, :3]], **settings)


def test_istft_is_the_least_squares_answer_for_spectra_of_no_signal():
    settings = {"window_size": 6, "stride": 2, "fft_size": 6, "window_type": "hamming", "center": False}
    y_r, y_i = normal(1, 4, 3), normal(1, 4, 3) * np.array([0, 1, 1, 0])[:, None]
    n_samples = 2 * 2 + 6
    columns = [stft_truth(unit[None], pad_mode="constant", **settings).ravel() for unit in np.eye(n_samples)]
    weight = np.sqrt(np.repeat([1.0, 2.0, 2.0, 1.0], 3))  # the bins between 0 and 1/2 occur twice in the full spectrum
    matrix = np.stack(columns, axis=1) * weight[:, None]
    target = (y_r + 1j * y_i).ravel() * weight
    stacked, goal = np.concatenate((matrix.real, matrix.imag)), np.concatenate((target.real, target.imag))
    expected = np.linalg.lstsq(stacked, goal, rcond=None)[0]
    check_forward("ISTFT", [y_r, y_i], lambda *_: expected[None], dtypes=("float64",), **settings)


@pytest.mark.parametrize("settings", SETTINGS)
def test_stft_and_istft_compute_each_others_gradient(settings):
    x, (y_r, y_i) = normal(2, 29), run("STFT", normal(2, 29), **settings)
    y_r = y_r + 1
    n_samples = run("ISTFT", y_r, y_i, **settings)[0].shape[1]
    x = x[:, :n_samples]
    dy_r, dy_i = run("STFT", x, as_istft_backward=True, **settings)
    assert inner(run("ISTFT", y_r, y_i, **settings)[0], x) == pytest.approx(inner(y_r, dy_r) + inner(y_i, dy_i), rel=1e-12)
    dx = run("ISTFT", y_r, y_i, as_stft_backward=True, **settings)[0]
    z_r, z_i = run("STFT", x, **settings)
    assert inner(z_r, y_r) + inner(z_i, y_i) == pytest.approx(inner(x, dx), rel=1e-12)
    check_gradient("STFT", [x[:1]], as_istft_backward=True, **settings)
    check_gradient("ISTFT", [y_r[:1], y_i[:1]], as_stft_backward=True, **settings)


def test_stft_agrees_with_torch():
    torch = pytest.importorskip("torch")
    x = normal(2, 40)
    window = torch.hann_window(10, dtype=torch.float64)
    y = torch.stft(torch.tensor(x), 16, 5, 10, window, center=True, pad_mode="reflect", return_complex=True).numpy()
    settings = {"window_size": 10, "stride": 5, "fft_size": 16}
    check_forward("STFT", [x], lambda _: (y.real, y.imag), dtypes=("float64",), **settings)
    back = torch.istft(torch.tensor(y), 16, 5, 10, window, center=True).numpy()
    check_forward("ISTFT", [y.real, y.imag], lambda *_: back, dtypes=("float64",), **settings)


@pytest.mark.parametrize(
    ("error", "text", "shape", "args"),
    [
        (ArgumentError, "window_size must be at most fft_size, got 8 and 6", (1, 30), {"fft_size": 6}),
        (ShapeError, r"x must have the axes \(batch, samples\), got 3 axes", (1, 1, 30), {}),
        (ShapeError, "x must have more than fft_size // 2 = 4 samples to be reflected, got 4", (1, 4), {}),
        (ShapeError, "x must have at least 8 samples for one frame, got 7", (1, 7), {"center": False}),
    ],
)
def test_stft_refuses(error, text, shape, args):
    with pytest.raises(error, match=text):
        shapes("STFT", shape, **{"window_size": 8, "stride": 2, "fft_size": 8, **args})


@pytest.mark.parametrize(
    ("error", "text", "y_r", "args"),
    [
        (ShapeError, r"y_r and y_i must have the same shape, got \(1, 6, 3\) and \(1, 5, 3\)", (1, 6, 3), {}),
        (ArgumentError, "windows must overlap on every sample, got window_size 8 ", (1, 5, 3), {"stride": 8}),
        (ArgumentError, "windows must overlap on every sample, got window_size 8 ", (1, 5, 3), {"center": False}),
        (ShapeError, r"y_r must have the shape \(batch, 6, frames\)", (1, 5, 3), {"fft_size": 10}),
        (
            ShapeError,
            "the frames must cover more than fft_size // 2 = 4 samples, got 2",
            (1, 5, 2),
            {"as_stft_backward": True},
        ),
    ],
)
def test_istft_refuses(error, text, y_r, args):
    with pytest.raises(error, match=text):
        shapes("ISTFT", y_r, (1, 5, y_r[2]), **{"window_size": 8, "stride": 2, "fft_size": 8, **args})


# --- Warping


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("size", [(3, 4), (2, 3, 4), (1, 5)])
def test_affine_grid_transforms_every_place(size, align_corners):
    theta = normal(2, len(size), len(size) + 1)

    def truth(theta):
        grid = np.empty((2, *size, len(size)))
        for place in product(*map(range, size)):
            at = [
                (2 * i / (n - 1) - 1 if n > 1 else 0.0) if align_corners else (2 * i + 1) / n - 1
                for i, n in zip(place, size, strict=True)
            ]
            grid[(slice(None), *place)] = theta @ np.array([*at[::-1], 1.0])
        return grid

    check_forward("AffineGrid", [theta], truth, size=size, align_corners=align_corners)
    check_gradient("AffineGrid", [theta], size=size, align_corners=align_corners)


def test_affine_grid_refuses():
    with pytest.raises(ArgumentError, match="size must have 2 or 3 lengths, got 1"):
        shapes("AffineGrid", (2, 2, 3), size=(4,))
    with pytest.raises(ShapeError, match=r"theta must have the shape \(batch, 3, 4\) for 3 lengths, got \(2, 2, 3\)"):
        shapes("AffineGrid", (2, 2, 3), size=(4, 4, 4))


#: How SciPy calls our padding, by (padding_mode, align_corners).
SCIPY_MODES = {
    ("zero", True): "grid-constant",
    ("zero", False): "grid-constant",
    ("repeat", True): "nearest",
    ("repeat", False): "nearest",
    ("reflect", True): "mirror",
    ("reflect", False): "reflect",
}


def warp_truth(x, grid, padding_mode, align_corners):
    """x: (B, C, *spatial), by spline interpolation of order 1."""
    spatial = np.array(x.shape[2:])
    normalized = np.moveaxis(grid[..., ::-1], -1, 1)
    lengths = spatial.reshape(-1, *(1,) * (grid.ndim - 2))
    places = (normalized + 1) * (lengths - 1) / 2 if align_corners else ((normalized + 1) * lengths - 1) / 2
    mode = SCIPY_MODES[padding_mode, align_corners]
    return np.stack(
        [[map_coordinates(image, at, order=1, mode=mode) for image in images] for images, at in zip(x, places, strict=True)]
    )


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding_mode", ["zero", "repeat", "reflect"])
@pytest.mark.parametrize("spatial", [(4, 5), (2, 3, 4)])
def test_warp_by_grid_linear(spatial, padding_mode, align_corners):
    x, grid = normal(2, 3, *spatial), 1.3 * normal(2, *spatial[::-1], len(spatial))
    args = {"padding_mode": padding_mode, "align_corners": align_corners}
    check_forward("WarpByGrid", [x, grid], lambda x, g: warp_truth(x, g, **args), dtypes=("float64",), **args)
    check_forward("WarpByGrid", [x, grid], lambda x, g: warp_truth(x, g, **args), dtypes=("float32",), atol=1e-10, **args)
    check_gradient("WarpByGrid", [x[:, :2], grid[:, :2]], **args)


@pytest.mark.parametrize("padding_mode", ["zero", "repeat", "reflect"])
def test_warp_by_grid_nearest_takes_the_closest(padding_mode):
    x, grid = normal(2, 3, 4, 5), 1.3 * normal(2, 6, 3, 2)
    places = ((grid + 1) * [5, 4] - 1) / 2
    whole = (2 * np.round(places) + 1) / [5, 4] - 1
    truth = warp_truth(x, whole, padding_mode, False)
    args = {"mode": "nearest", "padding_mode": padding_mode}
    check_forward("WarpByGrid", [x, grid], lambda *_: truth, dtypes=("float64",), atol=1e-12, **args)
    check_gradient("WarpByGrid", [x, grid], wrt=[0], **args)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_warp_by_grid_channel_last_moves_the_channel(mode):
    x, grid = normal(2, 4, 5, 3), normal(2, 6, 3, 2)
    y = run("WarpByGrid", np.moveaxis(x, -1, 1), grid, mode=mode)[0]
    check_forward("WarpByGrid", [x, grid], lambda *_: np.moveaxis(y, 1, -1), dtypes=("float64",), mode=mode, channel_last=True)
    check_gradient("WarpByGrid", [x, grid], wrt=[0] if mode == "nearest" else None, mode=mode, channel_last=True)


def test_warp_by_grid_with_the_identity_returns_the_image():
    x = normal(2, 3, 4, 5)
    theta = np.tile(np.eye(2, 3), (2, 1, 1))
    for align_corners in (True, False):
        grid = run("AffineGrid", theta, size=(4, 5), align_corners=align_corners)[0]
        np.testing.assert_allclose(run("WarpByGrid", x, grid, align_corners=align_corners)[0], x, atol=1e-14)


@pytest.mark.parametrize("padding_mode", ["zero", "repeat", "reflect"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_warp_by_grid_takes_points_far_away(padding_mode, align_corners):
    grid = np.array([[[[1e30, 0.1], [-1e30, 0.1], [np.nan, 0.1]]]])
    y = run("WarpByGrid", np.ones((1, 1, 3, 4)), grid, padding_mode=padding_mode, align_corners=align_corners)[0]
    np.testing.assert_array_equal(np.isfinite(y[0, 0, 0]), [True, True, False])


def test_warp_by_grid_refuses():
    with pytest.raises(ShapeError, match="x must have a batch, a channel and 2 or 3 spatial axes, got 3 axes"):
        shapes("WarpByGrid", (2, 3, 4), (2, 4, 1))
    with pytest.raises(
        ShapeError, match=r"grid must have the shape \(2, \*output size, 2\) with 2 lengths, got \(1, 4, 4, 2\)"
    ):
        shapes("WarpByGrid", (2, 3, 4, 5), (1, 4, 4, 2))
    with pytest.raises(ShapeError, match=r"spatial lengths of x must be at least 1, got \(0, 5\)"):
        shapes("WarpByGrid", (2, 3, 0, 5), (2, 4, 4, 2))


def test_warp_by_flow_reads_displaced_pixels():
    data, flow = normal(2, 3, 4, 5), 2 * normal(2, 2, 4, 5)

    def truth(data, flow):
        rows, columns = np.mgrid[:4, :5]
        places = np.stack((rows + flow[:, 1], columns + flow[:, 0]), axis=1)
        return np.stack(
            [
                [map_coordinates(image, at, order=1, mode="nearest") for image in images]
                for images, at in zip(data, places, strict=True)
            ]
        )

    check_forward("WarpByFlow", [data, flow], truth, dtypes=("float64", "float32"))
    check_gradient("WarpByFlow", [data[:, :2], flow])


def test_warp_by_flow_refuses():
    with pytest.raises(ShapeError, match=r"data must have the shape \(batch, channels, height, width\)"):
        shapes("WarpByFlow", (3, 4, 5), (2, 4, 5))
    with pytest.raises(ShapeError, match=r"flow must have the shape \(1, 2, 4, 5\), got \(1, 3, 4, 5\)"):
        shapes("WarpByFlow", (1, 3, 4, 5), (1, 3, 4, 5))


# --- Patch correlation


def correlation_truth(x1, x2, patch=(1, 1), shift=(0, 0), patch_step=(1, 1), shift_step=(1, 1), padding=(0, 0, 0, 0)):
    top, bottom, left, right = padding
    x1 = np.pad(x1, ((0, 0), (0, 0), (top, bottom), (left, right)))
    reach = max(shift)
    x2 = np.pad(x2, ((0, 0), (0, 0), (top + reach, bottom + reach), (left + reach, right + reach)))
    rows, columns = (range(0, n - p + 1, s) for n, p, s in zip(x1.shape[2:], patch, patch_step, strict=True))
    vertical, horizontal = (range(-n, n + 1, s) for n, s in zip(shift, shift_step, strict=True))
    y = np.empty((x1.shape[0], len(vertical), len(horizontal), len(rows), len(columns)))
    for (a, dv), (b, dh), (i, r), (j, c) in product(*map(enumerate, (vertical, horizontal, rows, columns))):
        first = x1[:, :, r : r + patch[0], c : c + patch[1]]
        second = x2[:, :, r + dv + reach : r + dv + reach + patch[0], c + dh + reach : c + dh + reach + patch[1]]
        y[:, a, b, i, j] = np.sum(first * second, axis=(1, 2, 3))
    return y


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"patch": (2, 3)},
        {"patch": (2, 1), "patch_step": (2, 2), "padding": (1, 0, 2, 1)},
        {"shift": (2, 1), "shift_step": (1, 2)},
        {"patch": (3, 2), "shift": (3, 4), "shift_step": (2, 3), "patch_step": (1, 2), "padding": (0, 1, 0, 1)},
    ],
)
def test_patch_correlation_sums_products_of_patches(args):
    x1, x2 = normal(2, 3, 4, 5), normal(2, 3, 4, 5)[:, ::-1]
    check_forward("PatchCorrelation", [x1, x2], lambda a, b: correlation_truth(a, b, **args), atol=1e-11, **args)
    check_gradient("PatchCorrelation", [x1[:1, :2], x2[:1, :2]], **args)
    dy = normal(*run("PatchCorrelation", x1[:1, :2], x2[:1, :2], **args)[0].shape)
    check_gradient("PatchCorrelationBackward", [dy, x1[:1, :2], x2[:1, :2]], **args)


@pytest.mark.parametrize(
    ("error", "text", "args"),
    [
        (ShapeError, r"patch must fit into the padded image, got \(5, 1\) in \(4, 5\)", {"patch": (5, 1)}),
        (ArgumentError, r"padding must have 4 lengths, got \(1, 1\)", {"padding": (1, 1)}),
    ],
)
def test_patch_correlation_refuses(error, text, args):
    with pytest.raises(error, match=text):
        shapes("PatchCorrelation", (1, 2, 4, 5), (1, 2, 4, 5), **args)


def test_patch_correlation_refuses_different_shapes():
    with pytest.raises(ShapeError, match="x1 and x2 must have one shape"):
        shapes("PatchCorrelation", (1, 2, 4, 5), (1, 2, 4, 4))
    with pytest.raises(
        ShapeError, match=r"dy must have the shape of the correlation, \(1, 1, 1, 4, 5\), got \(1, 1, 1, 4, 4\)"
    ):
        shapes("PatchCorrelationBackward", (1, 1, 1, 4, 4), (1, 2, 4, 5), (1, 2, 4, 5))
