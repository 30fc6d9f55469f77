"""Data sources: order, epochs, parts, caches, tables."""

import io
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from nn_core.data.file_cache import write_cache
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils.data_source import (
    ChosenDataSource,
    DataSource,
    DataSourceWithFileCache,
    DataSourceWithFileCacheError,
    DataSourceWithMemoryCache,
    SlicedDataSource,
    TransformedDataSource,
    ZippedDataSource,
    folds,
    split,
)
from nn_core.utils.data_source_implements import CacheDataSource, ConcatDataSource, CsvDataSource, SimpleDataSource


class Squares(DataSource):
    """A source as programs write it."""

    def __init__(self, n, shuffle=False, rng=None):
        super().__init__(shuffle=shuffle, rng=rng)
        self._size, self._variables = n, ("x", "y")
        self.reads = []
        self.reset()

    def reset(self):
        self._indexes = self._rng.permutation(self._size) if self._shuffle else np.arange(self._size)
        super().reset()

    def _get_data(self, position):
        self.reads.append(position)
        x = int(self._indexes[position])
        return np.array([x], np.float32), x * x


def epoch(source):
    """The second values of all samples of an epoch."""
    values = [int(source.next()[1]) for _ in range(source.size)]
    source.reset()
    return values


def test_a_source_of_the_program():
    with Squares(4) as source:
        assert (source.size, source.variables, source.position, source.shuffle) == (4, ("x", "y"), 0, False)
        assert source.next()[1] == 0
        assert source.position == 1
        source.reset()
        assert epoch(source) == [0, 1, 4, 9]
        assert source.order is None


def test_a_source_defines_get_data():
    with pytest.raises(NotImplementedError, match=r"DataSource: a data source must define _get_data\(position\)"):
        DataSource().next()


def test_simple_source():
    source = SimpleDataSource(lambda i: (np.ones(3), i), 3)
    assert list(source.variables) == ["x0", "x1"]
    assert epoch(source) == [0, 1, 2]
    assert list(source.order) == [0, 1, 2]
    assert list(SimpleDataSource(lambda i: i, 2).variables) == ["x0"]
    assert SimpleDataSource(lambda i: [i, i], 2).next() == (0, 0)


def test_shuffling_draws_each_epoch():
    random = np.random.RandomState(0)
    first, second = random.permutation(10).tolist(), random.permutation(10).tolist()
    source = SimpleDataSource(lambda i: (i, i), 10, shuffle=True, rng=np.random.RandomState(0))
    assert epoch(source) == first
    assert list(source.order) == second
    assert epoch(source) == second
    source.apply_order()
    assert list(source.order) == first
    assert sorted(epoch(SimpleDataSource(lambda i: (i, i), 10, True, np.random.default_rng(0)))) == list(range(10))


def test_sources_need_samples():
    with pytest.raises(ArgumentError, match=r"SimpleDataSource: the number of samples must be .*, got 0"):
        SimpleDataSource(lambda i: (i,), 0)


def test_concatenation():
    source = ConcatDataSource([Squares(2), Squares(3), Squares(1)], shuffle=False)
    assert source.size == 6
    assert source.variables == ("x", "y")
    assert epoch(source) == [0, 1, 0, 1, 4, 0]
    assert sorted(epoch(ConcatDataSource([Squares(2), Squares(3)]))) == [0, 0, 1, 1, 4]
    source.close()


def test_only_like_sources_are_concatenated():
    with pytest.raises(ArgumentError, match="the sources must have the same variables"):
        ConcatDataSource([Squares(2), SimpleDataSource(lambda i: (i,), 2)])
    with pytest.raises(ArgumentError, match="there must be at least one source, got none"):
        ConcatDataSource([])


def test_parts():
    assert epoch(SlicedDataSource(Squares(6), slice_start=2, slice_end=5)) == [4, 9, 16]
    assert epoch(SlicedDataSource(Squares(3))) == [0, 1, 4]
    shuffled = SlicedDataSource(Squares(6), True, np.random.RandomState(0), 2, 5)
    assert sorted(epoch(shuffled)) == [4, 9, 16]


@pytest.mark.parametrize("ends", [(2, 2), (-1, 2), (3, 7)])
def test_parts_lie_within_the_source(ends):
    with pytest.raises(ArgumentError, match=f"must lie in order within 6 samples, got {ends[0]} and {ends[1]}"):
        SlicedDataSource(Squares(6), slice_start=ends[0], slice_end=ends[1])


def test_memory_cache_reads_once():
    source = Squares(4)
    cached = DataSourceWithMemoryCache(source)
    assert epoch(cached) == epoch(cached) == [0, 1, 4, 9]
    assert source.reads == [0, 1, 2, 3]
    shuffled = DataSourceWithMemoryCache(Squares(20), True, np.random.RandomState(0))
    assert epoch(shuffled) != epoch(shuffled)
    cached.close()


# -- files -------------------------------------------------------------------------------------------------------------


def test_file_cache(tmp_path):
    source = Squares(250)
    cached = DataSourceWithFileCache(source, tmp_path / "cache")
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [
        "cache_00000000_00000099.npy",
        "cache_00000100_00000199.npy",
        "cache_00000200_00000249.npy",
        "cache_checksums.json",
        "cache_index.csv",
        "cache_info.csv",
    ]
    assert (tmp_path / "cache/cache_info.csv").read_text() == "x\ny\n"
    assert epoch(cached) == [i * i for i in range(250)]
    cached.close()
    assert epoch(CacheDataSource(tmp_path / "cache")) == [i * i for i in range(250)]
    again = Squares(250)
    assert epoch(DataSourceWithFileCache(again, tmp_path / "cache")) == [i * i for i in range(250)]
    assert again.reads == []


def test_a_cache_of_its_own_is_removed():
    cached = DataSourceWithFileCache(Squares(5), shuffle=True)
    folder = cached._cache._folder
    assert sorted(epoch(cached)) == [0, 1, 4, 9, 16]
    cached.close()
    assert not folder.exists()


def test_a_cache_of_other_data_is_refused(tmp_path):
    DataSourceWithFileCache(Squares(5), tmp_path).close()
    with pytest.raises(DataSourceWithFileCacheError, match="the cache must have the 6 samples of the source, got 5"):
        DataSourceWithFileCache(Squares(6), tmp_path)


def test_values_in_files_have_one_shape(tmp_path):
    source = SimpleDataSource(lambda i: (np.ones(i + 1),), 3)
    with pytest.raises(DataSourceWithFileCacheError, match="the values of x0 must have one shape to be kept in files"):
        DataSourceWithFileCache(source, tmp_path)
    assert not (tmp_path / "cache_index.csv").exists()


def test_normalized_bytes(tmp_path):
    write_cache(SimpleDataSource(lambda i: (np.array([0, 255], np.uint8),), 2), tmp_path)
    assert CacheDataSource(tmp_path, normalize=True).next()[0].tolist() == [0.0, 1.0]
    assert CacheDataSource(tmp_path).next()[0].tolist() == [0, 255]


FIRST, SECOND = "cache_00000000_00000002.npy", "cache_00000003_00000004.npy"


def npy(*arrays):
    file = io.BytesIO()
    for array in arrays:
        np.lib.format.write_array(file, array)
    return file.getvalue()


def npy_of_shape(shape):
    return npy(np.zeros(1)).replace(b"(1,), }" + b" " * 20, f"{shape}, }}".ljust(27).encode())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cache_index.csv", b"../cache.npy,5\n", "line 1: a line must hold a file name and a number, got"),
        ("cache_index.csv", b"", "cache_index.csv: there must be at least one sample, got 0"),
        ("cache_index.csv", b"cache.npy\n", "line 1: a line must hold a file name and a number, got"),
        ("cache_index.csv", f"{FIRST},3\n\n{SECOND},-2\n".encode(), "line 3: a line must hold a file name and a number"),
        ("cache_index.csv", f"{FIRST},{10**30}\n".encode(), "line 1: a line must hold a file name and a number"),
        ("cache_index.csv", b"none.npy,5\n", r"none.npy: a cache must hold an array for each variable, got"),
        ("cache_index.csv", b"\xff,5\n", r"cache_index.csv: the file must be a table in UTF-8, got"),
        ("cache_index.csv", b"'" * 200_000 + b",5\n", r"cache_index.csv: the file must be a table in UTF-8, got"),
        ("cache_index.csv", f"{FIRST},{10**15 - 1}\n".encode(), rf"{FIRST}: there must be 9+ samples, got a file of"),
        ("cache_index.csv", f"{FIRST},3\n".encode(), f"all files of the cache must be listed, got none for {SECOND}"),
        ("cache_index.csv", f"{FIRST},3\n{SECOND},1\n".encode(), f"{SECOND} must hold samples 3 to 3, got another name"),
        ("cache_info.csv", b"", "cache_info.csv: there must be a variable in each line, got an empty file"),
        ("cache_info.csv", b"x\n", rf"{FIRST}: there must be one array for each of \['x'\], got more"),
        ("cache_info.csv", b"x\n\n\ny\nz\n", rf"{FIRST}: a cache must hold an array for each variable, got"),
        (FIRST, b"x" * 9, rf"{FIRST}: a cache must hold an array for each variable, got"),
        (FIRST, npy(np.ones(3)), rf"{FIRST}: a cache must hold an array for each variable, got"),
        (FIRST, npy(np.ones(2), np.ones(2)), rf"{FIRST}: there must be 3 samples of x, got \(2,\)"),
        (FIRST, npy(np.ones(()), np.ones(())), rf"{FIRST}: there must be 3 samples of x, got \(\)"),
        (FIRST, npy(np.array([{}] * 3)), rf"{FIRST}: array x must hold plain numbers, got object"),
        (FIRST, npy_of_shape("(1000000000000000,)"), rf"{FIRST}: array x of shape .* must be stored in full"),
        (FIRST, npy_of_shape("(-3,)"), rf"{FIRST}: array x must have lengths of at least 0, got the shape \(-3,\)"),
        (FIRST, npy_of_shape("(3,"), rf"{FIRST}: array x must have a header that NumPy writes, got"),
    ],
)
def test_damaged_caches_of_others(tmp_path, name, content, message):
    write_cache(Squares(5), tmp_path, samples_per_file=3)
    (tmp_path / "cache_checksums.json").unlink()
    assert epoch(CacheDataSource(tmp_path)) == [0, 1, 4, 9, 16]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        CacheDataSource(tmp_path).next()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (FIRST, npy(np.zeros(3), np.zeros(3)), f"{FIRST}: the file must be as it was saved, got another checksum"),
        ("cache_info.csv", b"y\nx\n", r"cache_info.csv: the variables must be \['x', 'y'\], got \['y', 'x'\]"),
        ("cache_index.csv", f"{SECOND},2\n".encode(), "must hold samples 0 to 1, got another name"),
        ("cache_index.csv", f"{FIRST},3\n".encode(), f"all files of the cache must be listed, got none for {SECOND}"),
        ("cache_checksums.json", b"{}", "cache_checksums.json: the file must hold checksums of the cache, got"),
        ("cache_checksums.json", b"[" * 100_000, "cache_checksums.json: the file must hold checksums of the cache, got"),
    ],
)
def test_damaged_caches_of_ours(tmp_path, name, content, message):
    write_cache(Squares(5), tmp_path, samples_per_file=3)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        CacheDataSource(tmp_path).next()


def test_a_cache_that_lost_its_last_files_is_not_a_smaller_data_set(tmp_path):
    write_cache(Squares(5), tmp_path, samples_per_file=3)
    (tmp_path / SECOND).unlink()
    (tmp_path / "cache_index.csv").write_text(f"{FIRST},3\n")
    with pytest.raises(FileFormatError, match=r"cache_index.csv: the files must be the 2 that were saved, got other lines"):
        CacheDataSource(tmp_path)


def failing(error):
    def load(index):
        if index == 250:
            raise error
        return (np.ones(2),)

    return SimpleDataSource(load, 300)


@pytest.mark.parametrize("error", [RuntimeError("no sample"), KeyboardInterrupt()])
def test_a_failed_cache_leaves_nothing(tmp_path, monkeypatch, error):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(type(error)):
        DataSourceWithFileCache(failing(error))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(type(error)):
        DataSourceWithFileCache(failing(error), tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(type(error)):
        DataSourceWithFileCache(failing(error), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_cache_that_nobody_closes_is_removed_with_its_source(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cached = DataSourceWithFileCache(Squares(5))
    assert len(list(tmp_path.iterdir())) == 1
    del cached
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_the_next_cache_removes_those_of_killed_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import sys, numpy as np\nfrom nn_core.data.file_cache import DataSourceWithFileCache\n"
        "from nn_core.data.source import SimpleDataSource\n"
        "cached = DataSourceWithFileCache(SimpleDataSource(lambda i: (np.ones(2),), 5))\n"
        "print(flush=True)\nsys.stdin.read()\n"
    )
    alive, killed = (
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        for _ in range(2)
    )
    with alive, killed:
        alive.stdout.readline(), killed.stdout.readline()
        assert len(list(tmp_path.iterdir())) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        DataSourceWithFileCache(Squares(5)).close()
        assert len(list(tmp_path.iterdir())) == 1
        alive.stdin.close()
        alive.wait()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_cache(tmp_path):
    with pytest.raises(FileFormatError, match=r"cache_index\.csv: a cache must have this file, got"):
        CacheDataSource(tmp_path)


def test_many_files_are_not_held_at_once(tmp_path):
    write_cache(Squares(100), tmp_path, samples_per_file=1)
    source = CacheDataSource(tmp_path, shuffle=True)
    assert sorted(epoch(source)) == [i * i for i in range(100)]
    assert len(source._open) <= 32
    source.close()


# -- tables ------------------------------------------------------------------------------------------------------------


def test_table(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[0, 255]], np.uint8))
    (tmp_path / "b.csv").write_text("1,2\n3,4\n")
    (tmp_path / "t.csv").write_text("x__0:width,x__1:height,image,y:label\n1,2.5,a.npy,7\n3,4,b.csv,8\n")
    source = CsvDataSource(tmp_path / "t.csv", normalize=True)
    assert source.variables == ("x", "image", "y")
    assert source.size == 2
    x, image, y = source.next()
    assert (x.tolist(), image.tolist(), y.tolist()) == ([1.0, 2.5], [[0.0, 1.0]], [7.0])
    assert source.next()[1].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert CsvDataSource(tmp_path / "t.csv").next()[1].tolist() == [[0, 255]]


def test_names_with_underscores(tmp_path):
    (tmp_path / "t.csv").write_text("my_input__0,my_input__1,label_of_it\n1,2,3\n")
    assert CsvDataSource(tmp_path / "t.csv").variables == ("my_input", "label_of_it")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line must name the columns, got an empty file"),
        ("x,y\n1\n", "line 2 must have 2 cells, got 1"),
        ("x,x\n1,2\n", "variable x must have one column, got 2"),
        (":label\n1\n", "a column must be called x or x__0, got ':label'"),
        ("x__0\nfast\n", "a cell of an element must hold a number, got 'fast'"),
        ("x\nimage.xyz\n", "a cell must hold a number or the path of one of .npy, .csv, .wav, .*, got 'image.xyz'"),
        ("x\nnone.npy\n", "none.npy: the file must hold an array, got"),
        ("y,x__0:width\n1,2\n\n3,fast\n", r"t.csv, line 4, column 'x__0:width': a cell of an element must hold a number"),
        ("y,x\n1,2\n\n3,image.xyz\n", r"t.csv, line 4, column 'x': a cell must hold a number or the path of"),
        ("x__0\n1e300\n", "a cell of an element must hold a number, got '1e300'"),
        ("x\n1e300\n", "a cell must hold a number or the path of one of .npy, .csv, .wav, .*, got '1e300'"),
        ("x\nempty.csv\n", "column 'x': .*empty.csv: the file must hold an array, got: an empty file"),
        ("x\nwords.csv\n", "column 'x': .*words.csv: the file must hold an array, got: could not convert string 'b'"),
        ("x\nlarge.csv\n", "column 'x': .*large.csv: the file must hold an array, got: a number above 3.4"),
        ("x\nhuge.npy\n", "column 'x': .*array huge.npy of shape .* must be stored in full"),
        ("x\nlist.npy\n", "column 'x': .*array list.npy must hold plain numbers, got object"),
        ("x\nheader.npy\n", "column 'x': .*array header.npy must hold plain numbers, got ',f4'"),
        ("x\nzip.npy\n", "column 'x': .*zip.npy: the file must hold an array, got: the magic string is not correct"),
        ("x\n" + "1" * 200_000, r"t.csv: line \d must be part of a table in UTF-8, got: field larger than field limit"),
        ("x\na\0.npy\n", "line 2"),
    ],
)
def test_wrong_tables(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "empty.csv").write_text("# nothing\n\n")
    (tmp_path / "words.csv").write_text("1,2\na,b\n".replace("a", "3"))
    (tmp_path / "large.csv").write_text("1,1e300\n")
    (tmp_path / "huge.npy").write_bytes(npy_of_shape("(1000000000000000,)"))
    (tmp_path / "list.npy").write_bytes(npy(np.array([{}] * 3)))
    (tmp_path / "header.npy").write_bytes(npy(np.ones(3, np.float32)).replace(b"'<f4'", b"',f4'"))
    np.savez(tmp_path / "zip.npz", np.ones(1))
    (tmp_path / "zip.npz").rename(tmp_path / "zip.npy")
    with pytest.raises(FileFormatError, match=message):
        source = CsvDataSource(tmp_path / "t.csv")
        while True:
            source.next()


def test_tables_in_other_encodings_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes("x\n\u00e9".encode("utf-16"))
    with pytest.raises(FileFormatError, match=r"t.csv: line 1 must be part of a table in UTF-8, got"):
        CsvDataSource(tmp_path / "t.csv")


def test_a_table_without_samples(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n")
    with pytest.raises(FileFormatError, match=r"t.csv: there must be at least one sample, got 0"):
        CsvDataSource(tmp_path / "t.csv")


def test_sources_side_by_side():
    first = SimpleDataSource(lambda i: (i,), 5, shuffle=True, rng=np.random.RandomState(0))
    named = TransformedDataSource(SimpleDataSource(lambda i: (10 * i, 20 * i), 5), lambda _, a, b: (a, b), ["a", "b"])
    zipped = ZippedDataSource([TransformedDataSource(Squares(5), lambda _, x, y: (x,), ["x"]), named], shuffle=True)
    assert (zipped.size, list(zipped.variables)) == (5, ["x", "a", "b"])
    zipped.reset()
    samples = [zipped.next() for _ in range(5)]
    assert sorted(samples) == [(i, 10 * i, 20 * i) for i in range(5)]
    with pytest.raises(ArgumentError, match=r"the sources must have one size, got \[5, 3\]"):
        ZippedDataSource([first, Squares(3)])
    with pytest.raises(ArgumentError, match="the sources must have one size, got"):
        ZippedDataSource([])
    with pytest.raises(ArgumentError, match=r"the variables must have different names, got \['x0', 'x0'\]"):
        ZippedDataSource([first, first])


@pytest.mark.parametrize("seed", [0, 1, None])
def test_parts_have_each_sample_once(seed):
    parts = split(SimpleDataSource(lambda i: (i,), 50), 0.5, 0.3, seed=seed)
    assert [part.size for part in parts] == [25, 15, 10]
    found = [[part.next()[0] for _ in range(part.size)] for part in parts]
    dealt = [index for part in found for index in part]
    assert sorted(dealt) == list(range(50))
    assert (dealt == list(range(50))) == (seed is None)
    again = split(SimpleDataSource(lambda i: (i,), 50), 0.5, 0.3, seed=seed)
    assert [[part.next()[0] for _ in range(part.size)] for part in again] == found


@pytest.mark.parametrize(("size", "n"), [(10, 3), (7, 7), (9, 2)])
def test_folds_validate_each_sample_once(size, n):
    validated = []
    for train, valid in folds(SimpleDataSource(lambda i: (i,), size), n):
        seen = [valid.next()[0] for _ in range(valid.size)]
        assert sorted(seen + [train.next()[0] for _ in range(train.size)]) == list(range(size))
        validated += seen
    assert sorted(validated) == list(range(size))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (split, "split: fractions must be positive and leave something for the last part, got"),
        (lambda source: split(source, 0.5, 0.5), r"split: fractions must be positive .* got \(0\.5, 0\.5\)"),
        (lambda source: split(source, -0.5), r"split: fractions must be positive .* got \(-0\.5,\)"),
        (lambda source: split(source, 0.01), r"split: each part must have a sample of 10, got the fractions \(0\.01,\)"),
        (lambda source: folds(source, 1), "folds: n must be from 2 to the 10 samples of the source, got 1"),
        (lambda source: folds(source, 11), "folds: n must be from 2 to the 10 samples of the source, got 11"),
        (lambda source: ChosenDataSource(source, []), "positions must be some of 10, got 0"),
        (lambda source: ChosenDataSource(source, [3, 10]), "positions must be some of 10, got 2 from 3 to 10"),
    ],
)
def test_parts_that_cannot_be(make, message):
    with pytest.raises(ArgumentError, match=message):
        make(SimpleDataSource(lambda i: (i,), 10))
