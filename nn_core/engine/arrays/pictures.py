"""Values as pictures, by matplotlib."""

from importlib import import_module
from os import PathLike
from typing import Any, Final

import numpy as np

from nn_core.errors import ArgumentError, PluginError, ShapeError

_COLUMNS: Final = 8
_MAX_IMAGES: Final = 64


def plotting(what: str, module: str) -> Any:
    """Return a module of matplotlib, which is an extra.

    Raises:
        PluginError: when it is not installed; `what` is the function that needs it.
    """
    try:
        import_module("matplotlib")
        return import_module(module)
    except ImportError as error:
        raise PluginError(
            f"{what}: matplotlib must be installed, got: {error}\n  hint: pip install 'nn-core[plots]'"
        ) from error


def show_images(values: np.ndarray[Any, Any], path: "str | PathLike[str] | None") -> None:
    """Show what `images_of` finds, eight in a row, in a window or notebook; or write it to the file `path`.

    Images of one channel share a grey scale and its bar. Colours are from 0 to 1, or from 0 to 255 where they are integers.
    """
    if not (path is None or isinstance(path, (str, PathLike))):
        raise ArgumentError(f"show: path must be a string or a path, got {type(path).__name__}")
    images = images_of(values)
    pyplot = plotting("show", "matplotlib.pyplot")
    n_columns = min(len(images), _COLUMNS)
    n_rows = -(-len(images) // n_columns)
    side = 4.0 if len(images) == 1 else 1.3
    size = (side * n_columns + 0.8, side * n_rows)
    figure, places = pyplot.subplots(n_rows, n_columns, squeeze=False, figsize=size, layout="constrained")
    low, high = float(np.min(images)), float(np.max(images))
    drawn: Any = None
    for place, image in zip(places.flat, images, strict=False):
        drawn = place.imshow(image, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    for place in places.flat:
        place.axis("off")
    if images.ndim == 3:
        figure.colorbar(drawn, ax=places, label="value")
    if path is None:
        pyplot.show()
        return
    try:
        figure.savefig(path)
    except ValueError as error:
        raise ArgumentError(f"show: path must have a known format such as .png, got {path!s}: {error}") from error
    finally:
        pyplot.close(figure)


def images_of(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the images of an array, in grey of shape (N, H, W) or in colour of shape (N, H, W, 3).

    Args:
        values: Shape (H, W), (N, H, W), (1 or 3, H, W) or (N, 1 or 3, H, W).

    Raises:
        ShapeError: for other shapes.
        ArgumentError: for more than 64 images, and values that are not finite.
    """
    images = _stacked(values)
    if len(images) > _MAX_IMAGES:
        raise ArgumentError(
            f"show: there must be at most {_MAX_IMAGES} images, got {len(images)}\n  hint: x[:{_MAX_IMAGES}].show()"
        )
    is_whole = images.dtype.kind in "iub"
    images = images.astype(np.float64)
    if not np.isfinite(images).all():
        raise ArgumentError("show: values must be finite, got NaN or an infinity")
    if images.ndim == 3 or images.shape[1] == 1:
        return images.reshape(len(images), *images.shape[-2:])
    return np.clip(images.transpose(0, 2, 3, 1) / (255 if is_whole else 1), 0, 1)


def _stacked(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same values with shape (N, H, W) or (N, C, H, W)."""
    images = values[np.newaxis] if values.ndim == 2 or (values.ndim == 3 and values.shape[0] in (1, 3)) else values
    if not values.size or not (images.ndim == 3 or (images.ndim == 4 and images.shape[1] in (1, 3))):
        raise ShapeError(
            "show: images must have the shape (H, W), (N, H, W), (C, H, W) or (N, C, H, W) with 1 or 3 channels C, "
            f"got {values.shape}"
        )
    return images
