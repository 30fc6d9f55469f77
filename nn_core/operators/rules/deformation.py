"""Pieces of the gradient of the deformable convolution: where it reads, and the gradient of reading there."""

from math import prod
from typing import Any

from nn_core.operators.rules.convolution_gradients import cut, image_array, restored
from nn_core.operators.rules.geometry import split
from nn_core.operators.rules.registry import GradientCall
from nn_core.operators.rules.sampling import linear_sampling_gradient
from nn_core.typing import Shape


def sampling_gradient(F: Any, g: GradientCall, images: Any, dsamples: Any, kernel: Shape, counts: Shape) -> tuple[Any, Any]:
    """Gradients of images (B * D, C, H, W) and places (B, D, R, 2, O), D the groups with their own offsets."""
    n_batch, n_groups, n_channels, n_elements, n_places = dsamples.shape
    n_images, n_points = n_batch * n_groups, n_elements * n_places
    images = F.reshape(images, shape=(n_images, n_channels, *images.shape[2:]))
    moves = placed(F, g, g.offset, counts, (n_images, n_elements, 2))
    places = []
    for axis in (0, 1):
        moved = F.slice(moves, start=(0, 0, axis, 0), stop=(*moves.shape[:2], axis + 1, n_places), step=(1,) * 4)
        at_rest = F.reshape(_kernel_grid(F, g, axis, kernel, counts), shape=(1, n_points))
        places.append(F.reshape(moved, shape=(n_images, n_points)) + at_rest)
    dpoints = F.transpose(F.reshape(dsamples, shape=(n_images, n_channels, n_points)), axes=(0, 2, 1))
    last = F.transpose(images, axes=(0, 2, 3, 1))
    dlast, dplaces = linear_sampling_gradient(F, g.wants("x"), g.wants("offset"), last, places, dpoints)
    dimages = None if dlast is None else F.transpose(dlast, axes=(0, 3, 1, 2))
    if dplaces is None:
        return dimages, None
    parts = [F.reshape(dplace, shape=(n_batch, n_groups, n_elements, n_places)) for dplace in dplaces]
    return dimages, F.stack(*parts, axis=3)


def _kernel_grid(F: Any, g: GradientCall, axis: int, kernel: Shape, counts: Shape) -> Any:
    """Place of the kernel's elements on a spatial axis before they are displaced: (*kernel, *counts)."""
    inside = F.arange(start=0.0, stop=float(kernel[axis])) * float(g.dilation[axis])
    moved = F.arange(start=0.0, stop=float(counts[axis])) * float(g.stride[axis]) - float(g.pad[axis])
    inside = F.reshape(inside, shape=(kernel[0], 1, 1, 1) if axis == 0 else (1, kernel[1], 1, 1))
    moved = F.reshape(moved, shape=(1, 1, counts[0], 1) if axis == 0 else (1, 1, 1, counts[1]))
    return F.broadcast(inside + moved, shape=(*kernel, *counts))


def placed(F: Any, g: GradientCall, field: Any, counts: Shape, shape: Shape) -> Any:
    """Return the values of an offset or mask array at each output position: (*shape, positions)."""
    field = image_array(F, field, g.base_axis, g.channel_last)
    stop = tuple(step * (count - 1) + 1 for step, count in zip(g.stride, counts, strict=True))
    field = F.slice(field, start=(0,) * 4, stop=(*field.shape[:2], *stop), step=(1, 1, *g.stride))
    return F.reshape(field, shape=(*shape, prod(counts)))


def unplaced(F: Any, g: GradientCall, placed: Any, counts: Shape, like: Any) -> Any:
    """Return the transpose of ``placed``: the shape of `like`, zeros except at the output places."""
    n_rows, lengths = sizes(like, g)
    n_batch = placed.shape[0]
    (down, across), (height, width) = g.stride, lengths
    spread = F.reshape(placed, shape=(n_batch, n_rows, counts[0], 1, counts[1], 1))
    spread = F.pad(spread, pad_width=(0, down - 1, 0, 0, 0, across - 1))
    spread = F.reshape(spread, shape=(n_batch, n_rows, counts[0] * down, counts[1] * across))
    spread = cut(F, spread, (n_batch, n_rows, min(height, spread.shape[2]), min(width, spread.shape[3])))
    spread = F.pad(spread, pad_width=(0, height - spread.shape[2], 0, width - spread.shape[3]))
    return restored(F, spread, tuple(like.shape), g.channel_last)


def sizes(array: Any, g: GradientCall) -> tuple[int, Shape]:
    return split(tuple(array.shape)[g.base_axis :], g.channel_last)
