"""Shape and gradient rules of resampling, Fourier transforms, warping and patch correlation.

Resampling and the Fourier transforms are linear: their gradient is the transposed map. Warping reads its input at
places that are computed from another input; ``sampling`` has its gradients.
"""

import math
from collections.abc import Sequence
from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.operators.rules.sampling import coordinate, held_place, linear_sampling_gradient, padded_place, scatter
from nn_core.typing import Shape

# --- Resampling


@shape_rule("Interpolate")
def interpolate(
    x: Shape, *, output_size: Shape, align_corners: bool, half_pixel: bool, channel_last: bool, **_: Any
) -> tuple[Shape]:
    """Return the last axes (in front of the channel, if that is last) get new lengths."""
    if align_corners and half_pixel:
        raise ArgumentError("align_corners and half_pixel must not be True together, got True and True")
    return (_resized(x, "output_size", output_size, channel_last),)


@shape_rule("InterpolateBackward")
def interpolate_backward(dy: Shape, *, input_size: Shape, channel_last: bool, **_: Any) -> tuple[Shape]:
    """Return the spatial axes get the lengths of the input back."""
    return (_resized(dy, "input_size", input_size, channel_last),)


def _resized(x: Shape, name: str, size: Shape, channel_last: bool) -> Shape:
    if not 1 <= len(size) <= 3:
        raise ArgumentError(f"{name} must have 1, 2 or 3 lengths, got {len(size)}")
    first = len(x) - len(size) - channel_last
    if first < 0:
        raise ShapeError(f"x must have an axis for each of {name}{' and the channel' * channel_last}, got {len(x)} axes")
    spatial = x[first : first + len(size)]
    if min(*spatial, *size, 1) < 1:
        raise ShapeError(f"spatial lengths must be at least 1, got {spatial} resized to {size}")
    return (*x[:first], *size, *x[first + len(size) :])


def _spatial(shape: Shape, n_axes: int, channel_last: bool) -> Shape:
    first = len(shape) - n_axes - channel_last
    return tuple(shape[first : first + n_axes])


@gradient("Interpolate")
def interpolate_gradient(F: Any, g: GradientCall) -> Any:
    """Return the transposed resampling."""
    size = _spatial(g.x.shape, len(g.output_size), g.channel_last)
    return F.interpolate_backward(g.grad, input_size=size, **_interpolation(g))


@gradient("InterpolateBackward")
def interpolate_backward_gradient(F: Any, g: GradientCall) -> Any:
    """Resampling itself."""
    size = _spatial(g.dy.shape, len(g.input_size), g.channel_last)
    return F.interpolate(g.grad, output_size=size, **_interpolation(g))


def _interpolation(g: GradientCall) -> dict[str, Any]:
    return _settings(g, "mode", "align_corners", "half_pixel", "half_pixel_for_nn", "channel_last")


def _settings(g: GradientCall, *names: str) -> dict[str, Any]:
    return {name: getattr(g, name) for name in names}


@shape_rule("ONNXResize")
def onnx_resize(x: Shape, *, scales: Sequence[float], sizes: Shape, **settings: Any) -> tuple[Shape]:
    """`sizes`, or the lengths of x times `scales`, rounded down."""
    _check_resize(len(x), scales=scales, sizes=sizes, **settings)
    y = tuple(sizes) or tuple(math.floor(length * scale) for length, scale in zip(x, scales, strict=True))
    if min(*x, *y, 1) < 1:
        raise ShapeError(f"lengths must be at least 1, got {x} resized to {y}")
    return (y,)


@shape_rule("ONNXResizeBackward")
def onnx_resize_backward(dy: Shape, *, input_size: Shape, **settings: Any) -> tuple[Shape]:
    """Return the shape of the input of the resizing."""
    _check_resize(len(dy), **settings)
    if len(input_size) != len(dy):
        raise ArgumentError(f"input_size must have one length per axis of dy, got {len(input_size)} for {len(dy)} axes")
    (resized,) = onnx_resize(tuple(input_size), **settings)
    if dy != resized:
        raise ShapeError(f"dy must have the shape {resized} that {input_size} is resized to, got {dy}")
    return (tuple(input_size),)


def _check_resize(
    ndim: int,
    *,
    roi: Sequence[float],
    scales: Sequence[float],
    sizes: Shape,
    coordinate_transformation_mode: str,
    **_: Any,
) -> None:
    if bool(scales) == bool(sizes):
        raise ArgumentError(f"exactly one of scales and sizes must be given, got scales {scales} and sizes {sizes}")
    name, given = ("sizes", sizes) if sizes else ("scales", scales)
    if len(given) != ndim:
        raise ArgumentError(f"{name} must have one entry per axis of the input, got {len(given)} for {ndim} axes")
    if min(given) <= 0:
        raise ArgumentError(f"{name} must be positive, got {given}")
    if coordinate_transformation_mode == "tf_crop_and_resize" and len(roi) != 2 * ndim:
        raise ArgumentError(f"roi must have a start and an end per axis of the input, got {len(roi)} for {ndim} axes")


@gradient("ONNXResize")
def onnx_resize_gradient(F: Any, g: GradientCall) -> Any:
    """Return the transposed resampling."""
    return F.onnx_resize_backward(g.grad, input_size=tuple(g.x.shape), **_resizing(g))


@gradient("ONNXResizeBackward")
def onnx_resize_backward_gradient(F: Any, g: GradientCall) -> Any:
    """Resampling itself, with zero for what is extrapolated."""
    return F.onnx_resize(g.grad, extrapolation_value=0.0, **_resizing(g))


def _resizing(g: GradientCall) -> dict[str, Any]:
    names = ("roi", "scales", "sizes", "mode", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside")
    return _settings(g, *names, "nearest_mode")


# --- Fourier transforms


@shape_rule("FFT", "IFFT")
def fft(x: Shape, *, signal_ndim: int, **_: Any) -> tuple[Shape]:
    """Return the shape of x, whose last axis holds real and imaginary part."""
    if len(x) < signal_ndim + 1:
        raise ShapeError(f"x must have at least signal_ndim + 1 = {signal_ndim + 1} axes, got {len(x)}")
    if x[-1] != 2:
        raise ShapeError(f"the last axis of x must hold real and imaginary part, got length {x[-1]}")
    if min(x[-1 - signal_ndim : -1]) < 1:
        raise ShapeError(f"signals must have lengths of at least 1, got {x[-1 - signal_ndim : -1]}")
    return (x,)


@gradient("FFT")
def fft_gradient(F: Any, g: GradientCall) -> Any:
    """Return the conjugate transpose: the inverse, up to the factor N where it is not unitary."""
    dx = F.ifft(g.grad, signal_ndim=g.signal_ndim, normalized=g.normalized)
    return dx if g.normalized else dx * float(math.prod(g.x.shape[-1 - g.signal_ndim : -1]))


@gradient("IFFT")
def ifft_gradient(F: Any, g: GradientCall) -> Any:
    """Return the conjugate transpose: the forward transform, up to the factor 1 / N where it is not unitary."""
    dx = F.fft(g.grad, signal_ndim=g.signal_ndim, normalized=g.normalized)
    return dx if g.normalized else dx * (1.0 / math.prod(g.x.shape[-1 - g.signal_ndim : -1]))


@shape_rule("STFT")
def stft(x: Shape, *, fft_size: int, center: bool, pad_mode: str, as_istft_backward: bool, **frame: Any) -> tuple[Shape, ...]:
    """One column of fft_size // 2 + 1 bins for every whole frame."""
    if len(x) != 2:
        raise ShapeError(f"x must have the axes (batch, samples), got {len(x)} axes")
    margin = fft_size // 2 if center else 0
    if margin and pad_mode == "reflect" and not as_istft_backward and x[1] <= margin:
        raise ShapeError(f"x must have more than fft_size // 2 = {margin} samples to be reflected, got {x[1]}")
    if x[1] + 2 * margin < fft_size:
        raise ShapeError(f"x must have at least {fft_size - 2 * margin} samples for one frame, got {x[1]}")
    n_frames = (x[1] + 2 * margin - fft_size) // frame["stride"] + 1
    _check_frames(n_frames, margin, as_istft_backward, fft_size=fft_size, **frame)
    return ((x[0], fft_size // 2 + 1, n_frames),) * 2


@shape_rule("ISTFT")
def istft(
    y_r: Shape, y_i: Shape, *, fft_size: int, center: bool, pad_mode: str, as_stft_backward: bool, **frame: Any
) -> tuple[Shape]:
    """Return the samples that the frames cover, without the margins of centred frames."""
    if y_r != y_i:
        raise ShapeError(f"y_r and y_i must have the same shape, got {y_r} and {y_i}")
    n_bins = fft_size // 2 + 1
    if len(y_r) != 3 or y_r[1] != n_bins or y_r[2] < 1:
        raise ShapeError(f"y_r must have the shape (batch, {n_bins}, frames) with a frame at least, got {y_r}")
    margin = fft_size // 2 if center else 0
    n_samples = (y_r[2] - 1) * frame["stride"] + fft_size - 2 * margin
    if as_stft_backward and margin and pad_mode == "reflect" and n_samples <= margin:
        raise ShapeError(f"the frames must cover more than fft_size // 2 = {margin} samples, got {n_samples}")
    _check_frames(y_r[2], margin, not as_stft_backward, fft_size=fft_size, **frame)
    return ((y_r[0], n_samples),)


def _check_frames(
    n_frames: int, margin: int, must_overlap: bool, *, window_size: int, stride: int, fft_size: int, window_type: str
) -> None:
    """Refuse windows that are too long, or whose squares leave a sample without weight where one divides by them.

    Frames in the middle repeat each other, so that a few of them stand for all.
    """
    if window_size > fft_size:
        raise ArgumentError(f"window_size must be at most fft_size, got {window_size} and {fft_size}")
    if not must_overlap:
        return
    n_frames = min(n_frames, 2 * (-(-fft_size // stride)) + 1)
    n_samples = (n_frames - 1) * stride + fft_size
    first = (fft_size - window_size) // 2
    lowest = 1 if window_type == "hanning" else 0  # the periodic Hann window starts with a zero
    covered = [False] * n_samples
    for frame in range(n_frames):
        start = frame * stride + first
        covered[start + lowest : start + window_size] = [True] * (window_size - lowest)
    if not all(covered[margin : n_samples - margin]):
        raise ArgumentError(
            f"windows must overlap on every sample, got window_size {window_size} ({window_type}), "
            f"stride {stride} and fft_size {fft_size}"
        )


@gradient("STFT")
def stft_gradient(F: Any, g: GradientCall) -> Any:
    """Overlap-add of the frames' gradients; samples after the last frame get zero, padding is folded back."""
    settings = _settings(g, "window_size", "stride", "fft_size", "window_type")
    dy_r, dy_i = g.grads
    if g.as_istft_backward:
        dx = F.istft(dy_r, dy_i, **settings, center=g.center, pad_mode="constant", as_stft_backward=False)
        return _padded(F, dx, 0, g.x.shape[1] - dx.shape[1])
    n_samples = g.x.shape[1]
    margin = g.fft_size // 2 if g.center else 0
    dx = F.istft(dy_r, dy_i, **settings, center=False, pad_mode="constant", as_stft_backward=True)
    dx = _padded(F, dx, 0, n_samples + 2 * margin - dx.shape[1])
    if not margin:
        return dx
    inner = _samples(F, dx, margin, margin + n_samples)
    if g.pad_mode == "constant":
        return inner
    left = F.flip(_samples(F, dx, 0, margin), axes=(1,))
    right = F.flip(_samples(F, dx, margin + n_samples, n_samples + 2 * margin), axes=(1,))
    rest = n_samples - margin - 1
    return inner + _padded(F, left, 1, rest) + _padded(F, right, rest, 1)


@gradient("ISTFT")
def istft_gradient(F: Any, g: GradientCall) -> Any:
    """Return the transposed transform, which is an STFT."""
    settings = _settings(g, "window_size", "stride", "fft_size", "window_type", "center", "pad_mode")
    return F.stft(g.grad, **settings, as_istft_backward=not g.as_stft_backward)


def _samples(F: Any, x: Any, start: int, stop: int) -> Any:
    return F.slice(x, start=(0, start), stop=(x.shape[0], stop), step=(1, 1))


def _padded(F: Any, x: Any, before: int, after: int) -> Any:
    return F.pad(x, pad_width=(0, 0, before, after), mode="constant", constant_value=0.0) if before or after else x


# --- Warping


@shape_rule("AffineGrid")
def affine_grid(theta: Shape, *, size: Shape, align_corners: bool) -> tuple[Shape]:
    """One point of 2 or 3 coordinates per place of `size`."""
    ndim = len(size)
    if ndim not in (2, 3):
        raise ArgumentError(f"size must have 2 or 3 lengths, got {ndim}")
    if len(theta) != 3 or theta[1:] != (ndim, ndim + 1):
        raise ShapeError(f"theta must have the shape (batch, {ndim}, {ndim + 1}) for {ndim} lengths, got {theta}")
    return ((theta[0], *size, ndim),)


@gradient("AffineGrid")
def affine_grid_gradient(F: Any, g: GradientCall) -> Any:
    """Return the gradients of the points times the untransformed points, which the identity transform yields."""
    ndim, n_points = len(g.size), math.prod(g.size)
    eye = F.eye_like(F.constant(val=0.0, shape=(ndim, ndim + 1)), k=0)
    points = F.affine_grid(F.reshape(eye, shape=(1, ndim, ndim + 1)), size=g.size, align_corners=g.align_corners)
    points = F.reshape(points, shape=(1, n_points, ndim))
    points = F.concatenate(points, F.constant(val=1.0, shape=(1, n_points, 1)), axis=2)
    dgrid = F.reshape(g.grad, shape=(g.theta.shape[0], n_points, ndim))
    return F.batch_matmul(dgrid, points, transpose_a=True)


@shape_rule("WarpByGrid")
def warp_by_grid(x: Shape, grid: Shape, *, channel_last: bool, **_: Any) -> tuple[Shape]:
    """Return the batch and channels of x, the spatial lengths of the grid."""
    ndim = len(x) - 2
    if ndim not in (2, 3):
        raise ShapeError(f"x must have a batch, a channel and 2 or 3 spatial axes, got {len(x)} axes")
    if len(grid) != len(x) or grid[0] != x[0] or grid[-1] != ndim:
        raise ShapeError(f"grid must have the shape ({x[0]}, *output size, {ndim}) with {ndim} lengths, got {grid}")
    spatial = x[1:-1] if channel_last else x[2:]
    if min(spatial) < 1:
        raise ShapeError(f"spatial lengths of x must be at least 1, got {spatial}")
    return ((*grid[:-1], x[-1]) if channel_last else (x[0], x[1], *grid[1:-1]),)


@gradient("WarpByGrid")
def warp_by_grid_gradient(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """Scatter to the corners around each place; the place gets the difference of its corners."""
    ndim = len(g.grid.shape) - 2
    x, dy = (g.x, g.grad) if g.channel_last else (_channels_last(F, g.x), _channels_last(F, g.grad))
    n_points = math.prod(g.grid.shape[1:-1])
    grid = F.reshape(g.grid, shape=(x.shape[0], n_points, ndim))
    dy = F.reshape(dy, shape=(x.shape[0], n_points, x.shape[-1]))
    places, slopes = [], []
    for axis, length in enumerate(x.shape[1:-1]):
        place, slope = padded_place(F, coordinate(F, grid, ndim - 1 - axis), length, g.padding_mode, g.align_corners)
        places.append(place)
        slopes.append(slope)
    if g.mode == "nearest":
        dx = scatter(F, x.shape, [F.unlink(F.round(place)) for place in places], dy)
        return dx if g.channel_last else _channels_first(F, dx), None
    dx, dplaces = linear_sampling_gradient(F, g.wants("x"), g.wants("grid"), x, places, dy)
    if dx is not None and not g.channel_last:
        dx = _channels_first(F, dx)
    dgrid = None
    if dplaces is not None:
        terms = [dplace * slope for dplace, slope in zip(dplaces, slopes, strict=True)]
        dgrid = F.reshape(F.stack(*terms[::-1], axis=2), shape=tuple(g.grid.shape))
    return dx, dgrid


@shape_rule("WarpByFlow")
def warp_by_flow(data: Shape, flow: Shape) -> tuple[Shape]:
    """Return the shape of data."""
    if len(data) != 4 or min(data[2:]) < 1:
        raise ShapeError(f"data must have the shape (batch, channels, height, width) with pixels, got {data}")
    if flow != (data[0], 2, *data[2:]):
        raise ShapeError(f"flow must have the shape {(data[0], 2, *data[2:])}, got {flow}")
    return (data,)


@gradient("WarpByFlow")
def warp_by_flow_gradient(F: Any, g: GradientCall) -> tuple[Any, Any]:
    """As for a grid; where a place is held at the border, the flow gets no gradient."""
    batch, channels, height, width = g.data.shape
    n_points = height * width
    flow = F.transpose(F.reshape(g.flow, shape=(batch, 2, n_points)), axes=(0, 2, 1))
    shape = (1, height, width)
    rows = F.broadcast(F.reshape(F.arange(start=0.0, stop=float(height)), shape=(1, height, 1)), shape=shape)
    columns = F.broadcast(F.reshape(F.arange(start=0.0, stop=float(width)), shape=(1, 1, width)), shape=shape)
    places, slopes = [], []
    for axis, (line, length) in enumerate(((rows, height), (columns, width))):
        place = coordinate(F, flow, 1 - axis) + F.reshape(line, shape=(1, n_points))
        place, slope = held_place(F, place, length)
        places.append(place)
        slopes.append(slope)
    dy = F.reshape(_channels_last(F, g.grad), shape=(batch, n_points, channels))
    dx, dplaces = linear_sampling_gradient(F, g.wants("data"), g.wants("flow"), _channels_last(F, g.data), places, dy)
    ddata = None if dx is None else _channels_first(F, dx)
    if dplaces is None:
        return ddata, None
    dflow = F.stack(dplaces[1] * slopes[1], dplaces[0] * slopes[0], axis=1)
    return ddata, F.reshape(dflow, shape=tuple(g.flow.shape))


def _channels_last(F: Any, x: Any) -> Any:
    return F.transpose(x, axes=(0, *range(2, x.ndim), 1))


def _channels_first(F: Any, x: Any) -> Any:
    return F.transpose(x, axes=(0, x.ndim - 1, *range(1, x.ndim - 1)))


# --- Patch correlation


@shape_rule("PatchCorrelation")
def patch_correlation(
    x1: Shape, x2: Shape, *, patch: Shape, shift: Shape, patch_step: Shape, shift_step: Shape, padding: Shape
) -> tuple[Shape]:
    """Return a map of patch positions for every vertical and horizontal shift."""
    if len(x1) != 4 or x1 != x2:
        raise ShapeError(f"x1 and x2 must have one shape (batch, channels, height, width), got {x1} and {x2}")
    for name, given, count in (
        ("patch", patch, 2),
        ("shift", shift, 2),
        ("patch_step", patch_step, 2),
        ("shift_step", shift_step, 2),
        ("padding", padding, 4),
    ):
        if len(given) != count:
            raise ArgumentError(f"{name} must have {count} lengths, got {given}")
    height, width = x1[2] + padding[0] + padding[1], x1[3] + padding[2] + padding[3]
    if height < patch[0] or width < patch[1]:
        raise ShapeError(f"patch must fit into the padded image, got {patch} in {(height, width)}")
    shifts = tuple(2 * length // step + 1 for length, step in zip(shift, shift_step, strict=True))
    return ((x1[0], *shifts, (height - patch[0]) // patch_step[0] + 1, (width - patch[1]) // patch_step[1] + 1),)


@shape_rule("PatchCorrelationBackward")
def patch_correlation_backward(dy: Shape, x1: Shape, x2: Shape, **args: Any) -> tuple[Shape, Shape]:
    """Return the shapes of both images."""
    (y,) = patch_correlation(x1, x2, **args)
    if dy != y:
        raise ShapeError(f"dy must have the shape of the correlation, {y}, got {dy}")
    return x1, x2


@gradient("PatchCorrelation")
def patch_correlation_gradient(F: Any, g: GradientCall) -> Any:
    """Both gradients come from one operator."""
    return F.patch_correlation_backward(g.grad, g.x1, g.x2, **_correlation(g))


@gradient("PatchCorrelationBackward")
def patch_correlation_backward_gradient(F: Any, g: GradientCall) -> tuple[Any, Any, Any]:
    """<dy, correlation(u1, x2) + correlation(x1, u2)> is linear in each factor, u1 and u2 being the gradients given."""
    u1, u2 = g.grads
    settings = _correlation(g)
    ddy = dx1 = dx2 = None
    if g.wants("dy"):
        ddy = F.patch_correlation(u1, g.x2, **settings) + F.patch_correlation(g.x1, u2, **settings)
    if g.wants("x1"):
        dx1, _ = F.patch_correlation_backward(g.dy, g.x1, u2, **settings)
    if g.wants("x2"):
        _, dx2 = F.patch_correlation_backward(g.dy, u1, g.x2, **settings)
    return ddy, dx1, dx2


def _correlation(g: GradientCall) -> dict[str, Any]:
    return _settings(g, "patch", "shift", "patch_step", "shift_step", "padding")
