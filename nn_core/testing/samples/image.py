"""Samples of resampling, Fourier transforms, warping and patch correlation."""

import numpy as np

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import normal, uniform, values
from nn_core.testing.samples.registry import Settings, error, sample

# Resampling ---------------------------------------------------------------------------------------------------------

_MODES: dict[str, Settings] = {
    "linear_corners": {"mode": "linear", "align_corners": True},
    "linear_half_pixel": {"mode": "linear", "align_corners": False, "half_pixel": True},
    "linear_asymmetric": {"mode": "linear", "align_corners": False},
    "nearest": {"mode": "nearest", "align_corners": False},
    "nearest_corners": {"mode": "nearest", "align_corners": True},
    "nearest_half_pixel": {"mode": "nearest", "align_corners": False, "half_pixel": True},
    "nearest_middle": {"mode": "nearest", "align_corners": False, "half_pixel_for_nn": True},
}
for _case, _args in _MODES.items():
    sample("Interpolate", _case, normal(2, 2, 3, 4), output_size=(5, 7), **_args)
    sample("InterpolateBackward", _case, normal(2, 2, 5, 7), input_size=(3, 4), **_args)
sample("Interpolate", "line", normal(2, 3, 5), output_size=(8,), mode="linear")
sample("Interpolate", "volume", normal(1, 2, 2, 3, 4), output_size=(3, 4, 2), mode="linear")
sample("Interpolate", "smaller", normal(2, 2, 7, 6), output_size=(3, 2), mode="linear", align_corners=False)
sample("Interpolate", "channel_last", normal(2, 3, 4, 2), output_size=(5, 7), mode="linear", channel_last=True)
sample("Interpolate", "empty", normal(0, 2, 3, 4), output_size=(5, 7), mode="linear")
sample("InterpolateBackward", "channel_last", normal(2, 5, 7, 2), input_size=(3, 4), mode="linear", channel_last=True)
error(
    "Interpolate",
    "coordinates",
    ArgumentError,
    "align_corners and half_pixel must not be True together",
    normal(1, 1, 4),
    output_size=(2,),
    mode="linear",
    half_pixel=True,
)
error(
    "Interpolate",
    "sizes",
    ArgumentError,
    "output_size must have 1, 2 or 3 lengths",
    normal(1, 1, 4),
    output_size=(1, 2, 3, 4),
    mode="linear",
)
error(
    "Interpolate",
    "axes",
    ShapeError,
    "x must have an axis for each of output_size",
    normal(4),
    output_size=(2, 2),
    mode="linear",
)
error("InterpolateBackward", "mode", ArgumentError, "mode must be one of", normal(1, 1, 4), input_size=(2,), mode="cubic")

_X, _DY = normal(1, 2, 3, 4), normal(1, 2, 5, 7)
for _place in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"):
    _roi: Settings = {"roi": (0.0, 0.0, 0.1, 0.2, 1.0, 1.0, 0.9, 0.8)} if _place == "tf_crop_and_resize" else {}
    for _mode in ("nearest", "linear", "cubic"):
        _args = {"mode": _mode, "coordinate_transformation_mode": _place, **_roi}
        sample("ONNXResize", f"{_mode}_{_place}", _X, sizes=(1, 2, 5, 7), **_args)
        sample("ONNXResizeBackward", f"{_mode}_{_place}", _DY, sizes=(1, 2, 5, 7), input_size=(1, 2, 3, 4), **_args)
for _round in ("round_prefer_ceil", "floor", "ceil"):
    sample("ONNXResize", _round, _X, sizes=(1, 2, 5, 7), nearest_mode=_round)
    sample("ONNXResizeBackward", _round, _DY, sizes=(1, 2, 5, 7), input_size=(1, 2, 3, 4), nearest_mode=_round)
sample("ONNXResize", "scales", _X, scales=(1.0, 1.0, 2.0, 0.5), mode="linear")
sample("ONNXResize", "cubic_settings", _X, sizes=(1, 2, 5, 7), mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
sample(
    "ONNXResize",
    "outside",
    _X,
    sizes=(1, 2, 5, 7),
    mode="linear",
    coordinate_transformation_mode="tf_crop_and_resize",
    roi=(0.0, 0.0, -0.2, -0.1, 1.0, 1.0, 1.2, 1.3),
    extrapolation_value=2.0,
)
sample(
    "ONNXResizeBackward",
    "scales",
    normal(1, 2, 6, 2),
    scales=(1.0, 1.0, 2.0, 0.5),
    input_size=(1, 2, 3, 4),
    mode="linear",
)
sample(
    "ONNXResizeBackward",
    "cubic_settings",
    _DY,
    sizes=(1, 2, 5, 7),
    input_size=(1, 2, 3, 4),
    mode="cubic",
    cubic_coeff_a=-0.5,
    exclude_outside=1,
)
error(
    "ONNXResize",
    "both",
    ArgumentError,
    "exactly one of scales and sizes must be given",
    _X,
    scales=(1.0,) * 4,
    sizes=(1, 2, 5, 7),
)
error(
    "ONNXResizeBackward",
    "lengths",
    ArgumentError,
    "input_size must have one length per axis",
    _DY,
    sizes=(1, 2, 5, 7),
    input_size=(3, 4),
)

# Fourier transforms -------------------------------------------------------------------------------------------------

for _name in ("FFT", "IFFT"):
    sample(_name, "line", normal(2, 6, 2), signal_ndim=1)
    sample(_name, "odd", normal(2, 5, 2), signal_ndim=1, normalized=True)
    sample(_name, "plane", normal(2, 3, 4, 2), signal_ndim=2)
    sample(_name, "volume", normal(2, 3, 2, 2), signal_ndim=3, normalized=True)
    sample(_name, "empty", normal(0, 4, 2), signal_ndim=1)
    error(
        _name,
        "complex",
        ShapeError,
        "the last axis of x must hold real and imaginary part",
        normal(4, 3),
        signal_ndim=1,
    )
    error(_name, "axes", ShapeError, r"x must have at least signal_ndim \+ 1", normal(4, 2), signal_ndim=2)

_FRAMES: Settings = {"window_size": 8, "stride": 4, "fft_size": 8}
sample("STFT", "hanning", normal(2, 24), **_FRAMES)
sample("STFT", "hamming", normal(2, 25), window_type="hamming", pad_mode="constant", **_FRAMES)
sample("STFT", "rectangular", normal(2, 24), window_type="rectangular", center=False, **_FRAMES)
sample("STFT", "short_window", normal(1, 24), window_size=6, stride=3, fft_size=8)
sample("STFT", "as_gradient", normal(2, 24), as_istft_backward=True, **_FRAMES)
error("STFT", "axes", ShapeError, "x must have the axes", normal(24), **_FRAMES)
error(
    "STFT",
    "window",
    ArgumentError,
    "window_size must be at most fft_size",
    normal(1, 24),
    window_size=9,
    stride=4,
    fft_size=8,
)

_SPECTRUM = (normal(2, 5, 6), normal(2, 5, 6))
sample("ISTFT", "hanning", *_SPECTRUM, **_FRAMES)
sample("ISTFT", "hamming", *_SPECTRUM, window_type="hamming", pad_mode="constant", **_FRAMES)
sample("ISTFT", "rectangular", *_SPECTRUM, window_type="rectangular", center=False, **_FRAMES)
sample("ISTFT", "as_gradient", *_SPECTRUM, as_stft_backward=True, **_FRAMES)
error("ISTFT", "bins", ShapeError, "y_r must have the shape", normal(2, 4, 6), normal(2, 4, 6), **_FRAMES)
error(
    "ISTFT",
    "overlap",
    ArgumentError,
    "windows must overlap on every sample",
    *_SPECTRUM,
    window_size=8,
    stride=8,
    fft_size=8,
)

# Warping ------------------------------------------------------------------------------------------------------------

for _corners in (False, True):
    _word = "corners" if _corners else "centers"
    sample("AffineGrid", f"plane_{_word}", normal(2, 2, 3), size=(3, 4), align_corners=_corners)
    sample("AffineGrid", f"volume_{_word}", normal(1, 3, 4), size=(2, 3, 2), align_corners=_corners)
    for _padding in ("zero", "repeat", "reflect"):
        _args = {"padding_mode": _padding, "align_corners": _corners}
        sample("WarpByGrid", f"{_padding}_{_word}", normal(2, 2, 4, 5), uniform(2, 3, 2, 2, low=-1.4, high=1.4), **_args)
sample("AffineGrid", "one_pixel", normal(1, 2, 3), size=(1, 1), align_corners=True)
error("AffineGrid", "theta", ShapeError, "theta must have the shape", normal(2, 2, 2), size=(3, 4))
error("AffineGrid", "size", ArgumentError, "size must have 2 or 3 lengths", normal(2, 2, 3), size=(3,))
sample("WarpByGrid", "nearest", normal(1, 2, 4, 5), uniform(1, 3, 2, 2, low=-0.9, high=0.9), mode="nearest")
sample("WarpByGrid", "volume", normal(1, 2, 3, 2, 4), uniform(1, 2, 2, 2, 3, low=-0.9, high=0.9))
_PIXELS = np.array([[[0.4, 0.5], [1.6, 1.4]], [[2.5, 2.6], [3.3, 0.3]], [[1.5, 0.6], [0.6, 1.5]]])  # (column, row)
_BETWEEN_PIXELS = values([(2 * _PIXELS + 1) / (5, 4) - 1])
sample("WarpByGrid", "channel_last", normal(1, 4, 5, 2), _BETWEEN_PIXELS, channel_last=True)
sample("WarpByGrid", "empty", normal(0, 2, 4, 5), uniform(0, 3, 2, 2))
error("WarpByGrid", "grid", ShapeError, "grid must have the shape", normal(2, 2, 4, 5), uniform(1, 3, 2, 2))

sample("WarpByFlow", "small", normal(2, 2, 4, 5), uniform(2, 2, 4, 5, low=-0.9, high=0.9))
sample("WarpByFlow", "outside", normal(1, 2, 3, 4), uniform(1, 2, 3, 4, low=-4, high=4))
sample("WarpByFlow", "still", normal(1, 1, 3, 4), values([[[[0.0] * 4] * 3] * 2]), smooth=False)
error("WarpByFlow", "flow", ShapeError, "flow must have the shape", normal(1, 2, 3, 4), normal(1, 3, 3, 4))

# Patch correlation --------------------------------------------------------------------------------------------------

_IMAGES = (normal(1, 2, 4, 5), normal(1, 2, 4, 5))
_PATCHES: Settings = {
    "patch": (2, 3),
    "shift": (1, 2),
    "patch_step": (1, 2),
    "shift_step": (1, 2),
    "padding": (1, 0, 2, 1),
}
sample("PatchCorrelation", "pixels", *_IMAGES)
sample("PatchCorrelation", "shifts", *_IMAGES, shift=(1, 1))
sample("PatchCorrelation", "settings", *_IMAGES, **_PATCHES)
error("PatchCorrelation", "shapes", ShapeError, "x1 and x2 must have one shape", normal(1, 2, 4, 5), normal(1, 2, 4, 4))
error("PatchCorrelation", "patch", ShapeError, "patch must fit into the padded image", *_IMAGES, patch=(6, 1))
sample("PatchCorrelationBackward", "pixels", normal(1, 1, 1, 4, 5), *_IMAGES)
sample("PatchCorrelationBackward", "shifts", normal(1, 3, 3, 4, 5), *_IMAGES, shift=(1, 1))
sample("PatchCorrelationBackward", "settings", normal(1, 3, 3, 4, 3), *_IMAGES, **_PATCHES)
error(
    "PatchCorrelationBackward",
    "dy",
    ShapeError,
    "dy must have the shape of the correlation",
    normal(1, 1, 1, 3, 5),
    *_IMAGES,
)
