"""Caches in both formats, made from tables and read ahead, exchangeable with other writers of the layout."""

import csv
import threading

import h5py
import numpy as np
import pytest

import nn_core.data.cache_prefetch as cache_prefetch
from nn_core.data.file_cache import CacheDataSource, DataSourceWithFileCache, write_cache
from nn_core.data.source import SimpleDataSource
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils.create_cache import CreateCache
from nn_core.utils.data_iterator import data_iterator_cache
from nn_core.utils.data_source_implements import CachePrefetcher, CacheReaderWithPrefetch

FORMATS = [".npy", ".h5"]


def numbers(count=7):
    return SimpleDataSource(lambda i: (np.full((2, 3), i, np.float32), np.array([i % 256], np.uint8), i / 2), count)


def samples_of(source):
    source.reset()
    return [source.next() for _ in range(source.size)]


def assert_same_samples(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("extension", FORMATS)
def test_samples_come_back(tmp_path, extension):
    write_cache(numbers(), tmp_path, samples_per_file=3, extension=extension)
    assert sorted(path.suffix for path in tmp_path.glob("cache_0*")) == [extension] * 3
    assert (tmp_path / "cache_info.csv").exists() == (extension == ".npy")
    source = CacheDataSource(tmp_path)
    assert list(source.variables) == ["x0", "x1", "x2"]
    assert_same_samples(samples_of(source), samples_of(numbers()))
    with data_iterator_cache(tmp_path, 7, normalize=False) as iterator:
        assert iterator.next()[0].shape == (7, 2, 3)


@pytest.mark.parametrize("extension", FORMATS)
def test_a_source_is_copied_in_either_format(tmp_path, extension):
    source = DataSourceWithFileCache(numbers(), tmp_path / "c", cache_file_format=extension)
    assert_same_samples(samples_of(source), samples_of(numbers()))
    with pytest.raises(ArgumentError, match=r"the format of its files must be one of \.npy, \.h5, got '\.npz'"):
        DataSourceWithFileCache(numbers(), tmp_path / "d", cache_file_format=".npz")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb", "a\rb", " ", "/a", "a/b", "é"])
@pytest.mark.parametrize("extension", FORMATS)
def test_names_of_variables_come_back_or_are_refused_at_once(tmp_path, name, extension):
    source = SimpleDataSource(lambda i: (i, -i), 3)
    source._variables = (name, "z")
    if extension == ".h5" and name == "/a":
        with pytest.raises(ArgumentError, match="names must have parts between slashes that are neither empty"):
            write_cache(source, tmp_path / "c", extension=extension)
        assert not (tmp_path / "c").exists()
        return
    write_cache(source, tmp_path / "c", extension=extension)
    assert set(CacheDataSource(tmp_path / "c").variables) == {name, "z"}
    (tmp_path / "c" / "cache_checksums.json").unlink()  # as in caches of other writers
    assert set(CacheDataSource(tmp_path / "c").variables) == {name, "z"}


@pytest.mark.parametrize("name", [".", "a/../b", "a\0b", "", "\udcff"])
def test_names_that_hdf5_cannot_hold(tmp_path, name):
    source = SimpleDataSource(lambda i: (i, -i), 3)
    source._variables = (name, "z")
    with pytest.raises(ArgumentError, match="names must have parts between slashes that are neither empty"):
        write_cache(source, tmp_path / "c", extension=".h5")


@pytest.mark.parametrize("prefix", ["../c", "/c", "a/c", "a\\c", "C:c", "a\0", "a\n", "a,b", 'a"b', "c" * 250, 1])
def test_files_of_a_cache_stay_in_its_folder(tmp_path, prefix):
    with pytest.raises(ArgumentError, match=r"^cache: the prefix must be "):
        write_cache(numbers(), tmp_path / "in" / "c", prefix)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../c.npy", "/c.npy", "", "..", "a\0.npy", "a\n.npy", "\x1b.npy", "c" * 260])
def test_files_in_an_index_are_in_the_folder(tmp_path, name):
    write_cache(numbers(), tmp_path)
    (tmp_path / "cache_checksums.json").unlink()
    with (tmp_path / "cache_index.csv").open("w", newline="") as file:
        csv.writer(file).writerow([name, 7])
    with pytest.raises(FileFormatError, match="a line must hold a file name and a number, got"):
        CacheDataSource(tmp_path)


def foreign(folder, names=("y", "x")):
    """A cache in HDF5 as another writer leaves it: an index, and files whose datasets are the variables."""
    rows = []
    for start, end in ((0, 3), (4, 5)):
        name = f"cache_{start:08d}_{end:08d}.h5"
        with h5py.File(folder / name, "w") as file:
            for scale, variable in enumerate(names, 1):
                file.create_dataset(variable, data=scale * np.arange(start, end + 1, dtype=np.float32)[:, None])
        rows.append(f"{name},{end - start + 1}\n")
    (folder / "cache_index.csv").write_text("".join(rows))


def test_a_cache_of_another_writer_in_hdf5(tmp_path):
    foreign(tmp_path)
    source = CacheDataSource(tmp_path)
    assert (list(source.variables), source.size) == (["x", "y"], 6)
    assert [(x.item(), y.item()) for x, y in samples_of(source)] == [(2.0 * i, 1.0 * i) for i in range(6)]


def test_another_reader_finds_plain_datasets(tmp_path):
    write_cache(numbers(5), tmp_path, samples_per_file=3, extension=".h5")
    with (tmp_path / "cache_index.csv").open() as file:
        rows = list(csv.reader(file))
    assert [row[1] for row in rows] == ["3", "2"]
    with h5py.File(tmp_path / rows[1][0]) as file:
        assert sorted(file) == ["x0", "x1", "x2"]
        np.testing.assert_array_equal(file["x1"][()], [[3], [4]])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "another checksum: it is damaged"),
        (lambda path: path.write_bytes(b"x" * 40), "another checksum: it is damaged"),
        (lambda path: path.unlink(), "a cache must hold an array for each variable, got"),
    ],
)
def test_damage_in_hdf5_is_found(tmp_path, damage, message):
    write_cache(numbers(), tmp_path, samples_per_file=3, extension=".h5")
    damage(tmp_path / "cache_00000003_00000005.h5")
    with pytest.raises(FileFormatError, match=message):
        samples_of(CacheDataSource(tmp_path))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-700]), r"cache_00000004_00000005\.h5: "),
        (lambda path: path.write_bytes(b"x" * 40), r"cache_00000004_00000005\.h5: a cache must hold an array"),
        (
            lambda path: h5py.File(path, "a").create_dataset("z", data=1),
            r"one array for each of \['x', 'y'\], got \['x',",
        ),
        (lambda path: h5py.File(path, "a").__delitem__("x"), r"one array for each of \['x', 'y'\], got \['y'\]"),
    ],
)
def test_damage_in_files_of_others_is_found(tmp_path, damage, message):
    foreign(tmp_path)
    damage(tmp_path / "cache_00000004_00000005.h5")
    with pytest.raises(FileFormatError, match=message):
        samples_of(CacheDataSource(tmp_path))


def table(folder, count=6):
    lines = ["x__0:width,x__1:height,y:label", *[f"{i},{i * i},{i % 2}" for i in range(count)]]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    return folder / "table.csv"


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_cache_of_a_table_knows_the_table(tmp_path, extension, shuffle):
    path = table(tmp_path)
    CreateCache(path, np.random.RandomState(3), shuffle).create(tmp_path / "c", cache_file_format=extension)
    assert (tmp_path / "c" / "original.csv").read_bytes() == path.read_bytes()
    order = [tuple(map(int, line.split(","))) for line in (tmp_path / "c" / "order.csv").read_text().splitlines()]
    assert [sample for sample, _ in order] == list(range(6))
    assert (order != [(i, i) for i in range(6)]) == shuffle
    source = CacheDataSource(tmp_path / "c")
    samples = samples_of(source)
    for sample, row in order:
        assert samples[sample][0].tolist() == [row, row * row]
    header, *rows = source.original_rows
    assert header == ["x__0:width", "x__1:height", "y:label"]
    assert [[float(cell) for cell in row[:2]] for row in rows] == [x.tolist() for x, _ in samples]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("order.csv", "0,0\n1,1\n", "each of 6 rows must have one place, got 2 places"),
        ("order.csv", "0,0\n1,x\n", r"order.csv, line 2: a line must hold two numbers, got \['1', 'x'\]"),
        ("order.csv", "".join(f"0,{i}\n" for i in range(6)), "each of 6 rows must have one place"),
        ("original.csv", "x\n1\n", "each of 1 rows must have one place"),
    ],
)
def test_a_table_that_does_not_fit_its_cache(tmp_path, name, text, message):
    CreateCache(table(tmp_path)).create(tmp_path / "c")
    (tmp_path / "c" / name).write_text(text)
    source = CacheDataSource(tmp_path / "c")
    assert len(samples_of(source)) == 6
    with pytest.raises(FileFormatError, match=message):
        source.original_rows  # noqa: B018  # it is read when it is asked for


def test_a_cache_without_a_table(tmp_path):
    write_cache(numbers(), tmp_path)
    assert CacheDataSource(tmp_path).original_rows is None


@pytest.mark.parametrize("extension", FORMATS)
def test_files_are_added(tmp_path, extension):
    write_cache(numbers(5), tmp_path / "c", extension=extension)
    write_cache(numbers(3), tmp_path / "d", prefix="more", extension=extension)
    added = f"more_00000000_00000002{extension}"
    (tmp_path / "d" / added).rename(tmp_path / "c" / added)
    source = CacheDataSource(tmp_path / "c", shuffle=True)
    source.reset()
    source.initialize_cache_files(added)
    assert source.size == 8
    assert sorted(sample[2] for sample in samples_of(source)) == [0, 0, 0.5, 0.5, 1, 1, 1.5, 2]
    with pytest.raises(ArgumentError, match="initialize_cache_files: filename must be another file of"):
        source.initialize_cache_files(added)
    with pytest.raises(ArgumentError, match="initialize_cache_files: filename must be another file of"):
        source.initialize_cache_files(tmp_path / "d" / "other.npy")
    with pytest.raises(FileFormatError, match="a cache must hold an array for each variable, got"):
        source.initialize_cache_files("missing" + extension)


def test_another_index_and_other_names(tmp_path):
    write_cache(numbers(7), tmp_path / "c", samples_per_file=3)
    source = CacheDataSource(tmp_path / "c")
    (tmp_path / "names.csv").write_text("a\nb\nc\n")
    (tmp_path / "index.csv").write_text((tmp_path / "c" / "cache_index.csv").read_text())
    source.initialize_cache_info(tmp_path / "names.csv")
    source.initialize_cache_files_with_index(tmp_path / "index.csv")
    assert (list(source.variables), source.size) == (["a", "b", "c"], 7)
    assert_same_samples(samples_of(source), samples_of(numbers()))
    (tmp_path / "index.csv").write_text("cache_00000000_00000002.npy,3\n")
    with pytest.raises(FileFormatError, match=r"index\.csv: all files of the cache must be listed"):
        source.initialize_cache_files_with_index(tmp_path / "index.csv")
    assert source.size == 7


@pytest.mark.parametrize("extension", FORMATS)
def test_a_file_is_read_ahead(tmp_path, extension):
    write_cache(numbers(), tmp_path, samples_per_file=3, extension=extension)
    first, second, _ = sorted(path.name for path in tmp_path.glob("cache_0*"))
    prefetcher = CachePrefetcher(tmp_path, ["x0", "x1", "x2"])
    with pytest.raises(ArgumentError, match=r"CachePrefetcher\.read: a file must be requested before, got no request"):
        prefetcher.read()
    prefetcher.request(first)
    prefetcher.request(second)
    assert (prefetcher.check_if_hit(first), prefetcher.check_if_hit(second)) == (False, True)
    assert prefetcher.read()["x2"].tolist() == [1.5, 2.0, 2.5]
    assert prefetcher.read_cache(first, ["x0", "x1", "x2"])["x1"].tolist() == [[0], [1], [2]]
    prefetcher.request("missing" + extension)
    with pytest.raises(FileFormatError, match="a cache must hold an array for each variable, got"):
        prefetcher.read()
    prefetcher.close()


def test_files_that_were_read_ahead_are_not_read_again(tmp_path, monkeypatch):
    write_cache(numbers(9), tmp_path, samples_per_file=2)
    names = sorted(path.name for path in tmp_path.glob("cache_0*"))
    reads, lock = [], threading.Lock()
    read = cache_prefetch.read_cache_file

    def counted(path, variables):
        with lock:
            reads.append((path.name, threading.current_thread() is threading.main_thread()))
        return read(path, variables)

    monkeypatch.setattr(cache_prefetch, "read_cache_file", counted)
    reader = CacheReaderWithPrefetch(tmp_path, 2, ["x0", "x1", "x2"])
    values = []
    for number, name in enumerate(names):
        with reader.open_and_prefetch_cache(name, names[number + 1 :]) as arrays:
            values += arrays["x2"].tolist()
    reader.close()
    assert values == [i / 2 for i in range(9)]
    assert sorted(reads) == [(names[0], True), *[(name, False) for name in names[1:]]]
    with pytest.raises(ArgumentError, match="num_threads must be at least 1, got 0"):
        CacheReaderWithPrefetch(tmp_path, 0, ["x0"])
