"""Files of PyTorch (tools/release/save_torch_files.py): tensors are read, and nothing in the pickles is called."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.files import read_entries, reading_budget
from nn_core.io import load_pytorch_parameters

DATA = Path(__file__).parents[1] / "data" / "torch"
STATE = np.load(DATA / "state.npz")


@pytest.mark.parametrize("name", ["state.pth", "checkpoint.pt", "protocol4.pth"])
def test_the_tensors_of_a_model_are_read(name):
    found = read_entries(DATA / name, Path(name).suffix)
    assert list(found) == STATE.files
    for key, entry in found.items():
        assert entry.values.dtype == STATE[key].dtype
        np.testing.assert_array_equal(entry.values, STATE[key])


def test_dtypes_and_layouts():
    found = {name: entry.values for name, entry in read_entries(DATA / "odd.pth", ".pth").items()}
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(found["turned"], whole.T[1:3])
    np.testing.assert_array_equal(found["part"], whole[1:, ::2])
    np.testing.assert_array_equal(found["inner.7"], np.ones(2))
    assert found["number"] == 2.5 and found["empty"].shape == (0, 3)
    for name in ("parameter", "half", "bfloat16", "float8"):
        np.testing.assert_array_equal(found[name], whole[0])
    np.testing.assert_array_equal(found["uint16"], [0, 1, 40000])
    for name in ("int8", "uint8", "int16", "int32", "int64", "float64", "bool"):
        assert found[name].dtype == name
        np.testing.assert_array_equal(found[name], np.arange(-2, 3).astype(name))


def test_layers_take_their_weights():
    x = nn.Variable((5, 2, 4, 4))
    h = PF.batch_normalization(PF.convolution(x, 3, (3, 3), name="c"), batch_stat=False, name="b")
    PF.affine(h, 4, name="a")
    report = load_pytorch_parameters(DATA / "checkpoint.pt", {"0": "c", "1": "b", "3": "a"})
    assert len(report.loaded) == 8 and not report.missing and not report.unexpected
    np.testing.assert_array_equal(nn.get_parameters()["a/affine/W"].d, STATE["3.weight"].T)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("module.pth", r"must hold a dictionary of tensors, such as model\.state_dict\(\), got 'torch\.nn\..*Sequential'"),
        ("old.pth", r"must be an archive, as torch\.save of PyTorch 1\.6 and later writes it"),
        ("sparse.pth", "tensors must be dense and plain, got one of sparse_tensor"),
    ],
)
def test_other_contents_are_refused(name, message):
    with pytest.raises(FileFormatError, match=message):
        read_entries(DATA / name, ".pth")


def test_files_of_pytorch_are_not_written(tmp_path):
    with pytest.raises(ArgumentError, match=r"must be one in which parameters are written, got '\.pth', which is only read"):
        nn.save_parameters(tmp_path / "w.pth", {"w": nn.Variable((2,))})
    assert not list(tmp_path.iterdir())


class _Runs:
    """An object whose pickle calls a function."""

    def __init__(self, function, *arguments):
        self.called = function, arguments

    def __reduce__(self):
        return self.called


def archive(program, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", program)
        for name, content in members.items():
            made.writestr(f"archive/{name}", content)
    return file


def read(program, **members):
    return read_entries(archive(program, **members), ".pth")


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_in_a_pickle_is_called(tmp_path, protocol):
    target = tmp_path / "made"
    assert read(pickle.dumps({"w": _Runs(os.mkdir, str(target)), "v": _Runs(eval, "1/0")}, protocol)) == {}
    assert not target.exists()
    with pytest.raises(FileFormatError, match=r"got '.*mkdir'"):
        read(pickle.dumps(_Runs(os.mkdir, str(target)), protocol))


#: The start and the end of {"w": a tensor of the storage "0" with 4 numbers}; between them offset, shape and strides.
_HEAD = (
    b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
)
_TAIL = b"\x89NtRs."
NUMBERS = np.arange(4, dtype="<f4").tobytes()


def tensor(offset, shape, strides):
    def texts(numbers):
        return b"(" + b"".join(b"J" + int(n).to_bytes(4, "little", signed=True) for n in numbers) + b"t"

    return _HEAD + b"J" + int(offset).to_bytes(4, "little", signed=True) + texts(shape) + texts(strides) + _TAIL


def test_a_tensor_by_hand():
    values = read(tensor(1, (3,), (1,)), **{"data/0": NUMBERS})["w"].values
    np.testing.assert_array_equal(values, [1, 2, 3])
    swapped = read(tensor(0, (2, 2), (2, 1)), byteorder=b"big", **{"data/0": np.arange(4, dtype=">f4").tobytes()})
    np.testing.assert_array_equal(swapped["w"].values, [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (tensor(2, (3,), (1,)), r"tensor 'w' must be within its 4 elements, got shape \(3,\)"),
        (tensor(0, (2**31 - 1,), (0,)), "must be within its 4 elements"),
        (tensor(0, (2,), (2**31 - 1,)), "must be within its 4 elements"),
        (tensor(-1, (2,), (1,)), "must have lengths and strides of at least 0"),
        (tensor(0, (2,), (-1,)), "must have lengths and strides of at least 0"),
        (tensor(0, (2, 2), (1,)), "must have lengths and strides of at least 0"),
        (tensor(0, (2,), (1,))[:-1], "must have an end|pickle exhausted"),
        (b"\x80\x02i__main__\nX\n.", "must have the instructions of dictionaries of tensors, got INST"),
        (b"\x80\x02\x85\x85.", "must take what it has put"),
        (b"\x80\x02h\x05.", "must be whole"),
        (
            b"\x80\x02X\x07\x00\x00\x00storagectorch\nOddStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ.",
            "must be whole|classes",
        ),
        (pickle.dumps([1, 2], 2), "must hold a dictionary of tensors.* got 'list'"),
    ],
)
def test_damaged_files_are_refused(program, message):
    with pytest.raises(FileFormatError, match=message):
        read(program, **{"data/0": NUMBERS})


def test_values_inside_each_other_stay_within_the_budget():
    doubling = {"w": 1}
    for _ in range(40):
        doubling = {"a": doubling, "b": doubling}
    with reading_budget(nodes=1000), pytest.raises(FileFormatError, match="budget of readers, nodes 1000"):
        read(pickle.dumps(doubling, 2))
    endless = {}
    endless["a"] = endless
    with pytest.raises(FileFormatError, match="budget of readers, depth"):
        read(pickle.dumps(endless, 2))


def test_damage_anywhere_is_refused_or_changes_values_only():
    rng = np.random.default_rng(0)
    whole = (DATA / "odd.pth").read_bytes()
    for _ in range(60):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] = rng.integers(256)
        try:
            read_entries(io.BytesIO(bytes(damaged)), ".pth")
        except FileFormatError:
            continue
