"""Steps that make an image one for a network of semantic segmentation."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.data.images import resize_image
from nn_core.errors import ArgumentError, ShapeError

Image = np.ndarray[Any, Any]
#: Becomes 0 when values are scaled: the middle of what they may be.
_MIDDLE: Final = 127.5


def resize(image: Image, desired_size: Sequence[int]) -> Image:
    """Return an image of another size, by bilinear interpolation.

    Args:
        image: Shape (H, W) or (H, W, C).
        desired_size: Height and width.

    Example:
        >>> from nn_core.models.semantic_segmentation.image_preprocess import resize
        >>> resize(np.zeros((4, 6, 3), np.uint8), (8, 12)).shape
        (8, 12, 3)
    """
    height, width = desired_size
    return resize_image(image, (width, height))


def cast(image: Image) -> Image:
    """Return the image in float32.

    Example:
        >>> from nn_core.models.semantic_segmentation.image_preprocess import cast
        >>> cast(np.zeros((1, 2, 3), np.uint8)).dtype
        dtype('float32')
    """
    return np.asarray(image).astype(np.float32)


def zero_mean_unit_range(image: Image) -> Image:
    """Values from 0 to 255 as values from -1 to 1.

    Example:
        >>> from nn_core.models.semantic_segmentation.image_preprocess import zero_mean_unit_range
        >>> zero_mean_unit_range(np.array([0, 127.5, 255], np.float32)).tolist()
        [-1.0, 0.0, 1.0]
    """
    return (2.0 / 255.0) * np.asarray(image) - 1.0


def pad(image: Image, desired_size: Sequence[int] = (513, 513), value: float | None = None) -> Image:
    """Return the image in the upper left corner of a larger one.

    Args:
        image: Shape (H, W, C).
        desired_size: Height and width of the result.
        value: Of the new pixels. None: 127.5, the middle of the values.

    Raises:
        ArgumentError: when the image is larger.

    Example:
        >>> from nn_core.models.semantic_segmentation.image_preprocess import pad
        >>> pad(np.zeros((1, 1, 1), np.float32), (1, 3))[..., 0].tolist()
        [[0.0, 127.5, 127.5]]
    """
    below, beside = (int(new) - old for new, old in zip(desired_size, image.shape[:2], strict=True))
    if below < 0 or beside < 0:
        raise ArgumentError(f"pad: desired_size must be at least that of the image, {image.shape[:2]}, got {desired_size}")
    borders = ((0, below), (0, beside), *[(0, 0)] * (image.ndim - 2))
    return np.pad(image, borders, constant_values=_MIDDLE if value is None else value)


def fitting_size(image: Image, height: int, width: int) -> tuple[int, int]:
    """Return the largest height and width within those given in which an image keeps its proportions.

    Raises:
        ShapeError: when the image has no pixels, or a shape other than (H, W, 3).

    Example:
        >>> from nn_core.models.semantic_segmentation.image_preprocess import fitting_size
        >>> fitting_size(np.zeros((300, 700, 3), np.uint8), 64, 48)
        (20, 48)
    """
    if image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise ShapeError(f"the image must have the shape (H, W, 3) with H and W above 0, got {image.shape}")
    scale = min(height / image.shape[0], width / image.shape[1])
    return max(1, int(image.shape[0] * scale)), max(1, int(image.shape[1] * scale))


def preprocess_image_and_label(image: Image, target_width: int = 513, target_height: int = 513) -> Image:
    """Return an image that fills a size as far as its proportions allow, with values from -1 to 1; the rest is 0.

    Args:
        image: In RGB, values from 0 to 255. Shape (H, W, 3).
        target_width: Width of the result.
        target_height: Height of the result.

    Returns:
        The image of shape (target_height, target_width, 3) in float32.

    Raises:
        ShapeError: when the image has no pixels, or another number of axes or channels.

    Example:
        >>> from nn_core.models.semantic_segmentation.image_preprocess import preprocess_image_and_label
        >>> preprocess_image_and_label(np.full((1, 2, 3), 255, np.uint8), 4, 4)[..., 0].tolist()[1:3]
        [[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
    """
    scaled = resize(cast(image), fitting_size(image, target_height, target_width))
    return zero_mean_unit_range(pad(scaled, (target_height, target_width))).astype(np.float32)
