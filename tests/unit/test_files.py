"""Files of named arrays: round trips, order, atomic writing, damaged and foreign files."""

import errno
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import tracemalloc
import zipfile

import h5py
import numpy as np
import pytest

import nn_core as nn
from nn_core.engine.dispatch.plugin_manager import Plugins
from nn_core.engine.runtime.children import python_command
from nn_core.errors import ArgumentError, DiskFullError, DTypeError, FileFormatError
from nn_core.files import FORMATS, Entry, atomic_writer, extension_of, hdf5, probe_subprocess, read_entries, write_entries
from nn_core.parameter import set_parameter
from nn_core.settings import Settings

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


def _narrow_integer(store):
    """Twelve bits in the middle of two bytes."""
    kind = h5py.h5t.STD_I16LE.copy()
    kind.set_precision(12)
    kind.set_offset(2)
    h5py.h5d.create(store.id, b"narrow", kind, h5py.h5s.create_simple((5,))).write(
        h5py.h5s.ALL, h5py.h5s.ALL, np.arange(-2, 3, dtype=np.int16)
    )


def test_hdf5_in_memory_is_read_as_from_a_path(tmp_path):
    path = tmp_path / "file.h5"
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    with h5py.File(path, "w") as store:
        store["plain"], store["number"], store["empty"] = values, np.float64(1.5), np.zeros((0, 2), np.float32)
        store["big"], store["bool"], store["half"] = values.astype(">f8"), values > 3, values.astype(np.float16)
        store.create_dataset("pieces", data=values, chunks=(2, 3))
        store.create_dataset("packed", data=values, compression="gzip", shuffle=True)
        _narrow_integer(store)
    found, expected = read_entries(io.BytesIO(path.read_bytes()), ".h5"), read_entries(path, ".h5")
    assert list(found) == list(expected)
    for name, entry in expected.items():
        assert found[name].values.dtype == entry.values.dtype
        np.testing.assert_array_equal(found[name].values, entry.values)
    assert found["narrow"].values.tolist() == [-2, -1, 0, 1, 2]


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
    threads = [threading.Thread(target=write_entries, args=(path, {"w": Entry(np.full(1000, i))}, ".npz")) for i in range(8)]
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
    with pytest.raises(FileFormatError, match=r"array w.npy of shape \(2000000000,\) must be stored in full"):
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
        (b"\xff" * 16, "the header must stay within the budget of readers, text_bytes 100000000, got"),
        (safetensors(b"{]"), "whole and in the format .safetensors"),
        (
            safetensors({"w": {"dtype": "F8", "shape": [1], "data_offsets": [0, 1]}}),
            "array .w. must have one of the dtypes",
        ),
        (
            safetensors({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"),
            "must be within the file",
        ),
        (
            safetensors({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234"),
            "must be within the file",
        ),
        (
            safetensors({"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"1234"),
            "must be within the file",
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


def flipped(path, old, new):
    """Replace the only place of `old` in a file."""
    whole = path.read_bytes()
    assert whole.count(old) == 1
    path.write_bytes(whole.replace(old, new))


def test_a_flipped_bit_in_the_elements_names_the_array(tmp_path, extension):
    path = tmp_path / f"file{extension}"
    values = np.array([1.25, -77.5, 3.75], np.float32)
    write_entries(path, {"a": Entry(np.ones(3)), "net/w": Entry(values, {"index": 1})}, extension)
    changed = values.copy()
    changed.view(np.uint8)[5] ^= 4
    flipped(path, values.tobytes(), changed.tobytes())
    with pytest.raises(FileFormatError, match=rf"file\{extension}: .*net/w"):
        read_entries(path, extension)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda store: store.move("a/w", "a/v"), "must hold the arrays that were saved, got no a/w, also a/v"),
        (lambda store: store.pop("a/w"), "must hold the arrays that were saved, got no a/w"),
        (lambda store: store.create_dataset("c", data=[1]), "must hold the arrays that were saved, got also c"),
        (lambda store: store["b"].attrs.update(index=7), "array b must be as it was saved, got another checksum"),
        (lambda store: store["a"].attrs.update(index=7), "array a/w must be as it was saved, got another checksum"),
        (lambda store: store["b"].attrs.pop("nn_core_checksum"), "must hold the arrays that were saved, got also b"),
        (lambda store: store.attrs.pop("nn_core_names_0"), "must hold the names of its arrays, got none"),
    ],
)
def test_changed_hdf5(tmp_path, change, message):
    path = tmp_path / "file.h5"
    write_entries(path, {"a/w": Entry(np.ones(3), {"index": 1}, {"index": 0}), "b": Entry(np.ones(2))}, ".h5")
    with h5py.File(path, "a") as store:
        change(store)
    with pytest.raises(FileFormatError, match=message):
        read_entries(path, ".h5")


def test_the_structure_of_hdf5_is_verified_before_the_library_sees_it(tmp_path, monkeypatch):
    path = tmp_path / "file.h5"
    write_entries(path, {"a/w": Entry(np.ones(3))}, ".h5")
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    monkeypatch.setattr(h5py, "File", None)
    with pytest.raises(FileFormatError, match=r"file.h5: the structure must be as it was saved, got another checksum"):
        read_entries(path, ".h5")
    with pytest.raises(FileFormatError, match=r"the structure must be as it was saved, got another checksum"):
        read_entries(io.BytesIO(path.read_bytes()), ".h5")
    path.write_bytes(whole[:40] + whole[41:])
    with pytest.raises(FileFormatError, match=r"file.h5: the file must have \d+ bytes and a table, got \d+"):
        read_entries(path, ".h5")


def test_hdf5_that_another_program_has_extended_has_no_trailer(tmp_path):
    path = tmp_path / "file.h5"
    write_entries(path, {"a/w": Entry(np.ones(3))}, ".h5")
    with h5py.File(path, "a") as store:
        store.attrs["comment"] = "of the root, which holds no array"
    assert read_entries(path, ".h5")["a/w"].values.tolist() == [1, 1, 1]


def test_more_names_than_an_attribute_of_hdf5_holds(tmp_path):
    many = {f"layer{number:04d}/{'w' * 80}": Entry(np.full(1, number)) for number in range(1000)}
    write_entries(tmp_path / "file.h5", many, ".h5")
    assert list(read_entries(tmp_path / "file.h5", ".h5")) == list(many)


def test_renamed_and_lost_arrays_of_an_npz(tmp_path):
    path = tmp_path / "file.npz"
    write_entries(path, {"first": Entry(np.ones(3)), "second": Entry(np.ones(2))}, ".npz")
    path.write_bytes(path.read_bytes().replace(b"second.npy", b"sec0nd.npy"))
    with pytest.raises(FileFormatError, match="must hold the arrays that were saved, got no second, also sec0nd"):
        read_entries(path, ".npz")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"second": {', b'"sec0nd": {', "must hold the arrays that were saved, got no second, also sec0nd"),
        (b'"nn_core"', b'"mm_core"', "must hold the checksums of the arrays, got none"),
        (b'"checksums"', b'"checksams"', "must hold the checksums of the arrays, got none"),
        (b'"attributes"', b'"attribetus"', "must hold the attributes of the arrays, got none"),
        (b'"F64"', b'"I64"', "array second must be as it was saved, got another checksum"),
    ],
)
def test_changed_headers_of_safetensors(tmp_path, old, new, message):
    path = tmp_path / "file.safetensors"
    write_entries(path, {"first": Entry(np.ones(3, np.float32)), "second": Entry(np.ones(2))}, ".safetensors")
    flipped(path, old, new)
    with pytest.raises(FileFormatError, match=message):
        read_entries(path, ".safetensors")


def test_files_of_early_versions_have_no_checksums(tmp_path):
    table = np.frombuffer(json.dumps([["w", {"index": 3}]]).encode(), np.uint8)
    np.savez(tmp_path / "file.npz", __attributes__=table, w=np.ones(2))
    assert read_entries(tmp_path / "file.npz", ".npz")["w"].attributes == {"index": 3}
    with h5py.File(tmp_path / "file.h5", "w") as store:
        store["a/w"] = np.ones(2)
        store["a/w"].attrs["index"] = 3
    assert read_entries(tmp_path / "file.h5", ".h5")["a/w"].attributes == {"index": 3}
    header = {
        "__metadata__": {"attributes": json.dumps([["w", {"index": 3}]])},
        "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }
    (tmp_path / "file.safetensors").write_bytes(safetensors(header, b"1234"))
    assert read_entries(tmp_path / "file.safetensors", ".safetensors")["w"].attributes == {"index": 3}


def chain(store):
    for _ in range(5000):
        store = store.create_group("g")
    store["w"] = np.ones(1)


def circle(store):
    store.create_group("a")["b"] = store


def sparse(store, **settings):
    store.create_dataset("w", (10**15,), "f4", **settings)


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (chain, "groups inside each other must stay within the budget of readers, depth 200, got"),
        (circle, "a/b must be the only name of its contents"),
        (lambda store: store.update(w=h5py.SoftLink("/a")), "/w must be stored in the file, got a link"),
        (lambda store: store.update(w=h5py.ExternalLink("b.h5", "/a")), "/w must be stored in the file, got a link"),
        (lambda store: store.update(w=h5py.Empty("f4")), "dataset w must hold plain numbers, got none"),
        (lambda store: store.update(w=np.dtype("f4")), "/w must be a group or a dataset, got Datatype"),
        (sparse, r"dataset w of shape \(1000000000000000,\) must be stored in full, got 0 bytes"),
        (lambda store: sparse(store, chunks=(10**6,)), "must be stored in full, got 0 bytes"),
        (lambda store: sparse(store, chunks=(10**6,), compression="gzip"), "must be stored in full, got 0 bytes"),
    ],
)
def test_hdf5_that_asks_for_too_much(tmp_path, fill, message):
    with h5py.File(tmp_path / "file.h5", "w") as store:
        fill(store)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=message):
            read_entries(tmp_path / "file.h5", ".h5")
        assert tracemalloc.get_traced_memory()[1] < 5e6 + (tmp_path / "file.h5").stat().st_size
    finally:
        tracemalloc.stop()


def test_hdf5_on_which_the_library_crashes_or_loops(tmp_path, monkeypatch):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as store:
        store.create_dataset("w", data=np.ones(3), chunks=(3,))
    program = "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    monkeypatch.setattr(probe_subprocess, "settings", Settings)
    monkeypatch.setattr(probe_subprocess, "PROGRAM", program + "import os\nos.abort()")
    with pytest.raises(FileFormatError, match=r"file\.h5: the HDF5 library must read it, got a crash \(SIGABRT\): it is dam"):
        read_entries(path, ".h5")
    program += "resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\n"
    monkeypatch.setattr(probe_subprocess, "PROGRAM", program + "while True: pass")
    with path.open("rb") as file, pytest.raises(FileFormatError, match="in 20 s of computing, got no end: it is damaged"):
        read_entries(io.BytesIO(file.read()), ".h5")
    monkeypatch.setattr(probe_subprocess, "settings", lambda: Settings(trust_hdf5=True))
    assert read_entries(path, ".h5")["w"].values.tolist() == [1, 1, 1]


def test_only_hdf5_of_others_that_takes_the_library_is_read_on_trial(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(hdf5, "try_reading", lambda source, n_bytes: tried.append(source))
    path = tmp_path / "file.h5"
    write_entries(path, entries(), ".h5")
    read_entries(path, ".h5")
    read_entries(io.BytesIO(path.read_bytes()), ".h5")
    with h5py.File(path, "w") as store:
        store["w"] = np.ones(3)
    assert read_entries(path, ".h5")["w"].values.tolist() == [1, 1, 1]
    assert tried == []
    with h5py.File(path, "w") as store:
        store.create_dataset("w", data=np.ones(3), chunks=(3,))
    read_entries(path, ".h5")
    read_entries(io.BytesIO(path.read_bytes()), ".h5")
    assert tried == [str(path), path.read_bytes()]


def test_a_trial_reads_what_the_caller_reads(tmp_path):
    """The program of the trial ends well for a sound file, and for one that is refused."""
    path = tmp_path / "file.h5"
    for values in (np.ones(3), np.array([b"text"])):
        with h5py.File(path, "w") as store:
            store["w"] = values
        result = subprocess.run(python_command(probe_subprocess.PROGRAM, "20", str(path)), capture_output=True, check=False)
        assert (result.returncode, result.stderr) == (0, b"")
        result = subprocess.run(python_command(probe_subprocess.PROGRAM, "20", ""), input=path.read_bytes(), check=False)
        assert result.returncode == 0


def test_compressed_hdf5_of_others(tmp_path):
    with h5py.File(tmp_path / "file.h5", "w") as store:
        store.create_dataset("w", data=np.zeros(100_000), chunks=(10_000,), compression="gzip", shuffle=True)
    assert read_entries(tmp_path / "file.h5", ".h5")["w"].values.shape == (100_000,)


def test_safetensors_whose_arrays_share_bytes_or_leave_some_out(tmp_path):
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    path = tmp_path / "file.safetensors"
    path.write_bytes(safetensors({"a": entry, "b": entry}, b"1234"))
    with pytest.raises(FileFormatError, match="the arrays must follow each other, got byte 0 where 4 was expected"):
        read_entries(path, ".safetensors")
    path.write_bytes(safetensors({"a": entry}, b"12345678"))
    with pytest.raises(FileFormatError, match="the arrays must fill the file, got 4 of 8 bytes"):
        read_entries(path, ".safetensors")
    text = json.dumps({"a": entry})
    path.write_bytes(safetensors(f"{text[:-1]}, {text[1:]}".encode(), b"1234"))
    with pytest.raises(FileFormatError, match="arrays must have names of their own, got one name twice"):
        read_entries(path, ".safetensors")


# -- what killed processes leave ---------------------------------------------------------------------------------------


def writing_process(path):
    code = (
        "import sys\nfrom nn_core.files import atomic_writer\n"
        f"with atomic_writer({str(path)!r}) as file:\n"
        "    file.write(b'half')\n    file.flush()\n    print(flush=True)\n    sys.stdin.read()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_the_next_save_removes_partial_files_of_killed_processes_only(tmp_path):
    (tmp_path / ".mine.partial").write_text("of somebody else")
    with writing_process(tmp_path / "alive.npz") as alive, writing_process(tmp_path / "killed.npz") as killed:
        killed.kill()
        killed.wait()
        assert len(list(tmp_path.iterdir())) == 3
        write_entries(tmp_path / "file.npz", {"w": Entry(np.ones(2))}, ".npz")
        names = sorted(path.name for path in tmp_path.iterdir())
        assert len(names) == 3
        assert names[0].startswith(".alive.npz.")
        assert names[1:] == [".mine.partial", "file.npz"]
        alive.stdin.close()
        assert alive.wait() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.partial", "alive.npz", "file.npz"]


def test_extensions():
    assert extension_of("save", "a/b.H5", None) == ".h5"
    assert extension_of("save", io.BytesIO(), ".npz") == ".npz"
    with pytest.raises(ArgumentError, match=r"save: the extension must be one of \.h5, \.npz, \.safetensors.*, got '\.txt'"):
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


def test_the_extension_of_a_path_decides():
    assert extension_of("save", "plain", ".npz") == ".npz"
    assert extension_of("save", "a.npz", ".NPZ") == ".npz"
    with pytest.raises(ArgumentError, match=r"save: the path must have an extension, got none\n  hint: the formats are .h5"):
        extension_of("save", "plain", None)
    with pytest.raises(ArgumentError, match=r"save: extension must be that of the path, '.npz', or be left out, got '.h5'"):
        extension_of("save", "a.npz", ".h5")
    with pytest.raises(ArgumentError, match=r"save: the extension must be one of .h5, .npz, .safetensors.*, got '.xyz'"):
        extension_of("save", "a.xyz", ".h5")


@pytest.mark.parametrize(
    ("extension", "hint"),
    [
        (".nnb", "hint: pip install nn-ext-nnp"),
        (".onnx", "hint: pip install nn-ext-onnx"),
        (".acme", "hint: other formats come from plugins; install the package that wrote the file"),
    ],
)
def test_an_extension_of_no_format_says_what_to_install(monkeypatch, extension, hint):
    monkeypatch.setattr("nn_core.files.formats.PLUGINS", Plugins(dict))
    with pytest.raises(ArgumentError, match=rf"must be one of \.h5, \.npz, \.safetensors.*, got '{extension}'\n  {hint}"):
        extension_of("load_parameters", f"weights{extension}", None)


_FULL_DISK = r"must be room for the whole file, about [1-9].* bytes, got none after [1-9].* bytes"


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors"])
def test_a_full_disk_is_named_and_leaves_the_old_file(extension, tmp_path, monkeypatch):
    path = tmp_path / f"net{extension}"
    with nn.parameter_scope("full", {}):
        set_parameter("w", nn.Variable.from_numpy_array(np.ones((3, 4))))
        nn.save_parameters(path)
        before = path.read_bytes()
        monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
        with pytest.raises(DiskFullError, match=_FULL_DISK) as caught:
            nn.save_parameters(path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before
    assert pickle.loads(pickle.dumps(caught.value)).filename == str(path)
