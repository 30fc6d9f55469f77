"""The movement of kernels over the spatial axes of images: the common part of shape rules."""

import math
from dataclasses import dataclass

from nn_core.errors import ArgumentError, ShapeError
from nn_core.typing import MAX_SIZE, Shape


@dataclass(frozen=True)
class Steps:
    """The movement of a kernel over the spatial axes."""

    pad: Shape
    stride: Shape
    dilation: Shape

    def check(self, n_spatial: int) -> None:
        """Refuse other numbers of steps than spatial axes."""
        for name in ("pad", "stride", "dilation"):
            check_count(name, getattr(self, name), n_spatial)

    def extents(self, kernel: Shape) -> Shape:
        """Return the lengths that a dilated kernel covers."""
        return tuple(gap * (length - 1) + 1 for gap, length in zip(self.dilation, kernel, strict=True))

    def counts(self, lengths: Shape, kernel: Shape) -> Shape:
        """Return the number of places of a kernel on padded axes of the given lengths."""
        extents = self.extents(kernel)
        full = tuple(length + 2 * edge for length, edge in zip(lengths, self.pad, strict=True))
        if any(extent > length for extent, length in zip(extents, full, strict=True)):
            raise ShapeError(f"x with its padding must be as long as the dilated kernel, got {full} and {extents}")
        if math.prod(full) > MAX_SIZE:
            raise ShapeError(f"x with its padding must have at most 2**48 elements in a channel, got lengths {full}")
        return tuple((length - extent) // step + 1 for length, extent, step in zip(full, extents, self.stride, strict=True))

    def lengths(self, counts: Shape, kernel: Shape) -> Shape:
        """Return the shortest axes on which a kernel has this many places, without their padding: the inverse of `counts`."""
        return tuple(
            step * (count - 1) + extent - 2 * edge
            for step, count, extent, edge in zip(self.stride, counts, self.extents(kernel), self.pad, strict=True)
        )


def check_count(name: str, value: Shape, n_spatial: int) -> None:
    if len(value) != n_spatial:
        raise ArgumentError(f"{name} must have one value for each of the {n_spatial} spatial axes, got {value}")


def split(shape: Shape, channel_last: bool) -> tuple[int, Shape]:
    """Return number of channels and spatial lengths of an array without its first axes."""
    return (shape[-1], shape[:-1]) if channel_last else (shape[0], shape[1:])


def joined(n_channels: int, lengths: Shape, channel_last: bool) -> Shape:
    return (*lengths, n_channels) if channel_last else (n_channels, *lengths)


def image(x: Shape, base_axis: int, channel_last: bool) -> tuple[int, Shape]:
    if len(x) < base_axis + 2:
        raise ShapeError(f"x must have a channel axis and a spatial axis from base_axis on, got {len(x)} axes")
    return split(x[base_axis:], channel_last)


def filters(weight: Shape, n_spatial: int, channel_last: bool) -> tuple[int, Shape]:
    """Channels and kernel lengths of a weight."""
    if len(weight) != n_spatial + 2:
        raise ShapeError(f"weight must have 2 axes more than x has spatial axes, got {len(weight)} and {n_spatial}")
    n_channels, kernel = split(weight[1:], channel_last)
    check_kernel(kernel)
    return n_channels, kernel


def check_kernel(kernel: Shape) -> None:
    if not all(kernel):
        raise ShapeError(f"the kernel must be at least 1 long on each axis, got {kernel}")


def check_bias(bias: Shape | None, n_outputs: int) -> None:
    if bias is not None and bias != (n_outputs,):
        raise ShapeError(f"bias must have one value for each output channel, shape ({n_outputs},), got {bias}")


def layout_hint(image: Shape, n_channels: int, channel_last: bool) -> str:
    """Return a hint for images whose channels are on the other end."""
    if image[0 if channel_last else -1] != n_channels:
        return ""
    layout = "channel-first" if channel_last else "channel-last"
    return f"\n  hint: x looks {layout}? pass channel_last={not channel_last}"
