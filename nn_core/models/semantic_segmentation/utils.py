"""Images for networks of semantic segmentation, and pictures of what they give."""

from typing import Any, Final

import numpy as np

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.errors import ArgumentError, ShapeError
from nn_core.models.semantic_segmentation.image_preprocess import fitting_size, preprocess_image_and_label
from nn_core.utils.image_utils import imsave

Image = np.ndarray[Any, Any]
#: Categories of PASCAL VOC; behind them a color for pixels that are none, and black.
_CATEGORIES: Final = 21
_FURTHER: Final = ((224, 224, 192), (0, 0, 0))


def get_color() -> Image:
    """Colors of the categories of PASCAL VOC, then one for pixels that are none, and black; values from 0 to 255.

    Returns:
        Red, green and blue of each. Shape (23, 3).

    Example:
        >>> from nn_core.models.semantic_segmentation.utils import get_color
        >>> get_color()[:3].tolist()
        [[0, 0, 0], [128, 0, 0], [0, 128, 0]]
    """
    # Every third bit of a number belongs to one color, the lowest ones of the number to the highest bits of the color.
    bits = (np.arange(_CATEGORIES)[:, None, None] >> (np.arange(3)[:, None] + 3 * np.arange(3))) & 1
    colors = (bits << (7 - np.arange(3))).sum(axis=-1)
    return np.concatenate([colors, np.array(_FURTHER)])


def pre_process_image(image: Image, target_h: int, target_w: int) -> Image:
    """Return an image as a network takes it: scaled to fit, values from -1 to 1, the rest 0.

    Args:
        image: In RGB, values from 0 to 255. Shape (H, W, 3).
        target_h: Height of the result.
        target_w: Width of the result.

    Returns:
        The image of shape (1, 3, target_h, target_w) in float32.

    Raises:
        ShapeError: when the image has another number of axes or channels.

    Example:
        >>> from nn_core.models.semantic_segmentation.utils import pre_process_image
        >>> pre_process_image(np.zeros((20, 30, 3), np.uint8), 65, 97).shape
        (1, 3, 65, 97)
    """
    return np.ascontiguousarray(preprocess_image_and_label(image, target_w, target_h).transpose(2, 0, 1)[None])


def post_process_image(output: Image, image: Image, target_size: tuple[int, int]) -> Image:
    """Return the categories of the pixels of an image, from those of the scaled one.

    Args:
        output: Category of each pixel, shape `target_size`, or scores, shape (categories, *target_size).
        image: The image before it was scaled. Shape (H, W, 3).
        target_size: Height and width for which the image was scaled.

    Returns:
        The category of each pixel, in the dtype of `output` (int64 for scores). Shape (H, W).

    Raises:
        ShapeError: when `output` has another shape.

    Example:
        >>> from nn_core.models.semantic_segmentation.utils import post_process_image
        >>> post_process_image(np.full((8, 8), 3), np.zeros((2, 4, 3), np.uint8), (8, 8)).tolist()
        [[3, 3, 3, 3], [3, 3, 3, 3]]
    """
    output = np.asarray(output)
    labels = output.argmax(axis=0) if output.ndim == 3 else output
    if labels.shape != tuple(target_size):
        size = tuple(target_size)
        raise ShapeError(f"post_process: output must have the shape {size} or (categories, *{size}), got {output.shape}")
    height, width = fitting_size(image, *target_size)
    rows, columns = (
        np.minimum(np.floor((np.arange(new) + 0.5) * old / new).astype(int), old - 1)
        for new, old in zip(image.shape[:2], (height, width), strict=True)
    )
    return labels[np.ix_(rows, columns)]


def save_image(image_path: str, label: Image, color_map: Any = None) -> None:
    """Draw the categories of pixels in colors.

    Args:
        image_path: File to write.
        label: Category of each pixel. Shape (H, W).
        color_map: Red, green and blue of each category: integers from 0 to 255, or numbers from 0 to 1. None: `get_color()`.

    Raises:
        ArgumentError: when a category has no color.

    Example:
        >>> from nn_core.models.semantic_segmentation.utils import save_image
        >>> save_image("labels.png", np.array([[0, 1], [2, 3]]))
    """
    colors = get_color() if color_map is None else np.asarray(color_map)
    if colors.dtype.kind == "f" and colors.size and colors.max() <= 1:
        colors = np.rint(colors * 255)
    label = np.asarray(label).astype(int)
    if label.ndim != 2 or colors.ndim != 2 or colors.shape[1] != 3:
        raise ArgumentError(
            f"save_image: label must have the shape (H, W) and color_map (categories, 3), got {label.shape} and {colors.shape}"
        )
    if label.size and not 0 <= label.min() <= label.max() < len(colors):
        raise ArgumentError(f"save_image: categories must be below the {len(colors)} of color_map, got {label.max()}")
    imsave(image_path, colors.astype(np.uint8)[label])


@fitted_methods()
class ProcessImage:
    """An image on its way into a network and back.

    Args:
        image: In RGB, values from 0 to 255. Shape (H, W, 3).
        target_h: Height of the images of the network.
        target_w: Width of the images of the network.

    Example:
        >>> from nn_core.models.semantic_segmentation import ProcessImage
        >>> process = ProcessImage(np.zeros((20, 30, 3), np.uint8), 65, 97)
        >>> process.pre_process().shape
        (1, 3, 65, 97)
        >>> process.post_process(np.zeros((21, 65, 97))).shape
        (20, 30)
    """

    @fitted
    def __init__(self, image: Image, target_h: int, target_w: int) -> None:
        self.image = image
        self.target_h, self.target_w = target_h, target_w
        self.target_size = (target_h, target_w)
        self.post_processed: Image | None = None

    def pre_process(self) -> Image:
        """Return the image as the network takes it; see `pre_process_image`."""
        return pre_process_image(self.image, self.target_h, self.target_w)

    def post_process(self, output: Image) -> Image:
        """Return the category of each pixel of the image; see `post_process_image`."""
        self.post_processed = post_process_image(output, self.image, self.target_size)
        return self.post_processed

    def save_segmentation_image(self, path: str, color_map: Any = None) -> None:
        """Draw what `post_process` gave last; see `save_image`.

        Raises:
            ArgumentError: when it was not called before.
        """
        if self.post_processed is None:
            raise ArgumentError("save_segmentation_image: post_process must be called before, got no result of it")
        save_image(path, self.post_processed, color_map)
