"""Images as arrays: read, written and resized with Pillow, or with OpenCV if it is chosen.

Arrays are of shape (H, W) for one channel and (H, W, C) for more, or (C, H, W) with `channel_first`; sizes are (width,
height).
"""

from collections.abc import Callable
from importlib import import_module
from os import PathLike
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from nn_core.data.backend_choice import LibraryChoice
from nn_core.errors import ArgumentError, FileFormatError, one_line
from nn_core.files.atomic import require_regular
from nn_core.files.entries import PathOrFile

Image: TypeAlias = np.ndarray[Any, Any]
#: A path, or a file open for reading or writing.

#: Extensions of the files that are images.
IMAGE_EXTENSIONS: Final = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
#: Ways to compute pixels of another size.
INTERPOLATIONS: Final = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")


class ImageBackend(Protocol):
    """A library for images. Arrays are of 8 or 16 bits, with channels last, in the order red, green, blue, alpha."""

    def read(self, place: PathOrFile, mode: str) -> Image:
        """Read an image; `mode` is "L", "RGB", "RGBA", "" for that of the file, or "P" for the indices of a palette."""

    def write(self, place: PathOrFile, image: Image) -> None:
        """Write; the extension of a path names the format."""

    def resize(self, image: Image, size: tuple[int, int], interpolate: str) -> Image:
        """Return the image in another size, in its dtype: 8 or 16 bits, or float32."""


class PilBackend:
    """Pillow."""

    def read(self, place: PathOrFile, mode: str) -> Image:
        pillow = library("PIL.Image", "pillow")
        with pillow.open(place) as file:
            if mode == "P":
                mode = "P" if file.mode == "P" else ""
            if file.mode in ("I;16", "I;16B", "I") and mode in ("", "L"):
                values = np.asarray(file)
                if values.size and not 0 <= values.min() <= values.max() <= 65535:
                    raise ValueError(f"pixels of more than 16 bits, from {values.min()} to {values.max()}")
                return values.astype(np.uint16)
            if mode == "" and file.mode not in ("L", "RGB", "RGBA"):
                mode = "RGBA" if "transparency" in file.info or file.mode in ("LA", "PA") else "RGB"
            return np.asarray(file.convert(mode) if mode else file)

    def write(self, place: PathOrFile, image: Image) -> None:
        if image.dtype == np.uint16 and image.ndim == 3:
            raise ArgumentError(
                "imsave: an image with 16 bits and several channels must be written by OpenCV, got Pillow\n"
                "  hint: pip install opencv-python-headless, then set_backend('Cv2Backend')"
            )
        library("PIL.Image", "pillow").fromarray(image).save(place, format="PNG" if hasattr(place, "write") else None)

    def resize(self, image: Image, size: tuple[int, int], interpolate: str) -> Image:
        pillow = library("PIL.Image", "pillow")
        method = getattr(pillow.Resampling, interpolate.upper())
        if image.dtype == np.uint8:
            return np.asarray(pillow.fromarray(image).resize(size, method))
        planes = image if image.ndim == 3 else image[..., None]
        # Pillow has images of float32 with one channel only.
        images = [pillow.fromarray(plane.astype(np.float32)) for plane in np.moveaxis(planes, -1, 0)]
        stacked = np.stack([np.asarray(plane.resize(size, method)) for plane in images], -1)
        if image.dtype == np.uint16:
            stacked = np.clip(np.rint(stacked), 0, 65535)
        return stacked.reshape(stacked.shape[:2] + image.shape[2:]).astype(image.dtype)


class Cv2Backend:
    """OpenCV."""

    def read(self, place: PathOrFile, mode: str) -> Image:
        cv2 = library("cv2", "opencv-python-headless")
        content = place.read() if hasattr(place, "read") else np.fromfile(place, np.uint8)
        image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
        if image is None:
            raise ValueError("a file that OpenCV cannot read")
        given = {2: "L", 3: "RGB"}.get(image.ndim) if image.shape[-1] != 4 or image.ndim == 2 else "RGBA"
        codes = {
            ("L", "RGB"): cv2.COLOR_GRAY2RGB, ("L", "RGBA"): cv2.COLOR_GRAY2RGBA, ("RGB", "L"): cv2.COLOR_BGR2GRAY,
            ("RGBA", "L"): cv2.COLOR_BGRA2GRAY, ("RGB", "RGB"): cv2.COLOR_BGR2RGB, ("RGBA", "RGBA"): cv2.COLOR_BGRA2RGBA,
            ("RGB", "RGBA"): cv2.COLOR_BGR2RGBA, ("RGBA", "RGB"): cv2.COLOR_BGRA2RGB,
        }  # fmt: skip
        code = codes.get((str(given), mode if mode not in ("", "P") else str(given)))
        return image if code is None else cv2.cvtColor(image, code)

    def write(self, place: PathOrFile, image: Image) -> None:
        cv2 = library("cv2", "opencv-python-headless")
        if image.ndim == 3:
            image = cv2.cvtColor(image, cv2.COLOR_RGBA2BGRA if image.shape[2] == 4 else cv2.COLOR_RGB2BGR)
        extension = ".png" if hasattr(place, "write") else f".{str(place).rpartition('.')[2]}"
        content = cv2.imencode(extension, image)[1].tobytes()
        if hasattr(place, "write"):
            place.write(content)
            return
        with open(place, "wb") as file:  # noqa: PTH123  # any kind of path
            file.write(content)

    def resize(self, image: Image, size: tuple[int, int], interpolate: str) -> Image:
        cv2 = library("cv2", "opencv-python-headless")
        methods = {
            "nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC, "box": cv2.INTER_AREA,
            "lanczos": cv2.INTER_LANCZOS4,
        }  # fmt: skip
        if interpolate not in methods:
            raise ArgumentError(f"imresize: interpolate must be one of {', '.join(methods)} with OpenCV, got {interpolate!r}")
        resized: Image = cv2.resize(image, size, interpolation=methods[interpolate])
        return resized


#: The backends by name, with the module of each.
BACKENDS: Final[dict[str, tuple[str, Callable[[], ImageBackend]]]] = {
    "PilBackend": ("PIL", PilBackend),
    "Cv2Backend": ("cv2", Cv2Backend),
}


class ImageUtilsBackendManager(LibraryChoice):
    """The choice of the backend that reads and writes images; None is Pillow."""

    def __init__(self) -> None:
        super().__init__({name: module for name, (module, _) in BACKENDS.items()}, "none is: pip install pillow")

    def get(self) -> ImageBackend:
        """Return the chosen backend."""
        return BACKENDS[self.backend or "PilBackend"][1]()


MANAGER: Final = ImageUtilsBackendManager()


def read_image(
    path: PathOrFile,
    grayscale: bool = False,
    size: tuple[int, int] | None = None,
    interpolate: str = "bilinear",
    channel_first: bool = False,
    as_uint16: bool = False,
    num_channels: int = -1,
    return_palette_indices: bool = False,
) -> Image:
    """Read an image.

    Args:
        path: A path, or a file open for reading.
        grayscale: Convert to one channel.
        size: Width and height to resize to.
        interpolate: One of `INTERPOLATIONS`.
        channel_first: Put the axis of the channels in front.
        as_uint16: Give 16 bits; an image of 8 bits is scaled by 257.
        num_channels: 0 or 1: grey, without an axis of channels; 3 or 4: colours, without or with alpha; -1: those of the file.
            With `grayscale` the grey values are repeated in so many channels; 0 and -1: no axis of channels.
        return_palette_indices: Give the indices of an image with a palette, shape (H, W), unless `grayscale` or `num_channels`
            asks for colours. Needs Pillow; OpenCV gives the colours.

    Returns:
        Shape (H, W) of grey images, else (H, W, C) or (C, H, W); dtype uint8, or uint16.

    Raises:
        FileFormatError: when the file is missing, damaged, or no image.
        ArgumentError: when an argument has a value that it cannot have.
    """
    modes = {-1: "P" if return_palette_indices else "", 0: "L", 1: "L", 3: "RGB", 4: "RGBA"}
    if num_channels not in modes:
        raise ArgumentError(f"imread: num_channels must be one of -1, 0, 1 (grey), 3, 4 (colours), got {num_channels}")
    image = _decoded(path, "L" if grayscale else modes[num_channels])
    if size is not None:
        image = resize_image(image, size, interpolate)
    if grayscale and num_channels > 0:
        image = np.repeat(image[..., None], num_channels, axis=-1)
    if as_uint16 and image.dtype == np.uint8:
        image = image.astype(np.uint16) * np.uint16(257)
    elif not as_uint16 and image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    return _channels_first(image) if channel_first else image


def read_stored_image(path: PathOrFile) -> Image:
    """Read an image as it is stored: shape (C, H, W), with 8 or 16 bits.

    Raises:
        FileFormatError: when the file is missing, damaged, or no image.
    """
    image = _decoded(path, "")
    return _channels_first(image) if image.ndim == 3 else image[None]


def _decoded(path: PathOrFile, mode: str) -> Image:
    try:
        if isinstance(path, (str, PathLike)):
            require_regular(path)
        return MANAGER.get().read(path, mode)
    except (ArgumentError, ImportError, MemoryError):
        raise
    except Exception as error:  # whatever a decoder does about damaged bytes
        raise FileFormatError(f"{getattr(path, 'name', path)}: the file must be an image, got: {one_line(error)}") from error


def write_image(
    path: PathOrFile, img: Image, channel_first: bool = False, as_uint16: bool = False, auto_scale: bool = True
) -> None:
    """Write an image.

    Args:
        path: A path whose extension names the format, or a file open for writing, which gets a PNG.
        img: Shape (H, W), (H, W, C) or, with `channel_first`, (C, H, W); 8 or 16 bits, or numbers from 0 to 1.
        channel_first: The axis of the channels is in front.
        as_uint16: Write 16 bits.
        auto_scale: Scale numbers to the range of the integers; integers to another number of bits.

    Raises:
        ArgumentError: when the values do not fit into the range, or the shape is that of no image.
    """
    if img.ndim not in (2, 3) or (img.ndim == 3 and img.shape[0 if channel_first else 2] not in (1, 2, 3, 4)):
        raise ArgumentError(f"imsave: img must have the shape (height, width), or up to 4 channels, got {img.shape}")
    image = np.moveaxis(img, 0, -1) if channel_first and img.ndim == 3 else img
    image = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    wanted = np.uint16 if as_uint16 else np.uint8
    if image.dtype != wanted:
        if not auto_scale:
            raise ArgumentError(f"imsave: img must be of {np.dtype(wanted)} without auto_scale, got {image.dtype}")
        image = scale_to_range(image, as_uint16)
    MANAGER.get().write(path, np.ascontiguousarray(image))


def resize_image(img: Image, size: tuple[int, int], interpolate: str = "bilinear", channel_first: bool = False) -> Image:
    """Return an image in another size.

    Args:
        img: Shape (H, W), (H, W, C) or (C, H, W); 8 or 16 bits, or floating point.
        size: Width and height.
        interpolate: One of `INTERPOLATIONS`.
        channel_first: The axis of the channels is in front.

    Returns:
        The resized image, of the dtype of `img`.
    """
    if interpolate not in INTERPOLATIONS:
        raise ArgumentError(f"imresize: interpolate must be one of {', '.join(INTERPOLATIONS)}, got {interpolate!r}")
    if len(size) != 2 or min(size) < 1:
        raise ArgumentError(f"imresize: size must be a positive width and height, got {size}")
    image = np.moveaxis(img, 0, -1) if channel_first and img.ndim == 3 else img
    dtype = image.dtype if image.dtype in (np.uint8, np.uint16) else np.dtype(np.float32)
    squeezed = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    resized = MANAGER.get().resize(np.ascontiguousarray(squeezed, dtype), (int(size[0]), int(size[1])), interpolate)
    resized = resized.reshape(resized.shape[:2] + image.shape[2:]).astype(img.dtype, copy=False)
    return _channels_first(resized) if channel_first else resized


def scale_to_range(img: Image, as_uint16: bool) -> Image:
    """Values as integers of 8 or 16 bits: integers from the range of their own dtype, numbers from that of 0 to 1.

    Raises:
        ArgumentError: when numbers are outside of 0 to 1.
    """
    top = 65535 if as_uint16 else 255
    values = img.astype(np.float64)
    if img.dtype in (np.uint8, np.uint16):
        values /= np.iinfo(img.dtype).max
    elif not bool(((values >= 0) & (values <= 1)).all()):
        raise ArgumentError(
            "imsave: img must be of uint8 or uint16, or numbers from 0 to 1, "
            f"got {img.dtype} from {values.min()} to {values.max()}"
        )
    return (values * top).astype(np.uint16 if as_uint16 else np.uint8)


def _channels_first(image: Image) -> Image:
    return np.ascontiguousarray(np.moveaxis(image, -1, 0)) if image.ndim == 3 else image


def library(module: str, package: str) -> Any:
    """Return a module of `package`, or an ImportError with the line that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"images: {package} must be installed, got: {error}\n  hint: pip install {package}") from error
