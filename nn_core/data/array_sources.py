"""Samples in arrays, NumPy files, HDF5 files, Parquet files, and folders of images."""

import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from nn_core.data.images import IMAGE_EXTENSIONS, read_image
from nn_core.data.source import OrderedDataSource, Sample
from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError, FileFormatError, MissingFileError
from nn_core.random import Rng


class ArrayDataSource(OrderedDataSource):
    """Rows of arrays.

    Args:
        arrays: An array for each variable, by name, all of one length; NumPy arrays, maps of files in memory, or anything
            else whose rows are read by index.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        ArgumentError: when there is no array, or lengths differ.

    Example:
        >>> source = ArrayDataSource({"x": np.eye(3), "y": np.arange(3)})
        >>> source.size, source.next()[0].tolist()
        (3, [1.0, 0.0, 0.0])
    """

    def __init__(self, arrays: Mapping[str, Any], shuffle: bool = False, rng: Rng | None = None) -> None:
        if not isinstance(arrays, Mapping):
            raise ArgumentError(
                f"{type(self).__name__}: arrays must be a dictionary of arrays by name, got {described(arrays)}\n"
                '  hint: {"x": x, "y": y}'
            )
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) != 1:
            raise ArgumentError(f"{type(self).__name__}: arrays must have one length, got {lengths}")
        super().__init__(next(iter(lengths.values())), tuple(arrays), shuffle, rng)
        self._arrays = dict(arrays)

    def _sample(self, index: int) -> Sample:
        return tuple([array[index] for array in self._arrays.values()])


class NumpyDataSource(ArrayDataSource):
    """Rows of .npy files, which are not read into memory, or of the arrays of one .npz file, which are.

    Args:
        files: Paths of .npy files by variable, or the path of an .npz file.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        FileFormatError: when a file is missing or damaged.
        ArgumentError: when lengths differ.
    """

    def __init__(
        self,
        files: Mapping[str, str | os.PathLike[str]] | str | os.PathLike[str],
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        path: Any = files
        try:
            if isinstance(files, Mapping):
                arrays = {}
                for variable, path in files.items():
                    arrays[variable] = np.load(path, mmap_mode="r", allow_pickle=False)
            else:
                with np.load(files, allow_pickle=False) as archive:
                    arrays = dict(archive)
        except Exception as error:  # NumPy has many for damaged files
            raise FileFormatError(f"{path}: the file must hold arrays of NumPy, got: {error}") from error
        super().__init__(arrays, shuffle, rng)


class Hdf5DataSource(OrderedDataSource):
    """Rows of the datasets of an HDF5 file, read one by one.

    Args:
        path: The file.
        variables: Names of datasets; None: all at the top level.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        FileFormatError: when the file cannot be read or lacks a dataset, or, at a sample, the row is damaged.
        ArgumentError: when lengths differ.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        variables: Sequence[str] | None = None,
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        self._path = Path(path)
        self._file: Any = None
        try:
            file = self._opened()
            names = tuple(name for name in file if hasattr(file[name], "shape")) if variables is None else tuple(variables)
            lengths = {name: len(file[name]) for name in names}
        except (OSError, KeyError, TypeError) as error:
            raise FileFormatError(f"{path}: the file must hold the datasets {variables or ''}, got: {error}") from error
        if len(set(lengths.values())) != 1:
            raise ArgumentError(f"Hdf5DataSource: datasets must have one length, got {lengths}")
        super().__init__(next(iter(lengths.values())), names, shuffle, rng)

    def _opened(self) -> Any:
        if self._file is None:
            self._file = import_module("h5py").File(self._path, "r")
        return self._file

    def _sample(self, index: int) -> Sample:
        file = self._opened()
        try:
            return tuple([file[name][index] for name in self._variables])
        except (OSError, KeyError) as error:
            raise FileFormatError(f"{self._path}, row {index}: the row must be readable, got: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Without the open file, which another process opens for itself."""
        return {**self.__dict__, "_file": None}

    def close(self) -> None:
        """Close the file; reading opens it again."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


class ParquetDataSource(OrderedDataSource):
    """Rows of a Parquet file; one group of rows is in memory at a time. Needs the package pyarrow.

    Args:
        path: The file.
        variables: Names of columns; None: all.
        shuffle: Reshuffle for each epoch: first the order of the groups of rows, then that within each, so that a group
            is read once an epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        FileFormatError: when the file cannot be read or lacks a column, or, at a sample, its group is damaged.
        ImportError: when pyarrow is not installed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        variables: Sequence[str] | None = None,
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        self._path = Path(path)
        self._file: Any = None
        self._group: tuple[int, list[np.ndarray[Any, Any]]] | None = None
        try:
            file = self._opened()
            known = file.schema_arrow.names
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{path}: the file must be a Parquet file, got: {error}") from error
        names = tuple(known if variables is None else variables)
        if not set(names) <= set(known):
            raise FileFormatError(f"{path}: the file must have the columns {list(names)}, got {known}")
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        self._ends = list(accumulate(groups))
        super().__init__(self._ends[-1] if groups else 0, names, shuffle, rng)

    def _draw(self) -> None:
        super()._draw()
        if self._shuffle and self._order is not None:
            ends = np.array(self._ends)
            order = np.array(self._order)
            groups = np.searchsorted(ends, order, side="right")
            first = {group: place for place, group in reversed(list(enumerate(groups.tolist())))}
            places = np.array([first[group] for group in groups.tolist()])
            self._order = order[np.argsort(places, kind="stable")].tolist()

    def _opened(self) -> Any:
        if self._file is None:
            try:
                parquet = import_module("pyarrow.parquet")
            except ImportError as error:
                raise ImportError(
                    f"Parquet files: pyarrow must be installed, got: {error}\n  hint: pip install 'nn-core[parquet]'"
                ) from error
            self._file = parquet.ParquetFile(self._path)
        return self._file

    def _sample(self, index: int) -> Sample:
        number = bisect_right(self._ends, index)
        group = self._group
        if group is None or group[0] != number:
            group = self._group = (number, self._read(number))
        row = index - (self._ends[number - 1] if number else 0)
        return tuple([column[row] for column in group[1]])

    def _read(self, number: int) -> list[np.ndarray[Any, Any]]:
        try:
            table = self._opened().read_row_group(number, columns=list(self._variables))
            return [_as_array(table.column(name)) for name in self._variables]
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{self._path}, group {number}: the rows must be readable, got: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Without the open file, which another process opens for itself."""
        return {**self.__dict__, "_file": None, "_group": None}

    def close(self) -> None:
        """Close the file; reading opens it again."""
        file, self._file, self._group = self._file, None, None
        if file is not None:
            file.close()


class ImageDataSource(OrderedDataSource):
    """Images of files.

    Args:
        paths: The files.
        labels: A label for each; None: samples have the image alone.
        size: Width and height to resize to; None: as they are.
        grayscale: One channel.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Samples are ``x``, the image of shape (C, H, W) and dtype uint8, and ``y``, the label of shape (1,).

    Raises:
        ArgumentError: when there are not as many labels as paths.
        FileFormatError: at a sample, when its file is missing, truncated, or no image.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        labels: Sequence[int] | None = None,
        size: tuple[int, int] | None = None,
        grayscale: bool = False,
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        if labels is not None and len(labels) != len(paths):
            raise ArgumentError(f"ImageDataSource: there must be a label for each of {len(paths)} paths, got {len(labels)}")
        super().__init__(len(paths), ("x",) if labels is None else ("x", "y"), shuffle, rng)
        self._paths = [Path(path) for path in paths]
        self._labels = None if labels is None else list(labels)
        self._size_of_images = size
        self._grayscale = grayscale

    def _sample(self, index: int) -> Sample:
        channels = 1 if self._grayscale else 3
        image = read_image(self._paths[index], size=self._size_of_images, channel_first=True, num_channels=channels)
        image = image.reshape((channels, *image.shape[-2:]))
        return (image,) if self._labels is None else (image, np.array([self._labels[index]], np.int32))


class ImageFolderDataSource(ImageDataSource):
    """Images in a folder for each class: ``folder/cat/1.png``, ``folder/dog/7.jpg``.

    Args:
        folder: The folder.
        size: Width and height to resize to; None: as they are.
        grayscale: One channel.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Attributes:
        classes: Names of the classes, sorted; the label of an image is the position of its class.

    Raises:
        MissingFileError: when the folder does not exist.
        FileFormatError: when there is no image.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        size: tuple[int, int] | None = None,
        grayscale: bool = False,
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        root = Path(folder)
        if not root.is_dir():
            raise MissingFileError(f"ImageFolderDataSource: folder must exist, got no {folder}", str(folder))
        self.classes = sorted(path.name for path in root.iterdir() if path.is_dir())
        found = [
            (path, label)
            for label, name in enumerate(self.classes)
            for path in sorted((root / name).rglob("*"))
            if path.suffix.lower() in IMAGE_EXTENSIONS
        ]
        if not found:
            raise FileFormatError(f"{folder}: there must be images in a folder for each class, got none")
        super().__init__([path for path, _ in found], [label for _, label in found], size, grayscale, shuffle, rng)


def _as_array(column: Any) -> np.ndarray[Any, Any]:
    """A column of numbers, or of lists of numbers that have one length."""
    values = column.to_pylist() if hasattr(column.type, "value_type") else column.to_numpy()
    return np.stack([np.asarray(value) for value in values]) if hasattr(column.type, "value_type") else np.asarray(values)
