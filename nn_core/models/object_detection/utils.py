"""Images with borders for networks that find objects, and boxes drawn into images."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.data.images import resize_image
from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.errors import ArgumentError, ShapeError
from nn_core.models.object_detection.draw_utils import DrawBoundingBoxes

Image = np.ndarray[Any, Any]
#: Value of the borders.
_GREY = 127


@fitted
def letterbox(img_orig: Image, h: int, w: int) -> tuple[Image, int, int]:
    """Scale an image so that it fits, with its proportions, and put it on the middle of a grey one.

    Args:
        img_orig: Values from 0 to 255. Shape (height, width, 3).
        h: Height of the result.
        w: Width of the result.

    Returns:
        The image of shape (h, w, 3), and the width and the height of what is not border.

    Raises:
        ShapeError: when the image has another shape.

    Example:
        >>> from nn_core.models.object_detection import letterbox
        >>> image, width, height = letterbox(np.zeros((10, 20, 3), np.uint8), 32, 32)
        >>> image.shape, width, height
        ((32, 32, 3), 32, 16)
    """
    _require_image("letterbox", img_orig)
    height, width = img_orig.shape[:2]
    scale = min(w / width, h / height)
    new_w, new_h = max(1, int(width * scale)), max(1, int(height * scale))
    top, left = (h - new_h) // 2, (w - new_w) // 2
    image = np.full((h, w, 3), _GREY, np.uint8)
    image[top : top + new_h, left : left + new_w] = resize_image(img_orig, (new_w, new_h))
    return image, new_w, new_h


def apply_inverse_letterbox_coordinate_transform(
    bboxes: Image, im_w: int, im_h: int, letterbox_w: int, letterbox_h: int
) -> Image:
    """Boxes in parts of an image with borders, as parts of the image without.

    Args:
        bboxes: Centre x and y, width, height, and anything behind them. Shape (N, 4 + ...).
        im_w: Width of the original image.
        im_h: Height of the original image.
        letterbox_w: Width of the image with borders.
        letterbox_h: Height of the image with borders.

    Returns:
        New boxes of the same shape.

    Example:
        >>> from nn_core.models.object_detection.utils import apply_inverse_letterbox_coordinate_transform
        >>> apply_inverse_letterbox_coordinate_transform(np.array([[0.5, 0.5, 1.0, 0.5]]), 20, 10, 32, 32).tolist()
        [[0.5, 0.5, 1.0, 1.0]]
    """
    scale = min(letterbox_w / im_w, letterbox_h / im_h)
    parts = np.array([im_w * scale / letterbox_w, im_h * scale / letterbox_h])
    boxes = np.array(bboxes)
    boxes[..., :2] = (boxes[..., :2] - (1 - parts) / 2) / parts
    boxes[..., 2:4] /= parts
    return boxes


@fitted_methods()
class LetterBoxTransform:
    """An image with borders, and the way back for boxes that were found in it.

    Args:
        image: Values from 0 to 255. Shape (H, W, 3).
        height: Height of the image with borders.
        width: Width of the image with borders.

    Attributes:
        image: With borders. Shape (height, width, 3).

    Example:
        >>> from nn_core.models.object_detection import LetterBoxTransform
        >>> transform = LetterBoxTransform(np.zeros((10, 20, 3), np.uint8), 32, 32)
        >>> transform.inverse_coordinate_transform(np.array([[0.5, 0.25, 1.0, 0.5]])).tolist()
        [[0.5, 0.0, 1.0, 1.0]]
    """

    @fitted
    def __init__(self, image: Image, height: int, width: int) -> None:
        self.image, self.new_w, self.new_h = letterbox(image, height, width)
        self._sizes = (image.shape[1], image.shape[0], width, height)

    def inverse_coordinate_transform(self, coords: Image) -> Image:
        """Boxes in parts of the image with borders, as parts of the original image."""
        return apply_inverse_letterbox_coordinate_transform(coords, *self._sizes)


@fitted
def draw_bounding_boxes(
    img: Image,
    bboxes: Image,
    names: Sequence[str],
    colors: Sequence[tuple[int, int, int]] | None = None,
    thresh: float = 0.5,
) -> Image:
    """Draw found boxes into a copy of an image.

    Args:
        img: Values from 0 to 255. Shape (H, W, 3).
        bboxes: Centre x and y, width and height in parts of the image, objectness, a score for each name.
            Shape (N, 5 + names).
        names: Of the categories.
        colors: Red, green and blue from 0 to 255 for each category; None: colors of a wheel.
        thresh: Smaller scores are left out.

    Returns:
        The image. Shape (H, W, 3), uint8.

    Raises:
        ShapeError: when the image or the boxes have another shape.

    Example:
        >>> from nn_core.models.object_detection import draw_bounding_boxes
        >>> box = np.array([[0.5, 0.5, 0.5, 0.5, 1.0, 0.9]])
        >>> draw_bounding_boxes(np.zeros((64, 64, 3), np.uint8), box, ["cat"]).shape
        (64, 64, 3)
    """
    _require_image("draw_bounding_boxes", img)
    if np.ndim(bboxes) != 2 or np.shape(bboxes)[1] != 5 + len(names):
        raise ShapeError(f"draw_bounding_boxes: bboxes must have the shape (N, {5 + len(names)}), got {np.shape(bboxes)}")
    colors = _wheel(len(names)) if colors is None else colors
    if len(colors) < len(names):
        raise ArgumentError(f"draw_bounding_boxes: colors must be as many as names, {len(names)}, got {len(colors)}")
    drawing = DrawBoundingBoxes(img, colors)
    for box in bboxes:
        for category in np.flatnonzero(box[5:] > thresh).tolist():
            drawing.draw(box[:4], category, f"{names[category]}: {box[5 + category]:.0%}")
    return drawing.get()


def _wheel(n_colors: int) -> list[tuple[int, int, int]]:
    """Colors of different hues."""
    angles = 2 * np.pi * np.arange(n_colors) / max(n_colors, 1)
    levels = np.stack([127.5 + 127.5 * np.cos(angles - shift) for shift in (0, 2 * np.pi / 3, 4 * np.pi / 3)], axis=1)
    return [(int(r), int(g), int(b)) for r, g, b in levels]


def _require_image(function: str, image: Any) -> None:
    if np.ndim(image) != 3 or np.shape(image)[2] != 3 or 0 in np.shape(image):
        raise ShapeError(f"{function}: the image must have the shape (H, W, 3), got {np.shape(image)}")
