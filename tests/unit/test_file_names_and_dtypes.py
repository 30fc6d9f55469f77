"""Names that files can hold, and dtypes that NumPy lacks."""

import json

import ml_dtypes
import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, DTypeError, FileFormatError
from nn_core.files import FORMATS, Entry, read_entries, reading_budget, write_entries

ALL_BYTES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize(
    "name", ["", "/", "a//b", "/a", "a/", ".", "a/.", "..", "a/../b", "a\0b", "\udc80", "a/\ud800"], ids=ascii
)
def test_names_that_some_format_cannot_hold_are_refused_by_all(name, extension, tmp_path):
    with pytest.raises(ArgumentError, match="write_entries: names must have parts between slashes"):
        write_entries(tmp_path / f"a{extension}", {name: Entry(np.ones(2))}, extension)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("name", ["a.b", "...", "a b", "層/w", "a\nb", "a:0", "-", "x" * 300], ids=ascii)
def test_other_names_come_back(name, extension, tmp_path):
    path = tmp_path / f"a{extension}"
    write_entries(path, {name: Entry(np.ones(2))}, extension)
    assert list(read_entries(path, extension)) == [name]


@pytest.mark.parametrize("extension", FORMATS)
def test_bfloat16_comes_back(extension, tmp_path):
    path = tmp_path / f"a{extension}"
    values = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)  # every number, NaN and infinities
    square, scalar = values.reshape(256, 256).T, values[5].reshape(())
    entries = {"w": Entry(square, {"need_grad": True}), "scalar": Entry(scalar), "empty": Entry(values[:0])}
    write_entries(path, entries, extension)
    back = read_entries(path, extension)
    assert [back[name].values.shape for name in entries] == [(256, 256), (), (0,)]
    found = back["w"]
    assert found.values.dtype == ml_dtypes.bfloat16
    assert found.attributes == {"need_grad": True}
    np.testing.assert_array_equal(found.values.view(np.uint16).T.ravel(), values.view(np.uint16))


@pytest.mark.parametrize("extension", FORMATS)
def test_parameters_of_bfloat16(extension, tmp_path):
    path = str(tmp_path / f"a{extension}")
    with nn.parameter_scope("", {}):
        parameter = nn.parameter.get_parameter_or_create("w", (3,))
        parameter.data.cast("bfloat16")[...] = [1, 2.5, -3]
        nn.save_parameters(path)
    with nn.parameter_scope("", {}):
        nn.load_parameters(path)
        np.testing.assert_array_equal(nn.get_parameters()["w"].d.astype(np.float32), [1, 2.5, -3])


def foreign(path, code, body, shape):
    header = json.dumps({"w": {"dtype": code, "shape": shape, "data_offsets": [0, len(body)]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + body)


@pytest.mark.parametrize(
    ("code", "dtype"),
    [("BF16", ml_dtypes.bfloat16), ("F8_E4M3", ml_dtypes.float8_e4m3fn), ("F8_E5M2", ml_dtypes.float8_e5m2)],
)
def test_published_weights_in_narrow_dtypes(code, dtype, tmp_path):
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.uint8) if code == "BF16" else ALL_BYTES
    path = tmp_path / "a.safetensors"
    expected = bits.view(dtype).astype(np.float32)
    foreign(path, code, bits.tobytes(), list(expected.shape))
    found = read_entries(path, ".safetensors")["w"].values
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_integers_without_end(tmp_path):
    path = tmp_path / "a.safetensors"
    foreign(path, "F32", b"", [10**4000, 10**4000])
    with pytest.raises(FileFormatError, match=r"digits of an integer must stay within .*, digits 19, got 4001"):
        read_entries(path, ".safetensors")
    foreign(path, "I4", b"", [0])
    with pytest.raises(FileFormatError, match=r"must have one of the dtypes BOOL, .*F8_E5M2, got 'I4'"):
        read_entries(path, ".safetensors")


@pytest.mark.parametrize("name", ["../x", ".", "./x", "a/../../x", "a//b", "/a", "a" + "/b" * 200], ids=lambda name: name[:9])
def test_names_that_could_not_be_saved_again_are_refused_in_files_of_others(name, tmp_path):
    np.savez(tmp_path / "a.npz", **{name: np.ones(2)})
    message = "names must have parts between slashes|the parts of the name .* must stay within the budget"
    with pytest.raises(FileFormatError, match=message):
        nn.load_parameters(tmp_path / "a.npz")
    assert not nn.get_parameters(grad_only=False)


def test_the_budget_of_parts_of_names(tmp_path):
    name = "a" + "/b" * 200
    np.savez(tmp_path / "a.npz", **{name: np.ones(2)})
    with reading_budget(depth=300):
        assert list(read_entries(tmp_path / "a.npz", ".npz")) == [name]


@pytest.mark.skipif(np.dtype("g").itemsize == 8, reason="this machine has no long doubles")
@pytest.mark.parametrize("extension", FORMATS)
def test_long_doubles_are_refused(extension, tmp_path):
    with pytest.raises(DTypeError, match="array w must hold plain numbers, got"):
        write_entries(tmp_path / f"a{extension}", {"w": Entry(np.zeros(3, "g"))}, extension)
    np.savez(tmp_path / "a.npz", w=np.zeros(3, "g"))
    with pytest.raises(FileFormatError, match=r"array w.npy must hold plain numbers, got"):
        nn.load_parameters(tmp_path / "a.npz")
