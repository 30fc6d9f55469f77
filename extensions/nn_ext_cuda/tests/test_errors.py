"""Failures before and on a device, by name, with what to do: found by stand-ins for packages, drivers and devices."""

import ctypes

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.dispatch.doctor import findings
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.plugin_record import State
from nn_ext_cuda import plugin
from nn_ext_cuda.device import errors, toolkit
from nn_ext_cuda.device.driver import why_not
from nn_ext_cuda.device.toolkit import Toolkit, places


class FakeDriver:
    def __init__(self, *, installed=True, cuda=(13, 0), devices=1, status=0):
        self.is_installed = installed
        self._cuda, self._answer = cuda, (devices, status)

    def cuda_version(self):
        return self._cuda

    def device_count(self):
        return self._answer


CUPY = ["cupy-cuda13x"]


def toolkit_in(folder):
    """Makes toolkits that are looked for in one folder."""

    def hidden(name):
        raise OSError(f"{name}: cannot open shared object file")

    return lambda version: Toolkit(version, [folder], hidden)


@pytest.fixture
def folder(tmp_path):
    """A folder with NVRTC and headers, for both versions of CUDA."""
    for name in ("lib64/libnvrtc.so.12", "lib/libnvrtc.so.13", "include/vector_types.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


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
def test_what_is_missing_is_named_with_its_remedy(monkeypatch, folder, packages, driver, message):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert why_not(packages, driver, toolkit_in(folder)) == message


@pytest.mark.parametrize(
    ("packages", "hidden", "message"),
    [
        (
            CUPY,
            ["lib/libnvrtc.so.13"],
            "NVRTC was not found (libnvrtc.so.13), which compiles kernels: pip install nvidia-cuda-nvrtc",
        ),
        (["cupy-cuda12x"], ["lib64/libnvrtc.so.12"], "compiles kernels: pip install nvidia-cuda-nvrtc-cu12"),
        (CUPY, ["include/vector_types.h"], "with which CuPy compiles kernels: pip install cupy-cuda13x[ctk]"),
        (
            ["cupy-cuda12x"],
            ["lib64/libnvrtc.so.12", "include/vector_types.h"],
            "nor the headers of CUDA were found, which compile kernels: pip install cupy-cuda12x[ctk]",
        ),
    ],
)
def test_a_machine_with_nothing_but_a_driver_is_told_what_to_install(folder, packages, hidden, message):
    for name in hidden:
        (folder / name).unlink()
    assert why_not(packages, FakeDriver(), toolkit_in(folder)).endswith(message)


def test_a_library_that_the_loader_finds_will_do(folder):
    (folder / "lib/libnvrtc.so.13").unlink()
    asked = []
    assert Toolkit(13, [folder], asked.append).lacks("cupy-cuda13x") is None
    assert asked == ["libnvrtc.so.13"]


def test_a_cupy_that_was_built_here_brings_its_own_toolkit(tmp_path):
    assert why_not(["cupy"], FakeDriver(), toolkit_in(tmp_path)) is None


@pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"])
def test_toolkits_are_looked_for_where_the_variables_say(monkeypatch, folder, variable):
    monkeypatch.setenv(variable, str(folder))
    assert folder in places(13)


def test_parts_of_wheels_are_found(monkeypatch, tmp_path):
    for name in ("cuda_nvrtc/lib/libnvrtc.so.12", "cuda_runtime/include/vector_types.h", "cu13/lib/libnvrtc.so.13"):
        path = tmp_path / "nvidia" / name
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(toolkit, "_wheels", lambda: [tmp_path / "nvidia"])
    assert toolkit_in(tmp_path)(12).lacks("cupy-cuda12x") is not None
    assert Toolkit(12, [folder for folder in places(12) if tmp_path in folder.parents]).lacks("cupy-cuda12x") is None
    found = Toolkit(13, [folder for folder in places(13) if tmp_path in folder.parents and folder.name == "cu13"])
    assert found.has_nvrtc()
    assert not found.has_headers()


def test_the_doctor_says_which_line_repairs_it(monkeypatch, folder):
    (folder / "lib/libnvrtc.so.13").unlink()
    monkeypatch.setattr(plugin, "installed_cupy", lambda: CUPY)
    monkeypatch.setattr(plugin, "Driver", FakeDriver)
    monkeypatch.setattr(plugin, "why_not", lambda packages, driver: why_not(packages, driver, toolkit_in(folder)))
    PLUGINS.refresh()
    (found,) = (finding for finding in findings("cuda", PLUGINS, watched=False) if finding.name == "cuda")
    PLUGINS.refresh()
    assert found.state is State.NO_DEVICE
    assert "NVRTC was not found (libnvrtc.so.13)" in found.reason
    assert found.advice == "pip install nvidia-cuda-nvrtc"


def test_hidden_devices_are_told(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert why_not(CUPY, FakeDriver(devices=0)) == "no CUDA device, with CUDA_VISIBLE_DEVICES=''"


def test_a_program_that_names_cuda_is_told_why_not(device, monkeypatch):
    from nn_core.engine.dispatch.plugin_manager import PLUGINS
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
    from nn_ext_cuda.codegen import code

    class DynamicLibNotFoundError(RuntimeError):
        pass

    class Module:
        def __init__(self, **options):
            raise DynamicLibNotFoundError('Failure finding "libnvrtc.so"')

    code.compiled_for.cache_clear()
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
    from nn_ext_cuda.gemm import blas

    def missing(name, *options, **more):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    blas.library.cache_clear()
    with pytest.raises(errors.DeviceError, match="libcublas must be installed") as caught:
        blas.library()
    assert "pip install nvidia-cublas" in str(caught.value)
    blas.library.cache_clear()
