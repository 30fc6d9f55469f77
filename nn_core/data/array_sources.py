"""Samples in arrays, NumPy files, HDF5 files, Parquet files, and folders of images."""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from nn_core.data.images import IMAGE_EXTENSIONS, read_image
from nn_core.data.memory_map import identities_of, with_maps, without_maps
from nn_core.data.parquet import ParquetDataSource as ParquetDataSource
from nn_core.data.source import OrderedDataSource, Rows, Sample
from nn_core.data.stored_rows import StoredRows
from nn_core.engine.error_messages.foreign_values import is_of_columns, values_of
from nn_core.engine.error_messages.refusal import described, fitted, fitted_methods
from nn_core.errors import ArgumentError, FileFormatError, MissingFileError, one_line
from nn_core.files.atomic import open_to_read, require_regular
from nn_core.files.hdf5_rows import open_rows
from nn_core.files.naming import naming_file
from nn_core.files.npz import read_arrays
from nn_core.random import Rng


def _length_of(source: str, name: object, array: Any) -> int:
    """Return the number of rows of an array.

    Raises:
        ArgumentError: when it has none, or its name is no text.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"{source}: names of arrays must be texts, got {described(name)}")
    try:
        return len(array)
    except TypeError as error:
        raise ArgumentError(f"{source}: {name} must be an array with rows, got {described(array)}") from error


class ArrayDataSource(OrderedDataSource):
    """Rows of arrays.

    Args:
        arrays: An array for each variable, by name, all of one length; NumPy arrays, maps of files in memory, or anything
            else whose rows are read by index. Columns and tables of pandas, Arrow or Polars are taken row by row, in their
            order, whatever their index says. Processes that read for this one map the same files and copy nothing.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        ArgumentError: when there is no array, or lengths differ.

    Example:
        >>> from nn_core.data import ArrayDataSource
        >>> source = ArrayDataSource({"x": np.eye(3), "y": np.arange(3)})
        >>> source.size, source.next()[0].tolist()
        (3, [1.0, 0.0, 0.0])
    """

    @fitted
    def __init__(self, arrays: Mapping[str, Any], shuffle: bool = False, rng: Rng | None = None) -> None:
        if not isinstance(arrays, Mapping):
            raise ArgumentError(
                f"{type(self).__name__}: arrays must be a dictionary of arrays by name, got {described(arrays)}\n"
                '  hint: {"x": x, "y": y}'
            )
        arrays = {name: values_of(array) if is_of_columns(array) else array for name, array in arrays.items()}
        lengths = {name: _length_of(type(self).__name__, name, array) for name, array in arrays.items()}
        if not lengths:
            raise ArgumentError(f"{type(self).__name__}: there must be at least one array, got none")
        if len(set(lengths.values())) != 1:
            raise ArgumentError(f"{type(self).__name__}: arrays must have one length, got {lengths}")
        super().__init__(next(iter(lengths.values())), tuple(arrays), shuffle, rng)
        self._arrays = dict(arrays)
        self._identities = identities_of(self._arrays)

    def __getstate__(self) -> dict[str, Any]:
        """With the places of maps of files, which another process opens for itself."""
        return {**self.__dict__, "_arrays": without_maps(self._arrays, self._identities)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Open the maps again."""
        self.__dict__.update(state, _arrays=with_maps(state["_arrays"]))

    def _sample(self, index: int) -> Sample:
        return tuple([array[index] for array in self._arrays.values()])

    def _take_rows(self, indices: "np.ndarray[Any, Any]") -> Rows | None:
        if not all(map(_is_plain, self._arrays.values())):
            return None
        return tuple([np.take(array, indices, axis=0) for array in self._arrays.values()])


def _is_plain(array: Any) -> bool:
    """Return whether several rows that are taken together are what single rows are in a batch."""
    return type(array) is np.ndarray and array.dtype.isnative and array.dtype.names is None and not array.dtype.hasobject


class NumpyDataSource(ArrayDataSource):
    """Rows of .npy files, each read when it is needed, or of the arrays of one .npz file, which are read into memory.

    Args:
        files: Paths of .npy files by variable, or the path of an .npz file.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        FileFormatError: when a file is missing or damaged.
        ArgumentError: when lengths differ.

    Example:
        >>> from nn_core.data import NumpyDataSource
        >>> np.savez("rows.npz", x=np.eye(3), y=np.arange(3))
        >>> NumpyDataSource("rows.npz").variables
        ('x', 'y')
    """

    @fitted
    def __init__(
        self,
        files: Mapping[str, str | os.PathLike[str]] | str | os.PathLike[str],
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        path: Any = files
        try:
            if isinstance(files, Mapping):
                arrays: dict[str, Any] = {}
                for variable, path in files.items():
                    arrays[variable] = StoredRows(path)
            else:
                with open_to_read(files) as file:
                    arrays = read_arrays(file, words=True)
        except FileNotFoundError as error:
            raise MissingFileError(f"NumpyDataSource: files must exist, got none for {str(path)!r}", str(path)) from error
        except Exception as error:  # NumPy has many for damaged files
            raise FileFormatError(f"{path}: the file must hold arrays of NumPy, got: {one_line(error)}") from error
        with naming_file(path):
            super().__init__(arrays, shuffle, rng)


@fitted_methods()
class Hdf5DataSource(OrderedDataSource):
    """Rows of the datasets of an HDF5 file, read one by one.

    Args:
        path: The file.
        variables: Names of datasets; None: all at the top level.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        FileFormatError: when the file cannot be read or lacks a dataset, has links or data of other files in their place, lets
            the HDF5 library crash or loop in a process that reads it on trial, or, at a sample, the row is damaged.
        ArgumentError: when lengths differ.

    Example:
        >>> import h5py
        >>> from nn_core.data import Hdf5DataSource
        >>> with h5py.File("rows.h5", "w") as file:
        ...     file["x"] = np.eye(3)
        >>> Hdf5DataSource("rows.h5").next()[0].tolist()
        [1.0, 0.0, 0.0]
    """

    @fitted
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
            require_regular(self._path)
            self._file, names = open_rows(self._path, variables)
            lengths = {name: len(self._file[name]) for name in names}
        except FileFormatError as error:
            raise FileFormatError(f"{path}: {error}") from error
        except FileNotFoundError as error:
            raise MissingFileError(f"Hdf5DataSource: file must exist, got none for {str(path)!r}", str(path)) from error
        except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:  # h5py has all
            wanted = f" {variables}" if variables else ""
            raise FileFormatError(f"{path}: the file must hold the datasets{wanted}, got: {one_line(error)}") from error
        if len(set(lengths.values())) != 1:
            raise ArgumentError(f"Hdf5DataSource: datasets of {path} must have one length, got {lengths}")
        with naming_file(path):
            super().__init__(next(iter(lengths.values())), names, shuffle, rng)

    def _opened(self) -> Any:
        if self._file is None:
            self._file = import_module("h5py").File(self._path, "r")
        return self._file

    def _sample(self, index: int) -> Sample:
        file = self._opened()
        try:
            return tuple([file[name][index] for name in self._variables])
        except (OSError, LookupError, ValueError, RuntimeError) as error:
            raise FileFormatError(f"{self._path}, row {index}: the row must be readable, got: {one_line(error)}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Without the open file, which another process opens for itself."""
        return {**self.__dict__, "_file": None}

    def close(self) -> None:
        """Close the file; reading opens it again."""
        file, self._file = self._file, None
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
        ArgumentError: when `paths` is one path, or there are not as many labels as paths.
        FileFormatError: at a sample, when its file is missing, truncated, or no image.

    Example:
        >>> from PIL import Image
        >>> from nn_core.data import ImageDataSource
        >>> Image.new("RGB", (10, 20)).save("one.png")
        >>> ImageDataSource(["one.png"], labels=[3], size=(8, 8)).next()[0].shape
        (3, 8, 8)
    """

    @fitted
    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        labels: Sequence[int] | None = None,
        size: tuple[int, int] | None = None,
        grayscale: bool = False,
        shuffle: bool = False,
        rng: Rng | None = None,
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)):
            text = f"ImageDataSource: paths must be a list of files, got {os.fspath(paths)!r}"
            raise ArgumentError(f"{text}\n  hint: [path] for one file, ImageFolderDataSource for a folder of classes")
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

    Example:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from nn_core.data import ImageFolderDataSource
        >>> for name in ("cat", "dog"):
        ...     Path("pets", name).mkdir(parents=True)
        ...     Image.new("RGB", (10, 20)).save(f"pets/{name}/0.png")
        >>> source = ImageFolderDataSource("pets", size=(8, 8))
        >>> source.size, source.classes
        (2, ['cat', 'dog'])
    """

    @fitted
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
