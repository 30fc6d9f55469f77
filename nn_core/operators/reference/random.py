"""Reference kernels of functions that draw random numbers, all of them from ``philox``.

Elements count in C order, and a function that draws one number for each of them takes it from stream 0. A kernel that
draws more says which stream each thing comes from. Numbers are computed in double precision and rounded once, to the
dtype of the output.
"""

import math

from nn_core.errors import ArgumentError
from nn_core.operators.reference import axis_maps, philox
from nn_core.operators.reference.precision import sum_of, widen
from nn_core.operators.reference.registry import kernel
from nn_core.operators.rules.random import crop_lengths
from nn_core.operators.rules.shape import on_last_axes
from nn_core.typing import Array, Namespace, Shape

# Arrays of random numbers -------------------------------------------------------------------------------------------


@kernel("Rand")
def rand(xp: Namespace, *, low: float, high: float, shape: Shape, seed: int, key: Array) -> Array:
    return (low + (high - low) * philox.uniform(xp, key, math.prod(shape))).reshape(shape)


@kernel("Randint")
def randint(xp: Namespace, *, low: int, high: int, shape: Shape, seed: int, key: Array) -> Array:
    return (low + philox.below(xp, philox.bits(xp, key, math.prod(shape)), high - low)).reshape(shape)


@kernel("Randn")
def randn(xp: Namespace, *, mu: float, sigma: float, shape: Shape, seed: int, key: Array) -> Array:
    return (mu + sigma * philox.normal(xp, key, math.prod(shape))).reshape(shape)


@kernel("RandBinomial")
def rand_binomial(xp: Namespace, *, n: int, p: float, shape: Shape, seed: int, key: Array) -> Array:
    """Inversion: the number of trials whose cumulative probability does not exceed a uniform number."""
    u = philox.uniform(xp, key, math.prod(shape))
    if p in (0, 1):
        return xp.full(shape, n * p, dtype=xp.float64)
    successes = xp.arange(1, n + 1, dtype=xp.float64)
    log_ratios = xp.log((n + 1 - successes) / successes) + math.log(p / (1 - p))
    log_chances = xp.concat((xp.zeros(1), xp.cumsum(log_ratios))) + n * math.log1p(-p)
    cumulative = xp.cumsum(xp.exp(log_chances))[:-1]
    return xp.searchsorted(cumulative, u, side="right").astype(xp.float64).reshape(shape)


@kernel("RandGamma")
def rand_gamma(xp: Namespace, *, k: float, theta: float, shape: Shape, seed: int, key: Array) -> Array:
    return theta * xp.exp(_log_gamma(xp, key, math.prod(shape), k, 0)).reshape(shape)


@kernel("RandBeta")
def rand_beta(xp: Namespace, *, alpha: float, beta: float, shape: Shape, seed: int, key: Array) -> Array:
    """Return a / (a + b) of two gamma samples, from their logarithms, which do not underflow for small alpha and beta."""
    n = math.prod(shape)
    log_a, log_b = _log_gamma(xp, key, n, alpha, 0), _log_gamma(xp, key, n, beta, 1 << 20)
    return (1 / (1 + xp.exp(log_b - log_a))).reshape(shape)


def _log_gamma(xp: Namespace, key: Array, n: int, k: float, first_stream: int) -> Array:
    """Logarithms of `n` samples of the gamma distribution with shape `k` and scale 1.

    Rejection method of Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).
    Attempt t for element i uses block i of stream `first_stream` + t: lanes 0 and 1 for a normal number, lane 2 for
    the rejection, lane 3 for the step from k + 1 to k < 1.
    """
    d = (k if k >= 1 else k + 1) - 1 / 3
    c = 1 / math.sqrt(9 * d)
    result = xp.zeros(n)
    pending, stream = xp.arange(n), first_stream
    while pending.size:
        words = philox.words_at(xp, key, pending, stream=stream)
        u0, u1, u2, u3 = [philox.unit_interval(xp, word) for word in words]
        x = xp.sqrt(-2 * xp.log(u0 + 2.0**-24)) * xp.cos(2 * math.pi * u1)
        v = xp.maximum(1 + c * x, 0) ** 3
        log_v = xp.log(xp.where(v > 0, v, 1))
        accepted = (v > 0) & (xp.log(u2 + 2.0**-24) < x * x / 2 + d * (1 - v + log_v))
        sample = math.log(d) + log_v
        if k < 1:
            sample = sample + xp.log(u3 + 2.0**-24) / k
        result[pending[accepted]] = sample[accepted]
        pending, stream = pending[~accepted], stream + 1
    return result


# Dropping and choosing ----------------------------------------------------------------------------------------------


@kernel("Dropout")
def dropout(xp: Namespace, x: Array, *, p: float, seed: int, key: Array) -> tuple[Array, Array]:
    is_kept = philox.uniform(xp, key, x.size).reshape(x.shape) >= p
    mask = (is_kept * (1 / (1 - p))).astype(x.dtype)
    return x * mask, mask


@kernel("DropoutMask")
def dropout_mask(xp: Namespace, drawn: Array, *, shape: Shape, p: float) -> Array:
    return (philox.uniform(xp, drawn, math.prod(shape)) >= p).reshape(shape) * (1 / (1 - p))


@kernel("RandomChoice")
def random_choice(
    xp: Namespace, x: Array, w: Array, *, shape: Shape, replace: bool, seed: int, key: Array
) -> tuple[Array, Array]:
    n, n_drawn = x.shape[-1], math.prod(shape)
    weights = w.astype(xp.float64).reshape(math.prod(x.shape[:-1]), n)
    _require_weights(xp, weights, 1 if replace else n_drawn)
    if replace:
        u = philox.uniform(xp, key, weights.shape[0] * n_drawn).reshape(weights.shape[0], n_drawn)
        sums = xp.cumsum(weights, axis=1)
        rows = [xp.searchsorted(row, fraction * row[-1], side="right") for row, fraction in zip(sums, u, strict=True)]
        places = xp.stack(rows) if rows else xp.zeros((0, n_drawn), dtype=xp.int64)
    else:
        # Efraimidis and Spirakis (2006), "Weighted random sampling with a reservoir": the smallest of exponential
        # numbers with rate w are a weighted sample without replacement, in the order of drawing.
        u = (philox.uniform(xp, key, weights.size) + 2.0**-24).reshape(weights.shape)
        times = xp.where(weights > 0, -xp.log(u) / xp.where(weights > 0, weights, 1), xp.inf)
        places = xp.argsort(times, axis=1)[:, :n_drawn]
    y = xp.take_along_axis(x.reshape(-1, n), places, axis=1) if n else xp.zeros(places.shape, dtype=x.dtype)
    y_shape = (*x.shape[:-1], *(shape or (1,)))
    return y.reshape(y_shape), places.reshape(y_shape)


def _require_weights(xp: Namespace, weights: Array, n_needed: int) -> None:
    if not bool(xp.all(xp.isfinite(weights))):
        raise ArgumentError(f"random_choice: w must be finite, got {float(weights[~xp.isfinite(weights)][0])}")
    if weights.size and not bool(xp.all(weights >= 0)):
        raise ArgumentError(f"random_choice: w must not be negative, got a smallest value of {float(weights.min())}")
    n_positive = int(xp.min(xp.sum(weights > 0, axis=1))) if weights.shape[0] else n_needed
    if n_positive < n_needed:
        raise ArgumentError(f"random_choice: w must have {n_needed} positive values a row, got {n_positive}")


# Altering samples ---------------------------------------------------------------------------------------------------


def _moved(xp: Namespace, x: Array, maps: list[Array], base_axis: int, shape: Shape, fill: float = 0.0) -> tuple[Array, Array]:
    """Return samples of `x` read through `maps`, one for each of the axes that the draws were for, and the maps side by side.

    Maps of the axes before `base_axis` say which sample is read; their places in the source are one number.
    """
    samples = x.reshape(math.prod(x.shape[:base_axis]), *x.shape[base_axis:])
    first, maps = maps[: len(maps) - (x.ndim - base_axis)], maps[len(maps) - (x.ndim - base_axis) :]
    columns = maps
    if first:
        origin, is_outside = _origins(xp, first, x.shape[:base_axis], shape[:base_axis])
        samples = samples[origin] if x.size else xp.zeros((origin.size, *samples.shape[1:]), dtype=x.dtype)
        maps = [xp.where(is_outside[:, None], -1, axis_map) for axis_map in maps]
        columns = [origin[:, None], *maps]
    source = xp.concat(columns, axis=1)
    y = axis_maps.take(xp, samples, maps, fill)
    return y.reshape(shape), source.reshape(*shape[:base_axis], source.shape[1])


def _origins(xp: Namespace, maps: list[Array], lengths: Shape, made: Shape) -> tuple[Array, Array]:
    """For each sample of the result, the number of the one it is read from, and whether that is outside."""
    numbers = xp.arange(math.prod(made))
    origin, is_outside, size = numbers * 0, numbers < 0, math.prod(made)
    for axis_map, length, made_length in zip(maps, lengths, made, strict=True):
        size //= max(made_length, 1)
        place = axis_map[numbers, numbers // max(size, 1) % max(made_length, 1)]
        origin, is_outside = origin * length + xp.maximum(place, 0), is_outside | (place < 0)
    return origin, is_outside


def _draws(xp: Namespace, key: Array, shape: Shape, base_axis: int, first: int) -> Array:
    """Return a random word for each axis from `first` on of each sample of a result. Shape (samples, axes)."""
    n_samples, n_axes = math.prod(shape[:base_axis]), len(shape) - first
    return philox.bits(xp, key, n_samples * n_axes).reshape(n_samples, n_axes)


@kernel("RandomCrop")
def random_crop(xp: Namespace, x: Array, *, shape: Shape | None, base_axis: int, seed: int, key: Array) -> tuple[Array, Array]:
    y_shape = crop_lengths(x.shape, shape)
    first = base_axis if y_shape[:base_axis] == x.shape[:base_axis] else 0
    words = _draws(xp, key, y_shape, base_axis, first)
    maps = []
    for axis, (length, cropped) in enumerate(zip(x.shape[first:], y_shape[first:], strict=True)):
        start = philox.below(xp, words[:, axis : axis + 1], length - cropped + 1)
        maps.append(start + xp.arange(cropped))
    return _moved(xp, x, maps, base_axis, y_shape)


@kernel("RandomFlip")
def random_flip(
    xp: Namespace, x: Array, *, axes: tuple[int, ...], base_axis: int, seed: int, key: Array
) -> tuple[Array, Array]:
    first = base_axis if min(axes, default=base_axis) >= base_axis else 0
    words = _draws(xp, key, x.shape, base_axis, first)
    maps = []
    for axis, length in enumerate(x.shape[first:]):
        is_flipped = (words[:, axis : axis + 1] >> 31) * (first + axis in axes) > 0
        places = xp.arange(length)
        maps.append(xp.where(is_flipped, length - 1 - places, places))
    return _moved(xp, x, maps, base_axis, x.shape)


@kernel("RandomShift")
def random_shift(
    xp: Namespace,
    x: Array,
    *,
    shifts: tuple[int, ...],
    border_mode: str,
    constant_value: float,
    base_axis: int,
    seed: int,
    key: Array,
) -> tuple[Array, Array]:
    place = {"nearest": axis_maps.nearest, "reflect": axis_maps.mirrored, "constant": axis_maps.outside}[border_mode]
    limits = on_last_axes(shifts, x.ndim, 0)
    first = 0 if any(limits[:base_axis]) else base_axis
    words = _draws(xp, key, x.shape, base_axis, first)
    maps = []
    for axis, (length, limit) in enumerate(zip(x.shape[first:], limits[first:], strict=True)):
        shift = philox.below(xp, words[:, axis : axis + 1], 2 * limit + 1) - limit
        positions = xp.arange(length) - shift
        maps.append(place(xp, positions, length) if length else positions)
    return _moved(xp, x, maps, base_axis, x.shape, constant_value)


@kernel("RandomErase")
def random_erase(
    xp: Namespace,
    x: Array,
    *,
    prob: float,
    area_ratios: tuple[float, ...],
    aspect_ratios: tuple[float, ...],
    replacements: tuple[float, ...],
    n: int,
    share: bool,
    inplace: bool,
    base_axis: int,
    seed: int,
    channel_last: bool,
    ste_fine_grained: bool,
    key: Array,
) -> tuple[Array, Array]:
    """Zhong et al. (2017), "Random erasing data augmentation". Patches are numbered by sample, patch, channel.

    Streams: 0 erase or not, 1 area, 2 aspect ratio, 3 first row, 4 first column, 5 new value of each element of x.
    """
    samples = x.reshape(math.prod(x.shape[:base_axis]), *x.shape[base_axis:])
    n_channels, height, width = samples.shape[-1:] + samples.shape[1:3] if channel_last else samples.shape[1:]
    patches = (samples.shape[0], n, 1 if share else n_channels, 1, 1)

    def draw(stream: int, low: float = 0.0, high: float = 1.0) -> Array:
        u = philox.uniform(xp, key, math.prod(patches), stream=stream).reshape(patches)
        return low + (high - low) * u

    area, aspect = draw(1, *area_ratios) * (height * width), draw(2, *aspect_ratios)
    patch_height = xp.minimum(xp.sqrt(area * aspect), height)
    patch_width = xp.minimum(xp.sqrt(area / aspect), width)
    row, column = draw(3) * (height - patch_height), draw(4) * (width - patch_width)
    rows, columns = xp.arange(height)[:, None] + 0.5, xp.arange(width) + 0.5
    is_inside = (rows >= row) & (rows < row + patch_height) & (columns >= column) & (columns < column + patch_width)
    is_erased = xp.any((draw(0) < prob) & is_inside, axis=1)
    if channel_last:
        is_erased = xp.moveaxis(is_erased, 1, -1)
    values = philox.uniform(xp, key, x.size, stream=5).reshape(samples.shape)
    values = replacements[0] + (replacements[1] - replacements[0]) * values
    y = xp.where(is_erased, values, samples)
    return y.reshape(x.shape), 1.0 - is_erased.reshape(*x.shape[:base_axis], *is_erased.shape[1:])


@kernel("ImageAugmentation")
def image_augmentation(
    xp: Namespace,
    x: Array,
    *,
    shape: Shape | None,
    pad: tuple[int, ...],
    min_scale: float,
    max_scale: float,
    angle: float,
    aspect_ratio: float,
    distortion: float,
    flip_lr: bool,
    flip_ud: bool,
    brightness: float,
    brightness_each: bool,
    contrast: float,
    contrast_center: float,
    contrast_each: bool,
    noise: float,
    seed: int,
    key: Array,
) -> Array:
    """Streams, one number a sample: 0 scale, 1 aspect, 2 angle, 3 distortion, 4 and 5 flips, 6 and 7 place of the cut.

    8 contrast and 9 brightness, one number for each channel of each sample; 10 noise, one for each element of y.
    """
    y_shape = crop_lengths(x.shape, shape)
    images = widen(xp, x).reshape(math.prod(x.shape[:-3]), *x.shape[-3:])
    n_images, n_channels, height, width = images.shape

    def draw(stream: int, low: float, high: float) -> Array:
        u = philox.uniform(xp, key, n_images, stream=stream).reshape(-1, 1, 1)
        return low + (high - low) * u

    zoom = xp.exp(draw(0, math.log(min_scale), math.log(max_scale)))
    stretch = xp.exp(draw(1, -0.5, 0.5) * math.log(aspect_ratio))
    zoom_y, zoom_x = zoom * stretch, zoom / stretch
    row = xp.arange(y_shape[-2])[:, None] - (y_shape[-2] - 1) / 2
    column = xp.arange(y_shape[-1]) - (y_shape[-1] - 1) / 2
    row = xp.where(draw(4, 0, 1) < 0.5 * flip_ud, -row, row) / zoom_y
    column = xp.where(draw(5, 0, 1) < 0.5 * flip_lr, -column, column) / zoom_x
    turn = draw(2, -angle, angle)
    row, column = xp.cos(turn) * row - xp.sin(turn) * column, xp.sin(turn) * row + xp.cos(turn) * column
    bend = 1 + draw(3, -distortion, distortion) * (row**2 + column**2) * 4 / (height**2 + width**2)
    row = row * bend + (height - 1) / 2 + draw(6, -0.5, 0.5) * (height + 2 * pad[0] - y_shape[-2] / zoom_y)
    column = column * bend + (width - 1) / 2 + draw(7, -0.5, 0.5) * (width + 2 * pad[1] - y_shape[-1] / zoom_x)
    y = _bilinear(xp, images, row, column)

    def draw_each(stream: int, limit: float, is_each: bool) -> Array:
        u = philox.uniform(xp, key, n_images * n_channels, stream=stream).reshape(n_images, n_channels, 1, 1)
        return limit * (2 * (u if is_each else u[:, :1]) - 1)

    gain = xp.exp(draw_each(8, math.log(contrast), contrast_each))
    y = (y - contrast_center) * gain + contrast_center + draw_each(9, brightness, brightness_each)
    if noise:
        y = y + noise * philox.normal(xp, key, y.size, stream=10).reshape(y.shape)
    return y.reshape(y_shape)


def _bilinear(xp: Namespace, images: Array, row: Array, column: Array) -> Array:
    """`images` (S, C, H, W) at fractional places (S, I, J), those outside moved to the edge. Shape (S, C, I, J)."""
    height, width = images.shape[2:]
    row, column = xp.clip(row, 0, height - 1), xp.clip(column, 0, width - 1)
    top, left = xp.floor(row).astype(xp.int64), xp.floor(column).astype(xp.int64)
    bottom, right = xp.minimum(top + 1, height - 1), xp.minimum(left + 1, width - 1)
    sample = xp.arange(images.shape[0]).reshape(-1, 1, 1)
    channels_last = xp.moveaxis(images, 1, -1)

    def corner(rows: Array, columns: Array, weight: Array) -> Array:
        return channels_last[sample, rows, columns] * weight[..., None]

    down, over = row - top, column - left
    upper = corner(top, left, (1 - down) * (1 - over)) + corner(top, right, (1 - down) * over)
    lower = corner(bottom, left, down * (1 - over)) + corner(bottom, right, down * over)
    return xp.moveaxis(upper + lower, -1, 1)


@kernel("VATNoise")
def vat_noise(xp: Namespace, x: Array, w: Array, *, base_axis: int, eps: float) -> Array:
    x = widen(xp, x)
    axes = tuple(range(base_axis, x.ndim))
    return eps * x / xp.sqrt(sum_of(xp, x * x, axes, keepdims=True) + 1e-8)
