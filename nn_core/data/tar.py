"""Samples in tar files, as WebDataset has them: the files of a sample follow each other and have one name."""

import tarfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.data.blocks import Blocks
from nn_core.data.file_patterns import Files, files_of
from nn_core.data.readers import reader_of
from nn_core.data.source import OrderedDataSource, Sample
from nn_core.engine.error_messages.refusal import checked_count, fitted, fitted_methods
from nn_core.errors import ArgumentError, FileFormatError, one_line
from nn_core.files.atomic import open_to_read, require_regular
from nn_core.files.naming import naming_file
from nn_core.random import Rng

#: Makes a value of the bytes of a file.
Decoder: TypeAlias = Callable[[bytes], Any]

#: Tar files that are open at the same time.
_MOST_OPEN: Final = 16


@fitted_methods()
class TarDataSource(OrderedDataSource):
    """Samples of tar files that are not compressed, read one by one from where they are.

    The files ``0001.jpg`` and ``0001.cls`` are the sample 0001, whose variables are called jpg and cls: the name of a sample
    ends at the first dot of a file's name, and what follows is the variable. The headers are read once, when the source is
    made; then any sample is read without those before it, so that all are shuffled, and training is resumed anywhere.

    Args:
        path: The file; or a folder, a pattern such as ``"train-{000..127}.tar"``, or several of them.
        variables: Names of variables, which each sample must have; None: those of the first sample. ``"png;jpg"`` is the first
            of them that a sample has.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.
        window: How many tar files are mixed by `shuffle`, whose order is drawn, too; for disks on which going from file to
            file takes long. None: all of them.
        decode: For variables, a function of the bytes. Without it images, .npy, .wav and .csv are arrays, as in the cells of
            CSV files; ``cls``, ``id``, ``index`` and ``inx`` are whole numbers; ``txt``, ``text`` and ``transcript`` texts.

    Raises:
        MissingFileError: when there is no file.
        FileFormatError: when a file is damaged, compressed or no tar file, or a sample lacks a variable; at a sample, when it
            cannot be decoded.
        ArgumentError: when nothing says how a variable is decoded.

    Example:
        >>> import io, tarfile
        >>> from nn_core.data import TarDataSource
        >>> with tarfile.open("shard-0.tar", "w") as file:
        ...     for number in range(3):
        ...         entry = tarfile.TarInfo(f"{number}.cls")
        ...         entry.size = 1
        ...         file.addfile(entry, io.BytesIO(str(number).encode()))
        >>> source = TarDataSource("shard-*.tar")
        >>> source.size, source.variables, source.next()
        (3, ('cls',), (array([0], dtype=int32),))
    """

    @fitted
    def __init__(
        self,
        path: Files,
        variables: Sequence[str] | None = None,
        shuffle: bool = False,
        rng: Rng | None = None,
        window: int | None = None,
        decode: Mapping[str, Decoder] | None = None,
    ) -> None:
        self._window = None if window is None else checked_count("TarDataSource: window", window)
        self._paths = files_of("TarDataSource", path, (".tar",))
        self._open: OrderedDict[int, _File] = OrderedDict()
        index = _Index(None if variables is None else [name.split(";") for name in variables])
        for number, file in enumerate(self._paths):
            index.add(number, file)
        if not index.rows:
            raise FileFormatError(f"{path}: tar files must hold samples, got none")
        self._choices = index.variables
        #: file, and for each variable its extension's number, first byte and length
        self._places = np.array(index.rows, np.int64).reshape(len(index.rows), -1)
        self._keys = index.keys
        with naming_file(self._paths[0]):
            self._decode = {name: _decoder(name, decode or {}) for choices in self._choices for name in choices}
        names = [choices[0] for choices in self._choices] if variables is None else list(variables)
        super().__init__(len(index.rows), tuple(names), shuffle, rng)

    def blocks(self) -> Blocks | None:
        """Return the tar files, where some are read after others."""
        return None if self._window is None else Blocks(self._places[:, 0], self._window)

    def _sample(self, index: int) -> Sample:
        number, *places = self._places[index].tolist()
        file = self._file(number)
        sample = []
        for position, choices in enumerate(self._choices):
            choice, start, length = places[3 * position : 3 * position + 3]
            content = file.read(start, length)
            name = choices[choice]
            try:
                if len(content) != length:
                    raise EOFError(f"{len(content)} of {length} bytes")
                sample.append(self._decode[name](content))
            except (OSError, ValueError, TypeError, OverflowError, EOFError) as error:
                raise FileFormatError(
                    f"{self._paths[number]}: {self._keys[index]}.{name} must be readable, got: {one_line(error)}"
                ) from error
        return tuple(sample)

    def _file(self, number: int) -> "_File":
        file = self._open.get(number)
        if file is None:
            if len(self._open) >= _MOST_OPEN:
                self._open.popitem(last=False)
            file = self._open[number] = _File(self._paths[number])
        return file

    def __getstate__(self) -> dict[str, Any]:
        """Without open files, which another thread or process opens for itself."""
        return {**self.__dict__, "_open": OrderedDict()}

    def close(self) -> None:
        """Close the files; reading opens them again."""
        self._open.clear()


class _File:
    """A file that is open as long as this object lives: threads that read from copies of a source do not close theirs."""

    def __init__(self, path: Path) -> None:
        self._file = open_to_read(path)

    def read(self, start: int, length: int) -> bytes:
        """Return bytes from `start` on."""
        self._file.seek(start)
        return self._file.read(length)

    def __del__(self) -> None:
        self._file.close()


class _Index:
    """The places of the samples in tar files.

    Args:
        variables: For each variable the extensions that it may have; None: those of the first sample.
    """

    def __init__(self, variables: list[list[str]] | None) -> None:
        self._wanted = variables
        self.rows: list[list[int]] = []
        self.keys: list[str] = []

    @property
    def variables(self) -> list[list[str]]:
        """For each variable the extensions that it may have."""
        return self._wanted or []

    def add(self, number: int, path: Path) -> None:
        """Take in the samples of a file."""
        key: str = ""
        found: dict[str, tuple[int, int]] = {}
        for own, extension, start, length in _members(path):
            if own != key:
                self._end(number, path, key, found)
                key, found = own, {}
            if extension in found:
                raise FileFormatError(f"{path}: a sample must have one file of a kind, got two {key}.{extension}")
            found[extension] = (start, length)
        self._end(number, path, key, found)

    def _end(self, number: int, path: Path, key: str, found: Mapping[str, tuple[int, int]]) -> None:
        if not found:
            return
        if self._wanted is None:
            self._wanted = [[extension] for extension in found]
        row = [number]
        for choices in self._wanted:
            choice = next((place for place, name in enumerate(choices) if name in found), None)
            if choice is None:
                raise FileFormatError(f"{path}: the sample {key} must have {' or '.join(choices)}, got {', '.join(found)}")
            row += [choice, *found[choices[choice]]]
        self.rows.append(row)
        self.keys.append(key)


def _members(path: Path) -> Iterator[tuple[str, str, int, int]]:
    """Yield sample, extension, first byte and length of each file in a tar file that belongs to a sample."""
    try:
        end = 0
        require_regular(path)
        with tarfile.open(path, "r:") as file:
            for member in file:
                end = member.offset_data + -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
                folder, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                if member.isfile() and stem and extension:
                    if member.issparse():
                        raise FileFormatError(f"{path}: files must be stored as they are, got {member.name}, which is sparse")
                    yield f"{folder}/{stem}" if folder else stem, extension.lower(), member.offset_data, member.size
                file.members = []  # type: ignore[attr-defined]  # headers of a million files take a gigabyte
        with open_to_read(path) as content:  # tarfile takes a file that was cut between two members for a whole one
            content.seek(end)
            if content.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError(f"no end of the archive after {end} bytes, so that samples are missing")
    except FileFormatError:
        raise
    except (tarfile.TarError, OSError, ValueError, OverflowError, MemoryError) as error:  # of a claimed length
        raise FileFormatError(
            f"{path}: the file must be a whole tar file that is not compressed, got: {one_line(error)}\n  hint: gunzip it"
        ) from error


def _decoder(name: str, decode: Mapping[str, Decoder]) -> Decoder:
    if name in decode:
        return decode[name]
    extension = name.rpartition(".")[2]
    if extension in ("cls", "id", "index", "inx"):
        return _whole_number
    if extension in ("txt", "text", "transcript"):
        return _text
    reader = reader_of(f".{extension}")
    if reader is None:
        raise ArgumentError(
            f"TarDataSource: decode must say how {name} is decoded, got nothing\n"
            f'  hint: decode={{"{name}": function of the bytes}}, or variables=[...] without it'
        )
    return _Reader(f".{extension}")


class _Reader:
    """Reads bytes as files with an extension are read; it pickles by the extension."""

    def __init__(self, extension: str) -> None:
        self._extension = extension

    def __call__(self, content: bytes) -> Any:
        reader = reader_of(self._extension)
        assert reader is not None
        return reader(BytesIO(content))


def _whole_number(content: bytes) -> Any:
    return np.array([int(content)], np.int32)


def _text(content: bytes) -> Any:
    return content.decode("utf-8")
