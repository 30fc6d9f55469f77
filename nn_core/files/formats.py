"""The formats of files by extension: those of the core, and those of plugins."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np

from nn_core.engine.dispatch.exception_text import message_of
from nn_core.engine.dispatch.missing import absence
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.errors import ArgumentError, DTypeError, FileFormatError, PluginError, quoted
from nn_core.files.atomic import atomic_writer, open_to_read, remove_leftovers
from nn_core.files.budgets import budget
from nn_core.files.entries import Entries, Entry, PathOrFile, is_number
from nn_core.files.hdf5 import read_hdf5, write_hdf5
from nn_core.files.npz import read_npz, write_npz
from nn_core.files.pytorch import read_pytorch
from nn_core.files.safetensors import read_safetensors, write_safetensors

#: The attribute of arrays whose dtype NumPy lacks; files hold them as float32 with the same values.
_DTYPE: Final = "dtype"
_BFLOAT16: Final = "bfloat16"
#: Characters that the names of some formats cannot have.
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")
_NAMES: Final = "names must have parts between slashes that are neither empty nor . nor .., without NUL and lone surrogates"


def extension_of(function: str, target: PathOrFile, extension: str | None) -> str:
    """Return the extension that says the format: that of a path; `extension` for an open file, or a path that has none.

    Raises:
        ArgumentError: when it is that of no format, is missing, or `extension` contradicts the path.
    """
    given = None if extension is None else extension.lower()
    own = Path(target).suffix.lower() if isinstance(target, (str, os.PathLike)) else ""
    _require_target(function, target)
    if not own and given is None:
        is_path = isinstance(target, (str, os.PathLike))
        what = "the path must have an extension" if is_path else "extension must be given together with an open file"
        raise ArgumentError(f"{function}: {what}, got none\n  hint: the formats are {_listed_formats()}")
    chosen = own or given or ""
    if _format(chosen) is None:
        raise _unknown(function, chosen)
    if given is not None and given != chosen:
        raise ArgumentError(f"{function}: extension must be that of the path, {chosen!r}, or be left out, got {given!r}")
    return chosen


def written_extension(function: str, target: PathOrFile, extension: str | None) -> str:
    """Return the extension of a file that is to be written, as `extension_of`.

    Raises:
        ArgumentError: as `extension_of`, and when files of the format are only read.
    """
    chosen = extension_of(function, target, extension)
    offer = None if chosen in FORMATS else PLUGINS.offer("file_formats", chosen)
    if chosen not in FORMATS and getattr(offer and offer.info, "write", None) is None:
        raise _only_read(function, chosen)
    return chosen


def _only_read(function: str, extension: str) -> ArgumentError:
    return ArgumentError(
        f"{function}: the format must be one in which parameters are written, got {extension!r}, which is only read\n"
        "  hint: .h5, .npz and .safetensors hold parameters; nn_core.utils.save.save and extensions write networks"
    )


def _require_target(function: str, target: object) -> None:
    """Refuse what is neither a path nor an open file."""
    if not isinstance(target, (str, os.PathLike)) and not hasattr(target, "read") and not hasattr(target, "write"):
        raise ArgumentError(f"{function}: path must be a text, a Path or an open file, got {described(target)}")


def _unknown(function: str, extension: str) -> ArgumentError:
    """Return the error for the extension of no format, with its cause where a plugin failed that may have it."""
    failed, cause = absence(PLUGINS, ("file_formats",), extension)
    hint = failed if cause or (failed and extension not in _PACKAGES) else f"\n  hint: {_hint_for_unknown(extension)}"
    error = ArgumentError(f"{function}: the extension must be one of {_listed_formats()}, got {extension!r}{hint}")
    error.__cause__ = cause
    return error


def _hint_for_unknown(extension: str) -> str:
    """Say how files with the extension of no format could be read."""
    if extension in _PACKAGES:
        return f"pip install {_PACKAGES[extension]}"
    return "other formats come from plugins; install the package that wrote the file"


@fitted
def write_entries(target: PathOrFile, entries: Mapping[str, Entry], extension: str) -> None:
    """Write `entries` to `target` in the format of `extension`, atomically.

    Partial files that killed processes left in the folder of `target` are removed.

    Args:
        target: Path, or an open binary file.
        entries: The arrays by name.
        extension: Format: ".h5", ".npz", ".safetensors", or that of a plugin.

    Raises:
        ArgumentError: when no format has the extension, one of `entries` is not an `Entry`, or a name is one that some format
            cannot hold: empty or with an empty part between slashes, with a part ``.`` or ``..``, a NUL or a lone surrogate.
        DTypeError: when an array holds something else than booleans, integers and floating-point numbers.
        MissingFileError: when the folder does not exist.

    Example:
        >>> from nn_core.files import Entry, write_entries
        >>> write_entries("arrays.safetensors", {"mean": Entry(np.zeros(3))}, ".safetensors")
    """
    stored = {name: _stored(name, entry) for name, entry in entries.items()}
    write = _known_format(extension).write
    if isinstance(target, (str, os.PathLike)):
        remove_leftovers(Path(target).parent)
    with atomic_writer(target, sum(entry.values.nbytes for entry in stored.values())) as file:
        write(file, stored)


@fitted
def read_entries(source: PathOrFile, extension: str) -> Entries:
    """Read all entries of `source`; a damaged or foreign file gives a FileFormatError that names it.

    Args:
        source: Path, or an open binary file.
        extension: Format: ".h5", ".npz", ".safetensors", or that of a plugin.

    Raises:
        MissingFileError: when there is no such file.
        FileFormatError: when the file is damaged or of another format.

    Example:
        >>> from nn_core.files import Entry, read_entries, write_entries
        >>> write_entries("arrays.npz", {"mean": Entry(np.zeros(3), {"count": 10})}, ".npz")
        >>> entries = read_entries("arrays.npz", ".npz")
        >>> entries["mean"].values, entries["mean"].attributes
        (array([0., 0., 0.]), {'count': 10})
    """
    if isinstance(source, (str, os.PathLike)):
        with open_to_read(source) as file:
            return _read(file, extension, os.fspath(source))
    return _read(source, extension, getattr(source, "name", "the file"))


def _stored(name: str, entry: Entry) -> Entry:
    """Return an entry as files hold it."""
    if not isinstance(entry, Entry):
        raise ArgumentError(f"write_entries: entries must hold Entry by name, got {described(entry)} as {name!r}")
    if not _is_name(name):
        raise ArgumentError(f"write_entries: {_NAMES}, got {name!r}")
    dtype = entry.values.dtype
    if dtype.name == _BFLOAT16:
        bits = np.asarray(entry.values, order="C").view(np.uint16)  # the upper half of float32
        wide = (bits.astype(np.uint32) << 16).view(np.float32)
        return Entry(wide, {**entry.attributes, _DTYPE: _BFLOAT16}, entry.group)
    if not is_number(dtype):
        raise DTypeError(f"array {name} must hold plain numbers, got {dtype}")
    return entry


def _is_name(name: str) -> bool:
    return {"", ".", ".."}.isdisjoint(name.split("/")) and not _UNFIT.search(name)


def _require_names(names: Iterable[str]) -> None:
    """Refuse names in a file that no format could hold, or that are scopes inside each other beyond the budget."""
    for name in names:
        if not _is_name(name):
            raise FileFormatError(f"{_NAMES}, got {quoted(name)}")
        budget().require("depth", name.count("/") + 1, f"the parts of the name {quoted(name)}")


def _restored(entry: Entry) -> Entry:
    """Return an entry as it was given to `write_entries`; bfloat16 stays float32 where ml_dtypes is not installed."""
    if entry.attributes.get(_DTYPE) != _BFLOAT16 or entry.values.dtype != np.float32:
        return entry
    attributes = {key: value for key, value in entry.attributes.items() if key != _DTYPE}
    with suppress(ImportError):
        import ml_dtypes

        bits = np.asarray(entry.values, order="C").view(np.uint32) >> 16
        return Entry(bits.astype(np.uint16).view(ml_dtypes.bfloat16), attributes, entry.group)
    return Entry(entry.values, attributes, entry.group, entry.is_own)


def _read(file: IO[bytes], extension: str, name: str) -> Entries:
    read = _known_format(extension).read
    try:
        entries = read(file)
        _require_names(entries)
        return {key: _restored(entry) if _DTYPE in entry.attributes else entry for key, entry in entries.items()}
    except FileFormatError as error:
        raise FileFormatError(f"{name}: {error}") from error.__cause__
    except (MemoryError, PluginError):
        raise
    except Exception as error:  # parsers meet bytes that nobody has checked, and raise whatever comes up
        told = " ".join(message_of(error).split())  # a line end could begin a hint of its own
        raise FileFormatError(f"{name}: the file must be whole and in the format {extension}, got: {told}") from error


@dataclass(frozen=True, slots=True)
class Format:
    """The writer and the reader of a format."""

    write: Callable[[IO[bytes], Mapping[str, Entry]], None]
    read: Callable[[IO[bytes]], Entries]


FORMATS: Final[Mapping[str, Format]] = {
    ".h5": Format(write_hdf5, read_hdf5),
    ".npz": Format(write_npz, read_npz),
    ".safetensors": Format(write_safetensors, read_safetensors),
}


#: Formats of others that are only read: files of PyTorch.
READ_ONLY: Final[Mapping[str, Callable[[IO[bytes]], Entries]]] = dict.fromkeys((".pth", ".pt", ".ckpt", ".bin"), read_pytorch)
#: The packages that bring formats of ours, by format, to name them where they are not installed.
_PACKAGES: Final = {
    **dict.fromkeys((".nnp", ".nnb", ".nntxt", ".prototxt", ".protobuf", ".pb"), "nn-ext-nnp"),
    ".onnx": "nn-ext-onnx",
}


def _format(extension: str) -> Format | None:
    """Return the format of an extension, of the core or of a plugin."""
    if extension in FORMATS:
        return FORMATS[extension]
    offer = PLUGINS.offer("file_formats", extension)
    if offer is None:
        return Format(_unwritten(extension), READ_ONLY[extension]) if extension in READ_ONLY else None

    def write(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
        if getattr(offer.info, "write", None) is None:
            _unwritten(extension)(file, entries)
        with offer.called("write"):
            PLUGINS.offers.load(offer, "write")(file, entries)

    def read(file: IO[bytes]) -> Entries:
        with offer.called("read"):
            found = PLUGINS.offers.load(offer, "read")(file)
        if not isinstance(found, Mapping) or not all(type(k) is str and isinstance(e, Entry) for k, e in found.items()):
            raise PluginError(f"{offer.label}: read() must return {{name: Entry}}, got {type(found).__name__}")
        return dict(found)

    return Format(write, read)


def _unwritten(extension: str) -> Callable[[IO[bytes], Mapping[str, Entry]], None]:
    """Return the writer of a format that is only read."""

    def write(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
        raise _only_read("write_entries", extension)

    return write


def _listed_formats() -> str:
    return ", ".join(dict.fromkeys([*FORMATS, *PLUGINS.names_of("file_formats")]))


def _known_format(extension: str) -> Format:
    found = _format(extension)
    if found is None:
        text, cause = absence(PLUGINS, ("file_formats",), extension)
        raise ArgumentError(f"the format must be one of {_listed_formats()}, got {extension!r}{text}") from cause
    return found
