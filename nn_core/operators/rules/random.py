"""Shape and gradient rules of functions that draw random numbers."""

import math
from typing import Any, Final

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.operators.rules.shape import on_last_axes, require_shape
from nn_core.typing import Shape

#: Above every distance within an array that fits the memory.
_MOST = 1 << 31

# Arrays of random numbers -------------------------------------------------------------------------------------------


@shape_rule("Rand")
def rand_shape(*, low: float, high: float, shape: Shape, seed: int) -> tuple[Shape]:
    if not low < high:
        raise ArgumentError(f"low must be below high, got {low} and {high}")
    require_shape(shape)
    return (shape,)


@shape_rule("Randint")
def randint_shape(*, low: int, high: int, shape: Shape, seed: int) -> tuple[Shape]:
    if not 0 < high - low <= 2**32:
        raise ArgumentError(f"low must be below high by at most 2**32, got {low} and {high}")
    require_shape(shape)
    return (shape,)


@shape_rule("Randn")
def randn_shape(*, mu: float, sigma: float, shape: Shape, seed: int) -> tuple[Shape]:
    require_shape(shape)
    return (shape,)


@shape_rule("RandBinomial")
def rand_binomial_shape(*, n: int, p: float, shape: Shape, seed: int) -> tuple[Shape]:
    require_shape(shape)
    return (shape,)


@shape_rule("RandBeta")
def rand_beta_shape(*, alpha: float, beta: float, shape: Shape, seed: int) -> tuple[Shape]:
    if not (0 < alpha < math.inf and 0 < beta < math.inf):
        raise ArgumentError(f"alpha and beta must be positive and finite, got {alpha} and {beta}")
    require_shape(shape)
    return (shape,)


@shape_rule("RandGamma")
def rand_gamma_shape(*, k: float, theta: float, shape: Shape, seed: int) -> tuple[Shape]:
    if not (0 < k < math.inf and 0 < theta < math.inf):
        raise ArgumentError(f"k and theta must be positive and finite, got {k} and {theta}")
    require_shape(shape)
    return (shape,)


# Dropping and choosing ----------------------------------------------------------------------------------------------


@shape_rule("Dropout")
def dropout_shape(x: Shape, *, p: float, seed: int) -> tuple[Shape, Shape]:
    if not 0 <= p < 1:
        raise ArgumentError(f"p must be in [0, 1), got {p}")
    return (x, x)


@gradient("Dropout")
def dropout_gradient(F: Any, g: GradientCall) -> Any:
    return g.grad * g.mask


@shape_rule("DropoutMask")
def dropout_mask_shape(drawn: Shape, *, shape: Shape, p: float) -> tuple[Shape]:
    if drawn != (2,):
        raise ShapeError(f"drawn must have the shape (2,), got {drawn}")
    if not 0 <= p < 1:
        raise ArgumentError(f"p must be in [0, 1), got {p}")
    require_shape(shape)
    return (shape,)


@shape_rule("RandomChoice")
def random_choice_shape(x: Shape, w: Shape, *, shape: Shape, replace: bool, seed: int) -> tuple[Shape, Shape]:
    require_shape(shape)
    if not x or x != w:
        raise ShapeError(f"x and w must have equal shapes of at least one axis, got {x} and {w}")
    if not replace and math.prod(shape) > x[-1]:
        n_drawn = math.prod(shape)
        raise ArgumentError(f"shape must have at most {x[-1]} elements without replacement, got {shape} ({n_drawn})")
    y = (*x[:-1], *(shape or (1,)))
    return (y, y)


@gradient("RandomChoice")
def random_choice_gradient(F: Any, g: GradientCall) -> tuple[Any, Any]:
    x_shape = tuple(g.x.shape)
    rows = (math.prod(x_shape[:-1]), math.prod(g.shape))
    places, dy = F.reshape(g.places, shape=rows), F.reshape(g.grad, shape=rows)
    dx = F.scatter_add(F.constant(val=0, shape=(rows[0], x_shape[-1])), places, dy, axis=1)
    dx = F.reshape(dx, shape=x_shape)
    return dx, dx


# Altering samples ---------------------------------------------------------------------------------------------------


def crop_lengths(x: Shape, shape: Shape | None) -> Shape:
    """Return the shape of a result for which `shape` gives the lengths of the last axes."""
    return x if shape is None else (*x[: max(0, len(x) - len(shape))], *shape)


def _source_shape(y: Shape, base_axis: int, exchanged: bool) -> Shape:
    """For each sample the number of the one it is read from, if they are exchanged, and the positions along its axes."""
    return (*y[:base_axis], exchanged + sum(y[base_axis:]))


@shape_rule("RandomCrop")
def random_crop_shape(x: Shape, *, shape: Shape | None, base_axis: int, seed: int) -> tuple[Shape, Shape]:
    y = crop_lengths(x, shape)
    require_shape(y)
    if len(y) != len(x) or any(n > limit for n, limit in zip(y, x, strict=True)):
        raise ShapeError(f"shape must fit into x, got {shape} and {x}")
    return (y, _source_shape(y, base_axis, y[:base_axis] != x[:base_axis]))


@shape_rule("RandomFlip")
def random_flip_shape(x: Shape, *, axes: tuple[int, ...], base_axis: int, seed: int) -> tuple[Shape, Shape]:
    return (x, _source_shape(x, base_axis, min(axes, default=base_axis) < base_axis))


@shape_rule("RandomShift")
def random_shift_shape(
    x: Shape, *, shifts: tuple[int, ...], border_mode: str, constant_value: float, base_axis: int, seed: int
) -> tuple[Shape, Shape]:
    if len(shifts) > len(x) or min(shifts, default=0) < 0 or max(shifts, default=0) >= _MOST:
        raise ArgumentError(
            f"shifts must have at most one entry for each of the {len(x)} axes, none negative, all below 2**31, got {shifts}"
        )
    return (x, _source_shape(x, base_axis, any(on_last_axes(shifts, len(x), 0)[:base_axis])))


@gradient("RandomCrop", "RandomFlip", "RandomShift")
def random_source_gradient(F: Any, g: GradientCall) -> Any:
    """Back to where each sample was read, and from there to the sample that it was read from."""
    x_shape, y_shape, base_axis = tuple(g.x.shape), tuple(g.y.shape), g.base_axis
    lengths, width = x_shape[base_axis:], sum(y_shape[base_axis:])
    if g.source.shape[-1] == width:
        return F.scatter_axes(g.grad, g.source, base_axis=base_axis, shape=lengths)
    n_samples, size = math.prod(y_shape[:base_axis]), math.prod(lengths)
    rows = F.reshape(g.source, shape=(n_samples, 1 + width))
    origins = F.slice(rows, start=(0, 0), stop=(n_samples, 1), step=(1, 1))
    places = F.slice(rows, start=(0, 1), stop=(n_samples, 1 + width), step=(1, 1))
    dy = F.reshape(g.grad, shape=(n_samples, *y_shape[base_axis:]))
    parts = F.reshape(F.scatter_axes(dy, places, base_axis=1, shape=lengths), shape=(n_samples, size))
    zeros = F.constant(val=0, shape=(math.prod(x_shape[:base_axis]), size))
    dx = F.scatter_add(zeros, F.broadcast(origins, shape=(n_samples, size)), parts, axis=0)
    return F.reshape(dx, shape=x_shape)


@shape_rule("RandomErase")
def random_erase_shape(
    x: Shape,
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
) -> tuple[Shape, Shape]:
    if len(x) - base_axis != 3:
        raise ShapeError(f"x must have three axes from base_axis {base_axis} on, got shape {x}")
    ranges = {"area_ratios": area_ratios, "aspect_ratios": aspect_ratios, "replacements": replacements}
    for name, limits in ranges.items():
        if len(limits) != 2 or limits[0] > limits[1] or (name != "replacements" and limits[0] <= 0):
            condition = "(low, high)" if name == "replacements" else "positive (low, high)"
            raise ArgumentError(f"{name} must be {condition} with low <= high, got {limits}")
    channel_axis = len(x) - 1 if channel_last else base_axis
    return (x, (*x[:channel_axis], 1, *x[channel_axis + 1 :]) if share else x)


@gradient("RandomErase")
def random_erase_gradient(F: Any, g: GradientCall) -> Any:
    return g.grad * g.kept if g.ste_fine_grained else g.grad


#: Positions of pixels that are computed from larger numbers would be infinite or NaN.
_LARGEST_SETTING: Final = 1e6


@shape_rule("ImageAugmentation")
def image_augmentation_shape(
    x: Shape,
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
) -> tuple[Shape]:
    y = crop_lengths(x, shape)
    require_shape(y)
    if len(x) < 3 or 0 in x[-2:]:
        raise ShapeError(f"x must have the axes channel, height and width, the last two not empty, got shape {x}")
    if len(y) != len(x) or y[:-2] != x[:-2]:
        raise ShapeError(f"shape must agree with x except along the last two axes, got {shape} and {x}")
    if len(pad) != 2 or min(pad) < 0:
        raise ArgumentError(f"pad must have two entries, none negative, got {pad}")
    if not 0 < min_scale <= max_scale:
        raise ArgumentError(f"min_scale must be positive and at most max_scale, got {min_scale} and {max_scale}")
    numbers = (max_scale, angle, aspect_ratio, distortion, brightness, contrast, contrast_center, noise)
    if not all(abs(number) <= _LARGEST_SETTING for number in numbers):
        raise ArgumentError(f"settings must be numbers up to {_LARGEST_SETTING:g}, got {numbers}")
    if min(aspect_ratio, contrast) <= 0:
        raise ArgumentError(f"aspect_ratio and contrast must be positive, got {aspect_ratio} and {contrast}")
    return (y,)


@shape_rule("VATNoise")
def vat_noise_shape(x: Shape, w: Shape, *, base_axis: int, eps: float) -> tuple[Shape]:
    if x != w:
        raise ShapeError(f"x and w must have equal shapes, got {x} and {w}")
    return (x,)


@gradient("VATNoise")
def vat_noise_gradient(F: Any, g: GradientCall) -> tuple[None, Any]:
    return None, g.eps * g.grad
