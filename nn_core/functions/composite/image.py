"""Resizing by a scale, and patch correlation for images with channels last."""

from collections.abc import Iterable, Sequence
from math import floor

from nn_core.engine.error_messages.refusal import door
from nn_core.engine.graph.imperative import one_kind
from nn_core.engine.graph.lazy_subgraph import follows_shapes
from nn_core.errors import ArgumentError
from nn_core.functions import image as operators
from nn_core.functions.operand import Operand
from nn_core.functions.shape import transpose

__all__ = ["interpolate", "patch_correlation"]


@follows_shapes
@door
def interpolate(
    x: Operand,
    scale: float | Sequence[float] | None = None,
    output_size: int | Sequence[int] | None = None,
    mode: str = "linear",
    align_corners: bool = False,
    half_pixel: bool = False,
    half_pixel_for_nn: bool = False,
    channel_last: bool = False,
) -> Operand:
    """Resize the last axes by interpolation.

    Args:
        x: Array of shape (..., S_1, ..., S_k), or (..., S_1, ..., S_k, C) if `channel_last`.
        scale: Factor for each resized axis; the new length is floor(factor * length). One number stands for all axes
            but two, those of the samples and of the channels.
        output_size: New length of each resized axis, or one for all but two axes; it takes precedence over `scale`.
        mode: "linear" or "nearest".
        align_corners: Align the outermost elements of input and output.
        half_pixel: Place elements at the centres of pixels.
        half_pixel_for_nn: Let pixel centres count in the mode "nearest".
        channel_last: The last axis holds channels and is not resized.

    Returns:
        The resized array.

    Raises:
        ArgumentError: when neither `scale` nor `output_size` is given.

    Example:
        >>> F.interpolate(nn.Variable((8, 3, 16, 16)), scale=(2, 2)).shape
        (8, 3, 32, 32)
    """
    n_spatial = max(x.ndim - 2, 1)
    if output_size is not None:
        output_size = output_size if isinstance(output_size, Iterable) else (output_size,) * n_spatial
    elif scale is None:
        raise ArgumentError("interpolate: scale or output_size must be given, got neither")
    else:
        scale = scale if isinstance(scale, Iterable) else (scale,) * n_spatial
        end = x.ndim - 1 if channel_last else x.ndim
        if len(scale) > end:
            raise ArgumentError(f"interpolate: scale must have at most {end} entries, got {tuple(scale)}")
        lengths = x.shape[end - len(scale) : end]
        output_size = [floor(length * factor) for factor, length in zip(scale, lengths, strict=True)]
    return operators.interpolate(x, output_size, mode, align_corners, half_pixel, half_pixel_for_nn, channel_last)


@one_kind
def patch_correlation(
    x1: Operand,
    x2: Operand,
    patch: int | Sequence[int] = (1, 1),
    shift: int | Sequence[int] = (0, 0),
    patch_step: int | Sequence[int] = (1, 1),
    shift_step: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0, 0, 0),
    channel_last: bool = False,
) -> Operand:
    """Correlate patches of two images at shifted places.

    Args:
        x1: Images of shape (N, C, H, W), or (N, H, W, C) if `channel_last`.
        x2: Images of the same shape.
        patch: Height and width of the patches.
        shift: Largest vertical and horizontal distance of a patch of x2 from its partner in x1.
        patch_step: Vertical and horizontal distance of neighbouring patches.
        shift_step: Vertical and horizontal distance of neighbouring shifts.
        padding: Zeros above, below, left and right of the images; two numbers are vertical and horizontal.
        channel_last: The last axis of the images holds channels.

    Returns:
        Correlations of shape (N, Cy, Cx, Ho, Wo), or (N, Ho, Wo, Cy, Cx) if `channel_last`, for Cy by Cx shifts.

    Notes:
        A single number for a pair stands for both.

    References:
        Dosovitskiy et al. (2015), FlowNet, section 3.

    Example:
        >>> F.patch_correlation(nn.Variable((1, 3, 8, 8)), nn.Variable((1, 3, 8, 8)), shift=(1, 1)).shape
        (1, 3, 3, 8, 8)
    """
    sides = _pair(padding)
    if len(sides) == 2:
        sides = (sides[0], sides[0], sides[1], sides[1])
    if channel_last:
        x1, x2 = transpose(x1, (0, 3, 1, 2)), transpose(x2, (0, 3, 1, 2))
    y = operators.patch_correlation(x1, x2, _pair(patch), _pair(shift), _pair(patch_step), _pair(shift_step), sides)
    return transpose(y, (0, 3, 4, 1, 2)) if channel_last else y


def _pair(value: int | Sequence[int]) -> Sequence[int]:
    return value if isinstance(value, Sequence) else (value, value)
