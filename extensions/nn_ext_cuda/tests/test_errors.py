"""Failures before and on a device, by name, with what to do: found by stand-ins for packages, drivers and devices."""

import ctypes

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_ext_cuda import errors
from nn_ext_cuda.driver import why_not


class FakeDriver:
    def __init__(self, *, installed=True, cuda=(13, 0), devices=1, status=0):
        self.is_installed = installed
        self._cuda, self._answer = cuda, (devices, status)

    def cuda_version(self):
        return self._cuda

    def device_count(self):
        return self._answer


CUPY = ["cupy-cuda13x"]


@pytest.mark.parametrize(
    ("packages", "driver", "message"),
    [
        ([], FakeDriver(), "CuPy is not installed: pip install nn-ext-cuda[cuda13]"),
        ([], FakeDriver(cuda=(12, 4)), "CuPy is not installed: pip install nn-ext-cuda[cuda12]"),
        (
            ["cupy-cuda12x", "cupy-cuda13x"],
            FakeDriver(),
            (
                "two CuPys are installed and overwrite each other, cupy-cuda12x and cupy-cuda13x: "
                "pip uninstall cupy-cuda12x cupy-cuda13x, then pip install nn-ext-cuda[cuda13]"
            ),
        ),
        (
            CUPY,
            FakeDriver(installed=False),
            "no CUDA driver was found (libcuda.so.1): install the driver of NVIDIA; pip cannot",
        ),
        (
            CUPY,
            FakeDriver(cuda=(12, 8)),
            "the CUDA driver is too old: cupy-cuda13x needs driver 580.65 or newer, got one that runs CUDA up to 12.8",
        ),
        (CUPY, FakeDriver(devices=0), "no CUDA device"),
        (CUPY, FakeDriver(devices=0, status=100), "no CUDA device"),
        (CUPY, FakeDriver(status=802), "the CUDA driver does not start: cuInit gave error 802"),
        (["cupy"], FakeDriver(cuda=(12, 1)), None),
        (CUPY, FakeDriver(), None),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(monkeypatch, packages, driver, message):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert why_not(packages, driver) == message


def test_hidden_devices_are_told(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert why_not(CUPY, FakeDriver(devices=0)) == "no CUDA device, with CUDA_VISIBLE_DEVICES=''"


def test_a_program_that_names_cuda_is_told_why_not(device, monkeypatch):
    from nn_core.dispatch.plugins import PLUGINS
    from nn_core.errors import BackendUnavailableError
    from nn_core.ext_utils import get_extension_context
    from nn_ext_cuda import plugin

    monkeypatch.setattr(plugin, "why_not", lambda packages, driver: why_not([], FakeDriver()))
    PLUGINS.refresh()
    with pytest.raises(BackendUnavailableError, match=r"CuPy is not installed: pip install nn-ext-cuda\[cuda13\]"):
        get_extension_context("cuda")
    PLUGINS.refresh()


def test_memory_that_runs_out_is_told_with_sizes(cuda, monkeypatch):
    import fake_cupy

    def empty(shape, dtype):
        raise fake_cupy.OutOfMemoryError("Out of memory allocating 4,194,304 bytes")

    monkeypatch.setattr(cuda, "empty", empty, raising=False)
    monkeypatch.setattr(cuda.cuda.runtime, "memGetInfo", lambda: (2**20, 2**30))
    with pytest.raises(errors.DeviceMemoryError, match=r"shape \(1024, 1024\) and dtype float32 \(4.0 MiB\)") as caught:
        F.tanh(nn.NdArray.from_numpy_array(np.zeros((1024, 1024), np.float32)))
    assert "got 1.0 MiB free of 1024.0 MiB" in str(caught.value) and "clear_memory_cache()" in str(caught.value)
    assert isinstance(caught.value, MemoryError)


STICKY = ("cudaErrorIllegalAddress: an illegal memory access", "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure")


@pytest.mark.parametrize("message", STICKY)
def test_a_device_that_is_lost_is_told_apart_from_other_errors(cuda, monkeypatch, message):
    import fake_cupy

    y = F.tanh(nn.NdArray.from_numpy_array(np.ones(3, np.float32)))

    def get(self):
        raise fake_cupy.CUDARuntimeError(message)

    monkeypatch.setattr(fake_cupy.FakeArray, "get", get)
    with pytest.raises(errors.DeviceLostError, match=message.partition(":")[0]) as caught:
        y.data  # noqa: B018 -- reading it copies it
    assert "this process cannot use the device any more" in str(caught.value)
    other = errors.failed("tanh", RuntimeError("cudaErrorInvalidValue: invalid argument"))
    assert not isinstance(other, errors.DeviceLostError)


@pytest.mark.parametrize("kind", [errors.DeviceMemoryError, errors.DeviceLostError])
def test_an_error_that_says_so_already_is_passed_on_with_its_cause(kind):
    cause = OSError("the driver")
    known = kind("tanh: no memory")
    known.__cause__ = cause
    with pytest.raises(kind, match="tanh: no memory") as caught:
        raise errors.failed("tanh", known) from known
    assert caught.value is known
    assert known.__cause__ is cause


def test_a_launch_that_fails_is_told_with_its_name_and_arrays(cuda, monkeypatch):
    import fake_cupy

    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))
    y = F.tanh(x)

    def note(cls, call):
        raise fake_cupy.CUDARuntimeError("cudaErrorInvalidConfiguration: invalid configuration argument")

    monkeypatch.setattr(fake_cupy.Graph, "note", classmethod(note))
    with pytest.raises(errors.DeviceError, match=r"(?s)tanh.*InvalidConfiguration.*arrays \(2, 3\) float32"):
        y.forward()


def test_nvrtc_that_is_missing_is_named_with_the_pip_line(cuda, monkeypatch):
    from nn_ext_cuda import code

    class DynamicLibNotFoundError(RuntimeError):
        pass

    class Module:
        def __init__(self, **options):
            raise DynamicLibNotFoundError('Failure finding "libnvrtc.so"')

    code.compiled.cache_clear()
    monkeypatch.setattr(cuda, "RawModule", Module)
    with pytest.raises(errors.DeviceError, match="NVRTC must be installed") as caught:
        F.tanh(nn.NdArray.from_numpy_array(np.ones(3, np.float32)))
    assert "pip install nvidia-cuda-nvrtc" in str(caught.value)


def test_a_source_that_does_not_compile_is_told():
    class CompileException(Exception):  # noqa: N818 -- as CuPy calls it
        pass

    error = errors.not_compiled("tanh_forward", CompileException("nvrtc: error: identifier is undefined"))
    assert str(error).startswith("tanh_forward: the CUDA source must compile, got CompileException: nvrtc")


def test_cublas_that_is_missing_is_named_with_the_pip_line(monkeypatch):
    from nn_ext_cuda import blas

    def missing(name, *options, **more):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    blas.library.cache_clear()
    with pytest.raises(errors.DeviceError, match="libcublas must be installed") as caught:
        blas.library()
    assert "pip install nvidia-cublas" in str(caught.value)
    blas.library.cache_clear()
