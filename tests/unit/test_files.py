"""Files of named arrays: round trips, order, atomic writing, damaged and foreign files."""

import io
import json
import threading
import zipfile

import h5py
import numpy as np
import pytest

from nn_core.errors import ArgumentError, DTypeError, FileFormatError
from nn_core.files import FORMATS, Entry, atomic_writer, extension_of, read_entries, write_entries

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def entries():
    return {
        "z/w": Entry(np.arange(6, dtype=np.float32).reshape(2, 3), {"need_grad": True, "index": 0}),
        "a": Entry(np.array(1.5, np.float64), {"need_grad": False, "index": 1}),
        "z/empty": Entry(np.zeros((0, 3), np.float32), {"index": 2}),
        **{f"dtype/{name}": Entry(np.array([0, 1], name), {"index": 3}) for name in DTYPES},
    }


@pytest.fixture(params=sorted(FORMATS))
def extension(request):
    return request.param


def test_round_trip(tmp_path, extension):
    path = tmp_path / f"file{extension}"
    write_entries(path, entries(), extension)
    read = read_entries(path, extension)
    assert set(read) == set(entries())
    for name, entry in entries().items():
        assert read[name].values.dtype == entry.values.dtype, name
        assert read[name].values.shape == entry.values.shape, name
        assert np.array_equal(read[name].values, entry.values), name
        assert read[name].attributes == entry.attributes, name


def test_round_trip_of_an_open_file(extension):
    file = io.BytesIO()
    write_entries(file, entries(), extension)
    file.seek(0)
    assert np.array_equal(read_entries(file, extension)["z/w"].values, entries()["z/w"].values)


def test_strided_arrays_are_written_in_order(tmp_path, extension):
    values = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    write_entries(tmp_path / "file", {"w": Entry(values)}, extension)
    assert np.array_equal(read_entries(tmp_path / "file", extension)["w"].values, values)


def test_files_without_attributes(tmp_path):
    np.savez(tmp_path / "plain.npz", w=np.ones(2), b=np.zeros(3))
    read = read_entries(tmp_path / "plain.npz", ".npz")
    assert {name: entry.attributes for name, entry in read.items()} == {"w": {}, "b": {}}


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="half way"), atomic_writer(path) as file:
        file.write(b"new")
        raise RuntimeError("half way")
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_that_is_not_possible_leaves_nothing(tmp_path, extension):
    with pytest.raises(DTypeError, match="array w must hold plain numbers, got object"):
        write_entries(tmp_path / f"file{extension}", {"w": Entry(np.array([None, "a"]))}, extension)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_the_old_file_can_be_read_until_the_new_one_is_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_writer(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_writers_at_the_same_time_do_not_mix(tmp_path):
    path = tmp_path / "file.npz"
    threads = [
        threading.Thread(target=write_entries, args=(path, {"w": Entry(np.full(1000, i))}, ".npz")) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(read_entries(path, ".npz")["w"].values.tolist())) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file.npz"]


@pytest.mark.parametrize("part", [0, 1, 10, 0.3, 0.7, 0.99])
def test_truncated_files(tmp_path, extension, part):
    path = tmp_path / f"file{extension}"
    write_entries(path, entries(), extension)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole)) if isinstance(part, float) else part])
    with pytest.raises(FileFormatError, match=f"file{extension}"):
        read_entries(path, extension)


@pytest.mark.parametrize("content", [b"\x80\x04\x95pickle", b"hello world, this is text\n" * 10, b"\x00" * 100])
def test_foreign_files(tmp_path, extension, content):
    path = tmp_path / f"file{extension}"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=f"file{extension}"):
        read_entries(path, extension)


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "file.npz", w=np.array([{"a": 1}], dtype=object))
    with pytest.raises(FileFormatError, match=r"file.npz: array w.npy must hold plain numbers, got object"):
        read_entries(tmp_path / "file.npz", ".npz")


def test_an_array_that_claims_more_than_there_is(tmp_path):
    np.savez(tmp_path / "file.npz", w=np.ones(2))
    whole = (tmp_path / "file.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "file.npz") as archive:
        member = archive.read("w.npy").replace(b"(2,), }       ", b"(2000000000,),}")
    with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
        archive.writestr("w.npy", member)
    assert whole != (tmp_path / "file.npz").read_bytes()
    with pytest.raises(
        FileFormatError, match=r"file.npz: array w.npy of shape \(2000000000,\) must lie within the file"
    ):
        read_entries(tmp_path / "file.npz", ".npz")


def test_text_in_hdf5_is_refused(tmp_path):
    with h5py.File(tmp_path / "file.h5", "w") as store:
        store["w"] = "text"
    with pytest.raises(FileFormatError, match=r"file.h5: dataset w must hold plain numbers"):
        read_entries(tmp_path / "file.h5", ".h5")


def test_links_out_of_an_hdf5_file_are_refused(tmp_path):
    (tmp_path / "secret").write_bytes(b"\x00" * 8)
    with h5py.File(tmp_path / "file.h5", "w") as store:
        store.create_dataset("w", (2,), "f4", external=[(str(tmp_path / "secret"), 0, 8)])
    with pytest.raises(FileFormatError, match=r"file.h5: dataset w must hold plain numbers"):
        read_entries(tmp_path / "file.h5", ".h5")


def test_lists_as_attributes_are_refused(tmp_path):
    with h5py.File(tmp_path / "file.h5", "w") as store:
        store["w"] = np.ones(2)
        store["w"].attrs["index"] = [1, 2]
    with pytest.raises(FileFormatError, match=r"file.h5: attribute index of w must be one number"):
        read_entries(tmp_path / "file.h5", ".h5")


def safetensors(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff" * 16, "the header must have from 2 to 100000000 bytes"),
        (safetensors(b"{]"), "whole and in the format .safetensors"),
        (
            safetensors({"w": {"dtype": "F8", "shape": [1], "data_offsets": [0, 1]}}),
            "array w must have one of the dtypes",
        ),
        (
            safetensors({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"),
            "must lie within the file",
        ),
        (
            safetensors({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234"),
            "must lie within the file",
        ),
        (
            safetensors({"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"1234"),
            "must lie within the file",
        ),
        (
            safetensors({"w": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}}, b"1234"),
            "within the file",
        ),
        (safetensors({"w": {"shape": [1]}}), "whole and in the format .safetensors"),
        (safetensors([1, 2]), "the header must name arrays, got list"),
    ],
)
def test_wrong_safetensors(tmp_path, content, message):
    (tmp_path / "file.safetensors").write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"file\.safetensors: .*{message}"):
        read_entries(tmp_path / "file.safetensors", ".safetensors")


def test_attributes_that_name_no_array(tmp_path):
    path = tmp_path / "file.npz"
    write_entries(path, {"w": Entry(np.ones(2))}, ".npz")
    with zipfile.ZipFile(path) as archive:
        attributes = archive.read("__attributes__.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__attributes__.npy", attributes)
    with pytest.raises(FileFormatError, match=r"file\.npz"):
        read_entries(path, ".npz")


def test_extensions():
    assert extension_of("save", "a/b.H5", None) == ".h5"
    assert extension_of("save", io.BytesIO(), ".npz") == ".npz"
    with pytest.raises(
        ArgumentError, match=r"save: the extension must be one of \.h5, \.npz, \.safetensors, got '\.txt'"
    ):
        extension_of("save", "a.txt", None)
    with pytest.raises(ArgumentError, match="save: extension must be given together with an open file, got none"):
        extension_of("save", io.BytesIO(), None)


def test_a_missing_file_is_a_missing_file(tmp_path, extension):
    with pytest.raises(FileNotFoundError):
        read_entries(tmp_path / "none", extension)


def test_safetensors_of_the_reference_package(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    library.save_file({"w": np.arange(4, dtype=np.float32)}, tmp_path / "theirs.safetensors")
    assert read_entries(tmp_path / "theirs.safetensors", ".safetensors")["w"].values.tolist() == [0, 1, 2, 3]
    write_entries(tmp_path / "ours.safetensors", entries(), ".safetensors")
    assert np.array_equal(library.load_file(tmp_path / "ours.safetensors")["z/w"], entries()["z/w"].values)
