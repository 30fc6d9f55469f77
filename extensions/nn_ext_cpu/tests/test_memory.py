"""The memory pool of arrays: what is given back is handed out again, and never more is held than was once in use."""

import subprocess
import sys

import numpy as np
import pytest

from nn_core.ext import dtype_of
from nn_ext_cpu import _native

FLOAT = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def nothing_kept():
    """Begin and end without memory kept for later."""
    _native.clear_memory_cache()
    yield
    _native.clear_memory_cache()


def address(array: np.ndarray) -> int:
    return array.ctypes.data


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5, 7), (100, 50, 10)])
def test_arrays_are_as_asked_for(shape: tuple[int, ...], dtype: str) -> None:
    array = _native.empty(shape, dtype_of(dtype))
    assert (array.shape, array.dtype, array.flags.c_contiguous, array.flags.writeable) == (shape, dtype_of(dtype), True, True)
    array[...] = 1


def test_large_arrays_begin_at_a_cache_line() -> None:
    arrays = [_native.empty((n,), FLOAT) for n in (5000, 100_000, 1_000_000)]
    assert [address(array) % 64 for array in arrays] == [0, 0, 0]


def test_memory_that_was_given_back_is_used_again() -> None:
    array = _native.empty((100, 100), FLOAT)
    before = address(array)
    del array
    assert _native.memory_kept() > 0
    assert address(_native.empty((99, 100), FLOAT)) == before


def test_a_view_keeps_the_memory() -> None:
    in_use = _native.memory_in_use()
    view = _native.empty((100, 100), FLOAT)[3:5, ::2]
    assert _native.memory_in_use() > in_use
    del view
    assert _native.memory_in_use() == in_use


def test_no_more_is_held_than_was_in_use_at_one_time() -> None:
    base = _native.memory_in_use()
    for n in range(10_000, 100_000, 1000):
        array = _native.empty((n,), FLOAT)
        del array
        assert _native.memory_in_use() + _native.memory_kept() - base <= 1.2 * 4 * n + 4096


def test_memory_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(MemoryError):
        _native.empty((2**46,), FLOAT)


#: A convolution whose working memory does not fit, beside one that does.
TOO_LARGE = """
import resource
import numpy as np
import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context

nn.set_default_context(get_extension_context("cpu"))
x, w = nn.Variable((1, 3, 16, 16)), nn.Variable.from_numpy_array(np.ones((64, 3, 3, 3), np.float32))
x.d = 1
y = F.convolution(x, w, pad=(1, 1))
y.forward()
expected = y.numpy().tobytes()
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
large = F.convolution(nn.Variable((64, 3, 512, 512)), w, pad=(1, 1))
try:
    large.forward()
except MemoryError as error:
    print(error)
y.forward()
assert y.numpy().tobytes() == expected
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bounds its address space")
def test_a_kernel_without_working_memory_names_its_function():
    found = subprocess.run([sys.executable, "-c", TOO_LARGE], capture_output=True, text=True, check=True).stdout
    for part in ("convolution: its results must fit", "(64, 3, 512, 512)", "hint: take a smaller batch"):
        assert part in found
