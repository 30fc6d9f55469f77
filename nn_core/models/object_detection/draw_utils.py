"""Boxes and labels drawn into images, by Pillow."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.data.images import library

#: Width of the lines of a box.
_LINE_PIXELS = 2


class DrawBoundingBoxes:
    """An image into which boxes are drawn.

    Args:
        img: Values from 0 to 255; it is copied. Shape (H, W, 3).
        colors: Red, green and blue from 0 to 255 for each category.

    Raises:
        ImportError: when Pillow is not installed.

    Example:
        >>> from nn_core.models.object_detection.draw_utils import DrawBoundingBoxes
        >>> drawing = DrawBoundingBoxes(np.zeros((32, 32, 3), np.uint8), [(255, 0, 0)])
        >>> drawing.draw([0.5, 0.5, 0.5, 0.5], 0, "cat")
        >>> drawing.get()[16, 8].tolist()
        [255, 0, 0]
    """

    def __init__(self, img: np.ndarray[Any, Any], colors: Sequence[tuple[int, int, int]]) -> None:
        self._image = library("PIL.Image", "pillow").fromarray(np.asarray(img, np.uint8))
        self._pen = library("PIL.ImageDraw", "pillow").Draw(self._image)
        self._colors = colors

    def draw(self, bbox: Sequence[float] | np.ndarray[Any, Any], det_ind: int, label: str) -> None:
        """Draw a box and its label.

        Args:
            bbox: Centre x and y, width and height, in parts of the image.
            det_ind: Number of the category, which has a color.
            label: Text above the box.
        """
        x, y, w, h = (float(value) for value in bbox[:4])
        width, height = self._image.size
        color = tuple(self._colors[det_ind])
        left, top, right, bottom = (x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height
        self._pen.rectangle((left, top, right, bottom), outline=color, width=_LINE_PIXELS)
        _, _, text_width, text_height = self._pen.textbbox((0, 0), label)
        above = max(0.0, top - text_height - _LINE_PIXELS)
        self._pen.rectangle((left, above, left + text_width, above + text_height), fill=color)
        self._pen.text((left, above), label, fill=(0, 0, 0) if sum(color) > 382 else (255, 255, 255))

    def get(self) -> np.ndarray[Any, Any]:
        """Return the image with all that was drawn. Shape (H, W, 3), uint8."""
        return np.array(self._image)
