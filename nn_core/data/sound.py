"""Sound as arrays: WAV files by the standard library, other formats by the package soundfile."""

import wave
from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.data.backend_choice import LibraryChoice
from nn_core.errors import ArgumentError, FileFormatError, one_line
from nn_core.files.atomic import read_file, require_regular
from nn_core.files.entries import PathOrFile

Sound: TypeAlias = np.ndarray[Any, Any]

#: The dtype of samples, by their bytes; three bytes become four.
_DTYPES: Final[dict[int, np.dtype[Any]]] = {1: np.dtype(np.uint8), 2: np.dtype("<i2"), 4: np.dtype("<i4")}


class AudioUtilsBackendManager(LibraryChoice):
    """The choice between the standard library's wave and soundfile; None: the name of the file decides."""

    def __init__(self) -> None:
        super().__init__({"wave": "wave", "soundfile": "soundfile"})

    @property
    def module(self) -> Any:
        """The module of the chosen backend."""
        return import_module(self.backend or "wave")


MANAGER: Final = AudioUtilsBackendManager()


def read_sound(path: PathOrFile, channel_first: bool = False, raw_format_param: Mapping[str, int] | None = None) -> Sound:
    """Read a sound.

    Args:
        path: A path or, for WAV, a file open for reading.
        channel_first: Put the axis of the channels in front.
        raw_format_param: What a file called .raw, which has no header, does not say itself: ``sample_width`` in bytes (1, 2
            or 4), ``channels`` and ``frame_rate``; its numbers are in little-endian order. Other files say it themselves.

    Returns:
        Shape (samples, channels), or (channels, samples); uint8, int16 or int32, as the file has it. Other formats than WAV
        give int16.

    Raises:
        ArgumentError: when a file without a header is not described.
        FileFormatError: when the file is missing, damaged, or no sound.
    """
    name: Any = path if isinstance(path, (str, PathLike)) else getattr(path, "name", path)
    width, channels = _raw_format(path, raw_format_param)
    try:
        if isinstance(path, (str, PathLike)):
            require_regular(path)
        if width:
            return _laid_out(_from_bytes(read_file(name), width, channels), channel_first)
        samples = _read_wave(path) if _is_wave(path) else _read_other(path)
    except ImportError:
        raise
    except Exception as error:  # whatever a decoder does about damaged bytes
        raise FileFormatError(f"{name}: the file must be a sound, got: {one_line(error)}") from error
    return _laid_out(samples, channel_first)


def _laid_out(samples: Sound, channel_first: bool) -> Sound:
    return np.ascontiguousarray(samples.T) if channel_first else samples


def _raw_format(path: PathOrFile, given: Mapping[str, int] | None) -> tuple[int, int]:
    """Return the bytes of a number and the channels of a file without a header; zeros for other files."""
    if not isinstance(path, (str, PathLike)) or Path(path).suffix.lower() != ".raw":
        return 0, 0
    values = [(given or {}).get(key) for key in ("sample_width", "channels", "frame_rate")]
    width, channels, _ = values
    if not all(isinstance(value, int) and value > 0 for value in values) or width not in _DTYPES:
        raise ArgumentError(
            f"auread: raw_format_param must have sample_width (1, 2 or 4), channels and frame_rate of a .raw file, got {given}"
        )
    return int(width or 0), int(channels or 0)


def write_sound(path: PathOrFile, audio_arr: Sound, channel_first: bool = False, frame_rate: int = 48000) -> None:
    """Write a sound.

    Args:
        path: A path, whose extension names the format, or a file open for writing, which gets a WAV.
        audio_arr: Shape (samples,), (samples, channels) or, with `channel_first`, (channels, samples); uint8, int16 or int32.
        channel_first: The axis of the channels is in front.
        frame_rate: Samples a second.

    Raises:
        ArgumentError: when the dtype or the shape is another one.
    """
    samples = audio_arr[:, None] if audio_arr.ndim == 1 else audio_arr.T if channel_first else audio_arr
    if samples.dtype not in (np.uint8, np.int16, np.int32) or samples.ndim != 2:
        raise ArgumentError(
            "ausave: audio_arr must be uint8, int16 or int32 of shape (samples, channels), "
            f"got {audio_arr.dtype} {audio_arr.shape}"
        )
    if not _is_wave(path):
        _soundfile().write(path, samples, frame_rate)
        return
    with wave.open(str(path) if isinstance(path, PathLike) else path, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(samples.itemsize)
        file.setframerate(frame_rate)
        file.writeframes(np.ascontiguousarray(samples, _DTYPES[samples.itemsize]).tobytes())


def resize_sound(audio_arr: Sound, size: tuple[int, int], channel_first: bool = False) -> Sound:
    """Return a sound with other numbers of samples, by linear interpolation, and of channels.

    Args:
        audio_arr: Shape (samples, channels), or (channels, samples).
        size: Samples and channels. One channel is their mean; more are copies of one.
        channel_first: The axis of the channels is in front.

    Raises:
        ArgumentError: when channels cannot be mapped.
    """
    samples = audio_arr.T if channel_first else audio_arr
    length, channels = size
    if channels not in (samples.shape[1], 1) and samples.shape[1] != 1:
        raise ArgumentError(f"auresize: {samples.shape[1]} channels must become as many or one, got {channels}")
    places = np.linspace(0, len(samples) - 1, length)
    resized = np.stack([np.interp(places, np.arange(len(samples)), column) for column in samples.T], axis=1)
    if channels != resized.shape[1]:
        resized = resized.mean(axis=1, keepdims=True) if channels == 1 else np.repeat(resized, channels, axis=1)
    if samples.dtype.kind in "iu":
        resized = np.rint(resized)
    resized = resized.astype(samples.dtype)
    return np.ascontiguousarray(resized.T) if channel_first else resized


def _is_wave(path: PathOrFile) -> bool:
    if MANAGER.backend is not None:
        return MANAGER.backend == "wave"
    return not isinstance(path, (str, PathLike)) or Path(path).suffix.lower() in (".wav", ".wave")


def _read_wave(path: PathOrFile) -> Sound:
    with wave.open(str(path) if isinstance(path, PathLike) else path, "rb") as file:
        width, channels, count = file.getsampwidth(), file.getnchannels(), file.getnframes()
        content = file.readframes(count)
    if len(content) != width * channels * count:
        raise ValueError(f"{len(content)} bytes in place of {width * channels * count}: the file is truncated")
    if width == 3:  # widened at the lower end, so that the loudest sample stays the loudest
        padded = np.zeros((len(content) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(content, np.uint8).reshape(-1, 3)
        return padded.view(_DTYPES[4]).reshape(-1, channels).astype(np.int32)
    return _from_bytes(content, width, channels)


def _from_bytes(content: bytes, width: int, channels: int) -> Sound:
    values = np.frombuffer(content, _DTYPES[width]).reshape(-1, channels)
    return values.astype(values.dtype.newbyteorder("="))


def _read_other(path: PathOrFile) -> Sound:
    samples: Sound = _soundfile().read(path, dtype="int16", always_2d=True)[0]
    return samples


def _soundfile() -> Any:
    try:
        return import_module("soundfile")
    except ImportError as error:
        raise ImportError(
            f"sounds other than WAV: soundfile must be installed, got: {error}\n  hint: pip install soundfile"
        ) from error
