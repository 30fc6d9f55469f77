"""Plain HDF5 files that are read without the library, beside what the library reads."""

import io
import random
import struct
import time

import numpy as np
import pytest

import nn_core as nn
import nn_core.files.hdf5 as hdf5
from nn_core.errors import FileFormatError
from nn_core.files.hdf5 import read_hdf5, read_plainly
from nn_core.files.hdf5_plain import PlainFile, UnfamiliarError
from nn_core.files.memory_file import MemoryFile, crc32

h5py = pytest.importorskip("h5py")

ATTRIBUTES = [("need_grad", True), ("index", 3), ("half", 0.5), ("text", "W\u00e4rme"), ("x" * 40, 1)]
DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


def random_file(seed):
    """The bytes of a file of groups, arrays of all types and attributes."""
    rng = random.Random(seed)
    file = io.BytesIO()
    with h5py.File(file, "w") as store:
        for number in range(rng.choice([0, 1, 3, 40, 300])):
            path = "/".join(rng.choice(["a", "block", "w\u00e4rme"]) + str(rng.randrange(9)) for _ in range(rng.randrange(4)))
            shape = tuple(rng.choice([0, 1, 2, 5]) for _ in range(rng.randrange(4)))
            values = np.asarray(np.random.RandomState(number).rand(*shape) * 9).astype(rng.choice(DTYPES))
            dataset = store.create_dataset(f"{path}/n{number}".lstrip("/"), data=values)
            for key, value in rng.sample(ATTRIBUTES, 2):
                dataset.attrs[key] = value
                if not path:
                    store.attrs[key] = number
    return file.getvalue()


def plain(contents):
    found = PlainFile(memoryview(contents))
    return {name: (dataset, group) for name, dataset, group in found.datasets()}, found.attributes


@pytest.mark.parametrize("seed", range(12))
def test_what_is_read_is_what_the_library_reads(seed):
    contents = random_file(seed)
    found, attributes = plain(contents)
    with h5py.File(io.BytesIO(contents)) as store:
        names = []
        store.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        assert sorted(found) == sorted(names)
        assert {key: np.asarray(value).tolist() for key, value in store.attrs.items()} == {
            key: np.asarray(value).tolist() for key, value in attributes.items()
        }
        for name, (dataset, _) in found.items():
            np.testing.assert_array_equal(dataset.values, store[name][()])
            assert dataset.values.dtype == store[name].dtype
            assert {key: np.asarray(value).item() for key, value in dataset.attributes.items()} == {
                key: np.asarray(value).item() for key, value in store[name].attrs.items()
            }


@pytest.mark.parametrize("seed", range(6))
def test_entries_are_those_of_the_library(tmp_path, seed):
    path = tmp_path / "file.h5"
    path.write_bytes(random_file(seed))
    with path.open("rb") as file:
        found = read_hdf5(file)
    library = read_plainly(str(path))
    assert list(found) == list(library)
    for name, entry in found.items():
        np.testing.assert_array_equal(entry.values, library[name].values)
        assert (entry.attributes, entry.group) == (library[name].attributes, library[name].group)
        assert entry.values.flags.writeable


NUMBERS = np.zeros(4, np.float32)


@pytest.mark.parametrize(
    "settings",
    [
        {"data": NUMBERS, "chunks": (2,)},
        {"data": NUMBERS, "compression": "gzip"},
        {"data": NUMBERS.astype(">f4")},
        {"data": NUMBERS.astype("S3")},
        {"data": ["text"], "dtype": h5py.string_dtype()},
        {"shape": (4,), "dtype": "f4", "fillvalue": 2},  # nothing is stored
    ],
)
def test_what_is_not_plain_is_left_to_the_library(settings):
    file = io.BytesIO()
    with h5py.File(file, "w") as store:
        store.create_dataset("w", **settings)
    with pytest.raises(UnfamiliarError):
        plain(file.getvalue())


def test_newer_layouts_are_left_to_the_library():
    file = io.BytesIO()
    with h5py.File(file, "w", libver="latest") as store:
        store["w"] = np.ones(3)
    with pytest.raises(UnfamiliarError):
        plain(file.getvalue())
    assert read_plainly(file.getvalue())["w"].values.tolist() == [1, 1, 1]


def test_links_are_left_to_the_library():
    for link in (h5py.SoftLink("/w"), "hard"):
        file = io.BytesIO()
        with h5py.File(file, "w") as store:
            store["w"] = np.ones(3)
            store["v"] = store["w"] if link == "hard" else link
        with pytest.raises(UnfamiliarError):
            plain(file.getvalue())


def test_damaged_files_end_soon():
    """Whatever is changed: an error of this module or of `struct`, or arrays within the file; no loop, and little memory."""
    contents = random_file(2)
    rng = random.Random(5)
    start, read = time.process_time(), 0
    for _ in range(1500):
        damaged = bytearray(contents)
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(damaged) - 8)
            kind = rng.randrange(3)
            if kind == 0:
                damaged[place] = rng.randrange(256)
            elif kind == 1:
                struct.pack_into("<Q", damaged, place, rng.choice([0, 96, rng.randrange(len(damaged)), 2**63, 2**64 - 1]))
            else:
                del damaged[rng.randrange(len(damaged) // 2, len(damaged)) :]
                damaged += bytes(8)
        try:
            found, _ = plain(bytes(damaged))
            read += 1
        except (UnfamiliarError, struct.error, ValueError, IndexError):
            continue
        assert sum(dataset.values.nbytes for dataset, _ in found.values()) <= 100 * len(damaged)
    assert 0 < read < 1500
    assert time.process_time() - start < 60


def test_arrays_of_a_file_that_changes_afterwards_stay(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as store:
        store["w"] = np.ones(3)
    with path.open("rb") as file:
        found = read_hdf5(file)
    path.write_bytes(bytes(path.stat().st_size))
    assert found["w"].values.tolist() == [1, 1, 1]


def test_large_arrays_are_copied_whole(tmp_path):
    path, rng = tmp_path / "file.h5", np.random.RandomState(0)
    arrays = {f"w{n}": rng.randn(700, 401 + n).astype(np.float32) for n in range(5)}
    with h5py.File(path, "w") as store:
        for name, values in arrays.items():
            store[name] = values
    with path.open("rb") as file:
        found = read_hdf5(file)
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name].values, values)
        assert found[name].values.ctypes.data % 64 == 0


def test_plain_files_of_others_need_no_trial(monkeypatch):
    monkeypatch.setattr(hdf5, "try_reading", lambda *_: pytest.fail("it was tried"))
    assert read_hdf5(io.BytesIO(random_file(3)))


def test_a_file_in_memory():
    file = MemoryFile(memoryview(b"abcdef"), "six")
    assert (file.read(2), file.tell(), file.seek(-1, io.SEEK_END), file.read(), file.read()) == (b"ab", 2, 5, b"f", b"")
    assert (file.seek(-2, io.SEEK_CUR), file.read(9), file.name) == (4, b"ef", "six")
    assert crc32(memoryview(b"abc")) == crc32(b"c", crc32(b"ab")) == 0x352441C2


def saved(path):
    """A file of ours with a trailer, and where the elements of its array are."""
    nn.save_parameters(path, {"w": nn.Variable.from_numpy_array(np.full((50,), 1.5, np.float32))})
    contents = bytearray(path.read_bytes())
    return contents, contents.index(np.full(4, 1.5, "<f4").tobytes())


def test_a_checksum_of_all_that_is_around_a_file_takes_the_place_of_its_own(tmp_path):
    contents, place = saved(tmp_path / "p.h5")
    contents[place : place + 4] = np.float32(2).tobytes()
    with pytest.raises(FileFormatError, match="w must be as it was saved"):
        read_hdf5(MemoryFile(memoryview(contents)))
    assert read_hdf5(MemoryFile(memoryview(contents), is_verified=True))["w"].values[:2].tolist() == [2, 1.5]


def test_such_a_file_for_the_library_is_compared_with_its_own(tmp_path, monkeypatch):
    contents, place = saved(tmp_path / "p.h5")
    contents[place] ^= 1
    monkeypatch.setattr(hdf5, "_read_plain", lambda contents, is_mapped: None)
    with pytest.raises(FileFormatError, match="w must be as it was saved"):
        read_hdf5(MemoryFile(memoryview(contents), is_verified=True))
