"""Files larger than memory: maps that workers open, groups of rows, tar shards, iterables; exact orders after a resume."""

import gzip
import io
import itertools
import pickle
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

from nn_core.data.array_sources import ArrayDataSource, NumpyDataSource, ParquetDataSource
from nn_core.data.blocks import Blocks, arranged
from nn_core.data.combined_sources import ConcatDataSource, ZippedDataSource
from nn_core.data.file_patterns import files_of
from nn_core.data.iterable import IterableDataSource
from nn_core.data.iterator import DataIterator
from nn_core.data.source import DataSourceWithMemoryCache, SimpleDataSource, SlicedDataSource, TransformedDataSource
from nn_core.data.splitting import split
from nn_core.data.tar import TarDataSource
from nn_core.errors import ArgumentError, FileFormatError, MissingFileError
from tests.unit.data import worker_sources as functions

# -- maps --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path):
    values = np.arange(200_000, dtype=np.float32).reshape(200, 1000)
    np.save(tmp_path / "x.npy", values)
    return tmp_path / "x.npy", values


def test_maps_are_opened_again_and_not_copied(large):
    path, values = large
    source = NumpyDataSource({"x": path}, shuffle=True)
    content = pickle.dumps(source)
    assert len(content) < 10_000
    (sample,) = pickle.loads(content)._sample(7)
    np.testing.assert_array_equal(sample, values[7])
    with DataIterator(source, 20, workers=1, worker_type="process") as data:
        np.testing.assert_array_equal(np.sort(data.next()[0][:, 0]) % 1000, 0)


@pytest.mark.parametrize(
    "part",
    [lambda x: x[3:], lambda x: x[::-2, 5:10], lambda x: np.asarray(x).T[:5].T, lambda x: x.view(np.uint32), lambda x: x[5:6]],
    ids=["rows", "strides", "plain", "another dtype", "one"],
)
def test_parts_of_maps_are_those_parts(large, part):
    path, values = large
    source = ArrayDataSource({"x": part(np.load(path, mmap_mode="r"))})
    content = pickle.dumps(source)
    assert len(content) < 10_000
    np.testing.assert_array_equal(pickle.loads(content)._arrays["x"], part(values))


def test_maps_whose_changes_are_not_in_the_file_are_copied(large):
    path, _ = large
    mapped = np.load(path, mmap_mode="c")
    mapped[0] = -1
    again = pickle.loads(pickle.dumps(ArrayDataSource({"x": mapped})))
    assert again._arrays["x"][0, 0] == -1
    shared = np.load(path, mmap_mode="r+")
    source = ArrayDataSource({"x": shared})
    shared[1] = -2
    content = pickle.dumps(source)
    assert len(content) < 10_000 and pickle.loads(content)._arrays["x"][1, 0] == -2


@pytest.mark.parametrize("change", ["replace", "remove", "write"])
def test_a_file_that_is_another_by_now_is_refused(large, tmp_path, change):
    path, values = large
    content = pickle.dumps(NumpyDataSource({"x": path}))
    if change == "replace":
        np.save(tmp_path / "other.npy", values + 1)
        (tmp_path / "other.npy").replace(path)
    elif change == "remove":
        path.unlink()
    else:
        with path.open("r+b") as file:
            file.seek(200)
            file.write(b"new")
    with pytest.raises(FileFormatError, match=r"x\.npy: the file must (be the one that was opened|still exist), got"):
        pickle.loads(content)


# -- blocks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 3, 10])
def test_a_window_of_blocks_is_finished_before_the_next_begins(window):
    blocks = Blocks(np.repeat(np.arange(7), [4, 0, 3, 5, 1, 6, 2]), window)
    order = arranged(np.random.RandomState(window).permutation(21), blocks)
    assert sorted(order.tolist()) == list(range(21))
    numbers = blocks.numbers[order].tolist()
    windows = [numbers.index(number) for number in dict.fromkeys(numbers)]
    spans = [windows[place] for place in range(0, len(windows), window)] + [21]
    seen = [set(numbers[a:b]) for a, b in itertools.pairwise(spans)]
    assert sum(map(len, seen)) == len(set().union(*seen)) == 6, numbers
    if window == 10:
        assert numbers != sorted(numbers, key=numbers.index)


@pytest.fixture
def parts(tmp_path):
    """Three Parquet files of 10, 11 and 12 rows in groups of 4; x is 100 for each file and the number of the row."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for number in range(3):
        rows = np.arange(10 + number) + 100 * number
        table = pyarrow.table({"x": rows, "wide": [[float(row), -1.0] for row in rows]})
        parquet.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=4)
    return tmp_path


class Counted(ParquetDataSource):
    """Counts the groups that are read, and how many are in memory."""

    n_read = 0
    most_held = 0

    def _read(self, number):
        Counted.n_read += 1
        Counted.most_held = max(Counted.most_held, len(self._held) + 1)
        return super()._read(number)


def epoch(source, **options):
    with DataIterator(source, 1, use_thread=False, **options) as data:
        return [int(data.next()[0].ravel()[0]) for _ in range(source.size)]


ROWS = [100 * number + row for number in range(3) for row in range(10 + number)]


@pytest.mark.parametrize("files", ["folder", "part-*.parquet", "part-{0..2}.parquet", "list"])
def test_several_files_are_one_source(parts, files):
    chosen = {"folder": parts, "list": [parts / f"part-{n}.parquet" for n in range(3)]}.get(files, str(parts / files))
    assert epoch(ParquetDataSource(chosen)) == ROWS


@pytest.mark.parametrize(
    ("make", "n_groups", "held"),
    [
        (lambda folder: Counted(folder, shuffle=True), 9, 1),
        (lambda folder: Counted(folder, shuffle=True, window=3), 9, 3),
        (lambda f: ConcatDataSource([Counted(f / f"part-{n}.parquet") for n in range(3)], shuffle=True), 9, 1),
        (lambda f: ConcatDataSource([Counted(f / f"part-{n}.parquet", shuffle=True) for n in range(3)], shuffle=True), 9, 1),
        (lambda f: TransformedDataSource(Counted(f), functions.augment, shuffle=True), 9, 1),
        (lambda f: DataSourceWithMemoryCache(Counted(f), shuffle=True), 9, 1),
        (lambda f: SlicedDataSource(Counted(f), True, slice_start=8, slice_end=33), 7, 1),
        (lambda f: split(Counted(f), 0.5, seed=None)[1], 5, 1),
        (lambda f: ZippedDataSource([Counted(f, ["x"]), SimpleDataSource(lambda i: i, 33)], True), 9, 1),
    ],
)
def test_each_group_is_read_once_an_epoch(parts, make, n_groups, held):
    Counted.n_read = Counted.most_held = 0
    source = make(parts)
    found = epoch(source)
    assert len(set(found)) == source.size and (found != sorted(found) or n_groups == 5)
    assert (Counted.n_read, Counted.most_held) == (n_groups, held)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_shuffled_course_over_files_is_resumed_exactly(parts, workers):
    def make():
        sources = [ParquetDataSource(parts / f"part-{n}.parquet", shuffle=n == 1, window=2) for n in range(3)]
        return DataIterator(ConcatDataSource(sources, True, np.random.RandomState(3)), 4, workers=workers)

    with make() as data:
        seen = []
        states = []
        for _ in range(20):
            states.append(data.get_state())
            seen.append(data.next()[0].tolist())
    for start in (1, 7, 8, 9, 17):
        with make() as data:
            data.set_state(states[start])
            assert [data.next()[0].tolist() for _ in range(start, 20)] == seen[start:]


def test_columns_of_lists(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    fixed = pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.int16(), 2))
    columns = {"deep": [[[1.0], [2.0]], [[3.0], [4.0]]], "ragged": [[1], [2, 3]], "fixed": fixed, "flag": [True, False]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    source = ParquetDataSource(tmp_path / "a.parquet")
    with DataIterator(source, 2, use_thread=False, padding=0) as data:
        deep, ragged, short, flag = data.next()
    assert deep.shape == (2, 2, 1) and deep[1, 1, 0] == 4 and deep.dtype == np.float64
    assert ragged.tolist() == [[1, 0], [2, 3]] and short.tolist() == [[1, 2], [3, 4]] and short.dtype == np.int16
    assert flag.tolist() == [True, False]


@pytest.mark.parametrize("values", [[1, None], [[1], None], [[1], [None]]])
def test_nulls_do_not_become_numbers(tmp_path, values):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"x": values}), tmp_path / "a.parquet")
    with pytest.raises(FileFormatError, match=r"a.parquet, group 0: the rows must be readable, got: 1 null in"):
        ParquetDataSource(tmp_path / "a.parquet")._sample(0)


def png(value):
    pillow = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pillow.fromarray(np.full((4, 5, 3), value, np.uint8)).save(file, "png")
    return file.getvalue()


def wav(value):
    from nn_core.data.sound import write_sound

    file = io.BytesIO()
    write_sound(file, np.full((6, 1), value, np.int16))
    return file.getvalue()


def test_images_and_sound_in_columns(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "image": [{"bytes": png(value), "path": "a.png"} for value in (3, 9)],
        "sound": [wav(5), wav(7)],
        "code": [b"ab", b"c"],
        "y": [0, 1],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    how = {"image": "image", "sound": "sound", "code": functions.length_of}
    source = pickle.loads(pickle.dumps(ParquetDataSource(tmp_path / "a.parquet", decode=how)))
    with DataIterator(source, 2, use_thread=False) as data:
        image, sound, code, y = data.next()
    assert image.shape == (2, 3, 4, 5) and image[1, 0, 0, 0] == 9 and sound.shape == (2, 6, 1) and sound[0, 0, 0] == 5
    assert code.tolist() == [2, 1] and y.tolist() == [0, 1]
    with pytest.raises(ArgumentError, match=r"decode must be of the columns \['image', .*got \['z'\]"):
        ParquetDataSource(tmp_path / "a.parquet", decode={"z": "image"})
    with pytest.raises(ArgumentError, match="decode must be a function or one of image, sound, got 'video'"):
        ParquetDataSource(tmp_path / "a.parquet", decode={"y": "video"})
    with pytest.raises(FileFormatError, match=r"a.parquet, group 0, row 0, column code: must be decoded, got: "):
        ParquetDataSource(tmp_path / "a.parquet", decode={"code": "image"})._sample(0)


def test_files_are_found_or_missed_by_name(tmp_path):
    for name in ("b.tar", "a.tar", "_a.tar", "c.txt"):
        (tmp_path / name).touch()
    found = files_of("f", tmp_path, (".tar",))
    assert [path.name for path in found] == ["a.tar", "b.tar"]
    assert [path.name for path in files_of("f", str(tmp_path / "{b,a}.tar"), (".tar",))] == ["b.tar", "a.tar"]
    for missing in ("d.tar", "{a..b}x.tar", "d*.tar"):
        with pytest.raises(MissingFileError, match=r"f: files must exist, got none for '.*"):
            files_of("f", str(tmp_path / missing), (".tar",))
    with pytest.raises(MissingFileError, match="f: there must be at least one file, got none"):
        files_of("f", [], (".tar",))


# -- tar files ---------------------------------------------------------------------------------------------------------


def add(file, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    file.addfile(entry, io.BytesIO(content))


@pytest.fixture
def shards(tmp_path):
    """Three tar files with 5 samples each: an image, a number, a text, and JSON that nobody asks for."""
    for number in range(3):
        with tarfile.open(tmp_path / f"shard-{number:03d}.tar", "w") as file:
            for row in range(5):
                index = 5 * number + row
                kind = "png" if row % 2 else "PNG"
                for extension, content in (
                    (kind, png(index)),
                    ("cls", b"%d\n" % index),
                    ("txt", b"text"),
                    ("meta.json", b"{}"),
                ):
                    add(file, f"train/{index:04d}.{extension}", content)
    return tmp_path


NAMES = ("png", "cls", "txt")


def test_shards_are_read_in_order_and_shuffled(shards):
    source = TarDataSource(str(shards / "shard-{000..002}.tar"), NAMES)
    with DataIterator(source, 15, use_thread=False) as data:
        image, label, text = data.next()
    assert image.shape == (15, 3, 4, 5) and image[:, 0, 0, 0].tolist() == label[:, 0].tolist() == list(range(15))
    assert label.dtype == np.int32 and set(text.tolist()) == {"text"}
    orders = [epoch(TarDataSource(shards, ["cls"], True, np.random.RandomState(7), window)) for window in (None, 1)]
    assert all(sorted(order) == list(range(15)) for order in orders)
    assert [len(set(order[:5]) & {*range(5)}) in (0, 5) for order in orders] == [False, True]
    again = pickle.loads(pickle.dumps(source))
    assert again._sample(14)[1] == 14


@pytest.mark.parametrize("workers", [0, 2])
def test_shards_are_resumed_anywhere(shards, workers):
    def make():
        return DataIterator(TarDataSource(shards, ["cls"], True, np.random.RandomState(7), 2), 4, workers=workers)

    with make() as data:
        before = [data.next()[0][:, 0].tolist() for _ in range(5)]
        state = data.get_state()
        after = [data.next()[0][:, 0].tolist() for _ in range(5)]
    assert sorted([*itertools.chain(*before, *after)][:15]) == list(range(15))
    with make() as data:
        data.set_state(state)
        assert [data.next()[0][:, 0].tolist() for _ in range(5)] == after


def test_alternatives_and_decoders_of_shards(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        add(file, "1.png", png(1))
        add(file, "1.json", b'{"label": 3}')
        add(file, "2.bmp", png(2))
        add(file, "2.json", b'{"label": 4}')
    source = TarDataSource(tmp_path / "a.tar", ["png;bmp", "json"], decode={"json": functions.label_of})
    assert source.variables == ("png;bmp", "json")
    assert [int(source._sample(index)[1]) for index in range(2)] == [3, 4]
    with pytest.raises(ArgumentError, match="decode must say how json is decoded, got nothing"):
        TarDataSource(tmp_path / "a.tar", ["json"])
    with pytest.raises(FileFormatError, match=r"a.tar: the sample 2 must have png, got bmp, json"):
        TarDataSource(tmp_path / "a.tar")


def test_damaged_shards_are_refused(shards, tmp_path):
    path = shards / "shard-000.tar"
    content = path.read_bytes()
    for wrong in (gzip.compress(content), b"no tar", content[: len(content) // 3], content[: 1024 * 8]):
        path.write_bytes(wrong)
        with pytest.raises(FileFormatError, match="the file must be a whole tar file that is not compressed, got: "):
            TarDataSource(path, NAMES)
    path.write_bytes(content)
    source = TarDataSource(path, ["cls"])
    start = source._places[2, 2]
    path.write_bytes(content[:start] + b"x" + content[start + 1 :])
    with pytest.raises(FileFormatError, match=r"shard-000.tar: train/0002.cls must be readable, got: "):
        source._sample(2)
    with tarfile.open(tmp_path / "twice.tar", "w") as file:
        add(file, "1.cls", b"1")
        add(file, "1.cls", b"2")
    with pytest.raises(FileFormatError, match=r"must have one file of a kind, got two 1\.cls"):
        TarDataSource(tmp_path / "twice.tar")


# -- iterables ---------------------------------------------------------------------------------------------------------


def counting(start=0):
    starts.append(start)
    yield from ((np.array([number]), number) for number in range(start, 20))


def plain():
    starts.append(0)
    yield from range(20)


starts = []


@pytest.mark.parametrize(("make", "expected"), [(counting, [0, 7]), (plain, [0, 0]), (range(20), [])])
def test_iterables_are_read_in_order_and_from_the_middle(make, expected):
    source = IterableDataSource(make, 20)
    assert (source.size, epoch(source), epoch(source)) == (20, list(range(20)), list(range(20)))
    with DataIterator(source, 7, use_thread=False) as data:
        data.next()
        state = data.get_state()
        following = data.next()[0].ravel().tolist()
    starts.clear()
    again = IterableDataSource(make, 20)
    with DataIterator(again, 7, use_thread=False) as data:
        data.set_state(state)
        assert data.next()[0].ravel().tolist() == following == list(range(7, 14))
    assert starts == expected


def test_iterables_are_counted_and_shuffled_in_windows():
    make = lambda: IterableDataSource(counting, shuffle=True, window=6, rng=np.random.RandomState(3))  # noqa: E731
    source = make()
    assert source.size == 20
    found = epoch(source)
    assert found != list(range(20)) and [sorted(found[k : k + 6]) for k in (0, 6, 12, 18)] == [
        list(range(k, min(k + 6, 20))) for k in (0, 6, 12, 18)
    ]
    with DataIterator(make(), 4, workers=2) as data:
        assert [value for _ in range(5) for value in data.next()[1].tolist()] == found


@pytest.mark.parametrize(
    ("make", "size", "message"),
    [
        (iter([1, 2]), 2, "make must give its samples again for each epoch, got "),
        ([], None, "there must be at least one sample, got none"),
    ],
)
def test_iterables_that_end_with_the_first_epoch_are_refused(make, size, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        IterableDataSource(make, size)


def test_iterables_that_end_early_or_fail_name_the_sample():
    with (
        DataIterator(IterableDataSource(range(3), 5), 5, use_thread=False) as data,
        pytest.raises(FileFormatError, match="there must be 5 samples, got 3") as caught,
    ):
        data.next()
    assert "position 3 of epoch 0" in caught.value.__notes__[0]

    def failing():
        yield from range(3)
        raise OSError("the stream has broken")

    with DataIterator(IterableDataSource(failing, 5), 2, use_thread=False) as data:
        assert data.next()[0].tolist() == [0, 1]
        with pytest.raises(OSError, match="the stream has broken"):
            data.next()


def test_the_folder_of_a_wheel_is_no_pattern(tmp_path):
    path = tmp_path / "a[1]"
    path.mkdir()
    np.save(path / "x.npy", np.zeros(3))
    assert files_of("f", path, (".npy",)) == [Path(path / "x.npy")]
