"""Read values of files by their extensions, as the cells of tables are read."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.data.images import IMAGE_EXTENSIONS, read_image, read_stored_image, resize_image
from nn_core.data.readers import known_extensions, normalized, read_array, read_table, reader_of
from nn_core.data.sound import read_sound
from nn_core.data.uri import FileReader, ResourceFileReader
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.files.entries import PathOrFile
from nn_core.utils.download import download, get_data_home

__all__ = [
    "FileReader",
    "ResourceFileReader",
    "download",
    "get_data_home",
    "get_file_extension",
    "load",
    "load_audio",
    "load_audio_pydub",
    "load_csv",
    "load_image",
    "load_image_imread",
    "load_npy",
    "load_wav",
]

#: Whether sound can be read by pydub.
pydub_available: Final = find_spec("pydub") is not None

Array = np.ndarray[Any, Any]
#: A path, or a file open for reading.

#: Extensions of sounds that the package soundfile reads.
_SOUND_EXTENSIONS: Final = (".flac", ".ogg", ".mp3")


def get_file_extension(source: PathOrFile) -> str:
    """Return the extension of a path, or of the name of an open file, in lower case with its dot; "" when there is none."""
    name = source if isinstance(source, (str, PathLike)) else getattr(source, "name", "")
    return Path(fspath(name)).suffix.lower() if isinstance(name, (str, PathLike)) else ""


def load(ext: str) -> Callable[..., Array]:
    """Return the function that loads files with an extension, such as ".png": ``function(file, shape=None, normalize=False)``.

    Raises:
        ArgumentError: when nothing loads them.

    Example:
        >>> load(".npy").__name__
        'load_npy'
    """
    known = _load_functions.get(ext.lower())
    if known is not None:
        return known
    reader = reader_of(ext.lower())
    if reader is None:
        extensions = ", ".join([*known_extensions(), *_SOUND_EXTENSIONS])
        raise ArgumentError(f"load: ext must be one of {extensions}, got {ext!r}")
    return lambda file, shape=None, normalize=False: _loaded(reader, file, shape, normalize)


def load_npy(path: PathOrFile, shape: Sequence[int] | None = None, normalize: bool = False) -> Array:
    """Load an array of NumPy.

    Args:
        path: A path, or a file open for reading.
        shape: Shape of the result, which has as many elements.
        normalize: Divide integers of 8 or 16 bits without a sign by their largest value.

    Raises:
        FileFormatError: when the file is missing or damaged.
        ArgumentError: when the elements do not fit `shape`.
    """
    return _loaded(read_array, path, shape, normalize)


def load_csv(file: PathOrFile, shape: Sequence[int] | None = None, normalize: bool = False) -> Array:
    """Load the numbers of a table without a header, in float32, a row for each line; see `load_npy` for the arguments."""
    return _loaded(read_table, file, shape, normalize)


def load_wav(path: PathOrFile, shape: Sequence[int] | None = None, normalize: bool = False) -> Array:
    """Load a WAV file, of shape (samples, channels); see `load_npy` for the arguments."""
    return _loaded(read_sound, path, shape, normalize)


def load_audio(file: PathOrFile, shape: Sequence[int] | None = None, normalize: bool = False) -> Array:
    """Load a sound, of shape (samples, channels): WAV, or other formats by the package soundfile; see `load_npy`."""
    return _loaded(read_sound, file, shape, normalize)


def load_audio_pydub(path: PathOrFile, shape: Sequence[int] | None = None, normalize: bool = False) -> Array:
    """Load a sound by the package pydub, of shape (samples, channels), in the integers that it has; see `load_npy`.

    Raises:
        ImportError: when pydub is not installed.
    """
    return _loaded(_read_by_pydub, path, shape, normalize)


def load_image(file: PathOrFile, shape: Sequence[int] | None = None, normalize: bool = False) -> Array:
    """Load an image of shape (C, H, W), with 8 or 16 bits as it is stored.

    Args:
        file: A path, or a file open for reading.
        shape: Channels, height and width to convert to; 1, 3 or 4 channels.
        normalize: Give numbers from 0 to 1 in float32.

    Raises:
        FileFormatError: when the file is missing, damaged, or no image.
        ArgumentError: when `shape` is not that of an image.
    """
    image = read_stored_image(file) if shape is None else _converted(file, shape)
    return normalized(image) if normalize else image


def load_image_imread(file: PathOrFile, shape: Sequence[int] | None = None, max_range: float = 1.0) -> Array:
    """Load an image of shape (C, H, W) as numbers from 0 to `max_range`, in float32; see `load_image` for `shape`."""
    scaled: Array = load_image(file, shape, normalize=True) * np.float32(max_range)
    return scaled


def _converted(file: PathOrFile, shape: Sequence[int]) -> Array:
    if len(shape) != 3 or shape[0] not in (1, 3, 4) or min(shape) < 1:
        raise ArgumentError(f"load_image: shape must be 1, 3 or 4 channels, a height and a width, got {tuple(shape)}")
    channels, height, width = shape
    image = read_image(file, num_channels=channels, channel_first=True)
    image = image if image.ndim == 3 else image[None]
    if image.shape[1:] == (height, width):
        return image
    resized = resize_image(np.moveaxis(image, 0, -1) if channels > 1 else image[0], (width, height))
    return np.ascontiguousarray(np.moveaxis(resized, -1, 0)) if channels > 1 else resized[None]


def _loaded(reader: Callable[[Any], Array], place: PathOrFile, shape: Sequence[int] | None, normalize: bool) -> Array:
    name = getattr(place, "name", place)
    try:
        values = reader(place)
    except (OSError, ValueError, TypeError, OverflowError, EOFError) as error:
        text = str(error).removeprefix(f"{name}: ")
        raise FileFormatError(f"{name}: the file must hold an array, got: {text}") from error
    if shape is not None:
        if values.size != np.prod(shape, dtype=np.int64):
            raise ArgumentError(f"{name}: shape must have the {values.size} elements of the file, got {tuple(shape)}")
        values = values.reshape(tuple(shape))
    return normalized(values) if normalize else values


def _read_by_pydub(place: PathOrFile) -> Array:
    try:
        pydub = import_module("pydub")
    except ImportError as error:
        raise ImportError(f"load_audio_pydub: pydub must be installed, got: {error}\n  hint: pip install pydub") from error
    segment = pydub.AudioSegment.from_file(place)
    return np.array(segment.get_array_of_samples()).reshape(-1, segment.channels)


#: The loaders of files by their extensions, under the name that programs of NNabla read.
_load_functions: Final[dict[str, Callable[..., Array]]] = {
    ".npy": load_npy,
    ".csv": load_csv,
    ".wav": load_wav,
    **dict.fromkeys(IMAGE_EXTENSIONS, load_image),
    **dict.fromkeys(_SOUND_EXTENSIONS, load_audio),
}
