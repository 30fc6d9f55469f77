"""Arrays in NumPy's format: what NumPy writes is read alike, all else is refused, and Python parses no text of a file."""

import ast
import io
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nn_core as nn
from nn_core.data import NumpyDataSource
from nn_core.errors import FileFormatError
from nn_core.files.npy import read_npy

DTYPES = ["?", "i1", ">i2", "<u4", "i8", "f2", ">f4", "f8"]


def written(values, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, values, version, allow_pickle=True)
    return file.getvalue()


def with_header(text, version=b"\x01\x00"):
    size = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + size + text.encode("latin1") + bytes(64)


def read(content, **options):
    return read_npy(io.BytesIO(content), "x", len(content), **options)


@given(arrays.arrays(st.sampled_from(DTYPES), arrays.array_shapes(min_dims=0, max_dims=5, min_side=0)), st.sampled_from("CF"))
def test_what_numpy_writes(values, order):
    content = written(np.asarray(values, order=order))
    found, expected = read(content), np.load(io.BytesIO(content))
    assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    assert found.shape == expected.shape and found.flags.f_contiguous == expected.flags.f_contiguous


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(version):
    assert read(written(np.arange(3.0), version)).tolist() == [0, 1, 2]


HEADERS_OF_OTHERS = {
    "keys in another order": "{'shape': (2,), 'fortran_order': False, 'descr': '<f4'}",
    "double quotes": '{"descr": "<f4", "fortran_order": False, "shape": (2,)}',
    "no spaces": "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
    "Python 2": "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }",
    "a name of a dtype": "{'descr': 'float32', 'fortran_order': False, 'shape': (2,), }",
    "spaces around": " {'descr': '<f4', 'fortran_order': False, 'shape': ( 2 , ), } \n",
}


@pytest.mark.parametrize("text", HEADERS_OF_OTHERS.values(), ids=HEADERS_OF_OTHERS)
def test_headers_of_other_writers(text):
    assert read(with_header(text)).shape == (2,)


START = "{'descr': '<f4', 'fortran_order': False, "
DAMAGED = {
    "nothing": "",
    "an expression": "__import__('os').abort()",
    "a call as length": START + "'shape': (len('ab'),)}",
    "no tuple": START + "'shape': (2)}",
    "a list": START + "'shape': [2]}",
    "a list with a comma behind": START + "'shape': [2,]}",
    "no shape": START + "}",
    "a key of strangers": START + "'shape': (2,), 'more': (1,)}",
    "text behind": START + "'shape': (2,)} + {}",
    "two numbers": START + "'shape': (2 3,)}",
    "a number of 5,000 digits": START + f"'shape': ({'1' * 5000},)}}",
    "60,000 signs": START + f"'shape': ({'-' * 60_000}1,)}}",
    "an order": "{'descr': '<f4', 'fortran_order': (1,), 'shape': (2,)}",
    "deep parentheses": "(" * 9_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_damaged_headers(text):
    with pytest.raises(FileFormatError, match=r"array x must have a header that NumPy writes, got .{0,70}\Z"):
        read(with_header(text, b"\x02\x00"))


def test_a_header_that_is_cut():
    with pytest.raises(FileFormatError, match="array x must have a header that NumPy writes"):
        read(written(np.ones(3))[:60])


@pytest.mark.parametrize("dtype", ["c8", "S3", "U3", "M8[s]", "O", "V2", [("a", "f4")], ("f4", (2,))])
def test_other_elements(dtype):
    with pytest.raises(FileFormatError, match="array x must hold plain numbers, got"):
        read(written(np.zeros(2, [("a", dtype)] if isinstance(dtype, tuple) else dtype)))


@pytest.mark.parametrize("descr", ["float", "nothing", "(3,)<f4", "1f4", "<f4,<f4"])
def test_names_of_dtypes(descr):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,)}}"
    if descr == "float":
        assert read(with_header(text)).dtype == np.float64
        return
    with pytest.raises(FileFormatError, match="array x must hold plain numbers, got"):
        read(with_header(text))


def test_texts():
    names = np.array(["a", "bc"])
    assert read(written(names), words=True).tolist() == ["a", "bc"]
    assert read(written(names.astype("S2")), words=True).tolist() == [b"a", b"bc"]
    content = written(names)[:-4] + b"\xff\xff\xff\x7f"
    with pytest.raises(FileFormatError, match="array x must hold characters of Unicode, got numbers above 0x10ffff"):
        read(content, words=True)


@pytest.fixture
def files(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.eye(3), names=np.array(["a", "b", "c"]))
    np.savez(tmp_path / "p.npz", w=np.eye(3))
    return tmp_path


def test_python_parses_nothing(files, monkeypatch):
    """Read without its parser, which raises SystemError in CPython 3.11 when two threads are in it."""
    monkeypatch.setattr(ast, "parse", None)
    assert NumpyDataSource(files / "a.npz").next()[1] == "a"
    with nn.parameter_scope("read"):
        nn.load_parameters(str(files / "p.npz"))


def test_threads_that_read_at_once(files):
    failures = []

    def reads():
        try:
            for _ in range(50):
                NumpyDataSource(files / "a.npz")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=reads) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
