"""Sources over arrays and files give their rows, name what is damaged, and are read by several workers."""

import itertools

import numpy as np
import pytest

from nn_core.data.array_sources import (
    ArrayDataSource,
    Hdf5DataSource,
    ImageDataSource,
    ImageFolderDataSource,
    NumpyDataSource,
    ParquetDataSource,
)
from nn_core.data.iterator import DataIterator
from nn_core.data.iterators import data_iterator_cache, data_iterator_csv_dataset
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils.create_cache import CreateCache

X = np.arange(60, dtype=np.float32).reshape(20, 3)
Y = np.arange(20)


def arrays(folder, **options):
    return ArrayDataSource({"x": X, "y": Y}, **options)


def npy(folder, **options):
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    return NumpyDataSource({"x": folder / "x.npy", "y": folder / "y.npy"}, **options)


def npz(folder, **options):
    np.savez(folder / "a.npz", x=X, y=Y)
    return NumpyDataSource(folder / "a.npz", **options)


def hdf5(folder, **options):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "a.h5", "w") as file:
        file["x"], file["y"] = X, Y
    return Hdf5DataSource(folder / "a.h5", **options)


def parquet(folder, **options):
    pyarrow = pytest.importorskip("pyarrow")
    writer = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"x": list(X), "y": Y})
    writer.write_table(table, folder / "a.parquet", row_group_size=6)
    return ParquetDataSource(folder / "a.parquet", **options)


SOURCES = pytest.mark.parametrize("make", [arrays, npy, npz, hdf5, parquet])


@SOURCES
def test_rows_come_in_order(make, tmp_path):
    with DataIterator(make(tmp_path), 20, use_thread=False) as iterator:
        assert tuple(iterator.variables) == ("x", "y")
        x, y = iterator.next()
    assert np.array_equal(x, X)
    assert np.array_equal(y, Y)


@SOURCES
def test_workers_read_shuffled_rows(make, tmp_path):
    def rows(**options):
        source = make(tmp_path, shuffle=True, rng=np.random.RandomState(1))
        with DataIterator(source, 4, **options) as iterator:
            return [iterator.next() for _ in range(10)]

    expected = rows(use_thread=False)
    assert sorted(value for _, y in expected[:5] for value in y.tolist()) == Y.tolist()
    assert [y.tolist() for _, y in expected[:5]] != [y.tolist() for _, y in expected[5:]]
    for found, other in zip(rows(workers=3), expected, strict=True):
        assert np.array_equal(found[0], other[0])
        assert np.array_equal(found[1], other[1])
        assert np.array_equal(found[0], X[found[1]])


def test_groups_of_rows_are_shuffled_as_a_whole(tmp_path):
    source = parquet(tmp_path, shuffle=True)
    source.reset()
    groups = [index // 6 for index in source.order]
    assert sum(one != other for one, other in itertools.pairwise(groups)) == 3
    assert source.order != sorted(source.order)


@pytest.mark.parametrize("source", ["hdf5", "parquet", "npz"])
def test_damaged_files_are_refused(source, tmp_path):
    make = {"hdf5": Hdf5DataSource, "parquet": ParquetDataSource, "npz": NumpyDataSource}[source]
    if source == "parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "file").write_bytes(b"PAR1 no")
    with pytest.raises(FileFormatError, match="file: the file must"):
        make(tmp_path / "file")


def test_missing_columns_and_lengths_are_refused(tmp_path):
    hdf5(tmp_path)
    with pytest.raises(FileFormatError, match="must hold the datasets"):
        Hdf5DataSource(tmp_path / "a.h5", ["z"])
    parquet(tmp_path)
    with pytest.raises(FileFormatError, match=r"must have the columns \['z'\], got \['x', 'y'\]"):
        ParquetDataSource(tmp_path / "a.parquet", ["z"])
    with pytest.raises(ArgumentError, match=r"arrays must have one length, got \{'x': 20, 'y': 3\}"):
        ArrayDataSource({"x": X, "y": Y[:3]})


@pytest.fixture
def folder(tmp_path):
    """Two classes with three images each."""
    pillow = pytest.importorskip("PIL.Image")
    for label, name in enumerate(["cat", "dog"]):
        (tmp_path / name).mkdir()
        for number in range(3):
            image = np.full((6, 8, 3), 100 * label + number, np.uint8)
            pillow.fromarray(image).save(tmp_path / name / f"{number}.png")
    return tmp_path


def test_a_folder_for_each_class_is_a_source(folder):
    source = ImageFolderDataSource(folder, size=(4, 2))
    assert source.classes == ["cat", "dog"]
    with DataIterator(source, 6, workers=2) as iterator:
        x, y = iterator.next()
    assert x.shape == (6, 3, 2, 4)
    assert x[:, 0, 0, 0].tolist() == [0, 1, 2, 100, 101, 102]
    assert y.ravel().tolist() == [0, 0, 0, 1, 1, 1]


def test_truncated_and_missing_images_are_skipped_and_counted(folder):
    path = folder / "cat" / "1.png"
    path.write_bytes(path.read_bytes()[:40])
    (folder / "dog" / "0.png").unlink()
    paths = [folder / name / f"{number}.png" for name in ("cat", "dog") for number in range(3)]
    with DataIterator(ImageDataSource(paths, range(6), grayscale=True), 4, workers=2, skip_errors=True) as iterator:
        x, y = iterator.next()
        assert (x.shape, y.ravel().tolist(), iterator.skipped) == ((4, 1, 6, 8), [0, 2, 4, 5], 2)
    with (
        DataIterator(ImageDataSource(paths), 4) as iterator,
        pytest.raises(FileFormatError, match=r"1\.png: the file must be an image") as caught,
    ):
        iterator.next()
    if hasattr(caught.value, "__notes__"):
        assert "sample 1 at position 1" in caught.value.__notes__[0]


def test_folders_without_images_and_labels_without_paths_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="there must be images in a folder for each class"):
        ImageFolderDataSource(tmp_path)
    with pytest.raises(ArgumentError, match="a label for each of 1 paths, got 2"):
        ImageDataSource(["a.png"], [0, 1])


def table(folder):
    path = folder / "a.csv"
    rows = [f"{name}/{number}.png,{number}\n" for name in ("cat", "dog") for number in range(3)]
    path.write_text("x:image,y\n" + "".join(rows))
    return path


def test_cells_of_tables_may_be_images(folder):
    with data_iterator_csv_dataset(table(folder), 6, normalize=True, with_file_cache=False) as iterator:
        x, _ = iterator.next()
    assert x.shape == (6, 3, 6, 8)
    assert np.allclose(x[:, 0, 0, 0], np.array([0, 1, 2, 100, 101, 102]) / 255)


def test_a_damaged_image_is_named_with_the_line_of_the_table(folder):
    (folder / "dog" / "1.png").write_bytes(b"no image")
    with (
        data_iterator_csv_dataset(table(folder), 6, with_file_cache=False) as iterator,
        pytest.raises(FileFormatError, match=r"a\.csv, line 6, column 'x:image': .*1\.png: the file must hold an array"),
    ):
        iterator.next()


def test_a_cache_is_made_of_a_table(folder):
    CreateCache(table(folder)).create(folder / "a.cache", normalize=False)
    with data_iterator_cache(folder / "a.cache", 6, normalize=False) as iterator:
        x, y = iterator.next()
    assert (x.dtype, x[:, 0, 0, 0].tolist(), y.ravel().tolist()) == (np.uint8, [0, 1, 2, 100, 101, 102], [0, 1, 2] * 2)
