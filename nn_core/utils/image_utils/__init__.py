"""Read, write and resize images; see `nn_core.data.images`."""

from typing import TYPE_CHECKING

from nn_core.data.images import MANAGER
from nn_core.data.images import read_image as imread
from nn_core.data.images import resize_image as imresize
from nn_core.data.images import scale_to_range as minmax_auto_scale
from nn_core.data.images import write_image as imsave
from nn_core.engine.error_messages.attributes import submodules

imload = imread
imwrite = imsave

if not TYPE_CHECKING:  # so that checkers report names that do not exist
    __getattr__ = submodules(__name__)

__all__ = [
    "get_available_backends",
    "get_backend",
    "imload",
    "imread",
    "imresize",
    "imsave",
    "imwrite",
    "minmax_auto_scale",
    "set_backend",
]


def get_available_backends() -> list[str]:
    """Names of the backends whose library is installed: "PilBackend", "Cv2Backend"."""
    return MANAGER.get_available_backends()


def get_backend() -> str | None:
    """Name of the chosen backend; None: Pillow."""
    return MANAGER.backend


def set_backend(backend: str | None) -> None:
    """Choose a backend.

    Raises:
        ArgumentError: when its library is not installed, or there is none of the name.
    """
    MANAGER.backend = backend
