"""An emulated device for tests that need one: CuPy is replaced, and kernels run on the host (see ``emulation``)."""

import contextlib
import shutil
import sys
from pathlib import Path

import pytest

import nn_core as nn
from nn_core.engine.arrays import spaces
from nn_core.engine.dispatch.report import forget_fallbacks

EMULATION = Path(__file__).with_name("emulation")
HELPERS = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def device():
    """A stand-in for CuPy, for the modules of this package that are imported while it is there."""
    if shutil.which("g++") is None:
        pytest.skip("the emulated device compiles kernels with g++, which is not installed")
    sys.path[:0] = [str(EMULATION), HELPERS]
    try:
        import fake_cupy

        from nn_ext_cuda.codegen import code

        with fake_cupy.installed() as cupy:
            code.compiled_for.cache_clear()
            yield cupy
        code.compiled_for.cache_clear()
    finally:
        sys.path.remove(str(EMULATION))
        sys.path.remove(HELPERS)


@pytest.fixture(scope="module")
def compiler():
    """A compiler of CUDA, which needs no device."""
    import compilers  # tests that use it have it on the path

    found = compilers.compiler()
    if found is None:
        pytest.skip(compilers.MISSING)
    return found


@pytest.fixture(autouse=True)
def faultless():
    """A test fails by what a launch did wrong, also if a fallback has hidden it."""
    yield
    if "machine" in sys.modules:
        findings, sys.modules["machine"].FINDINGS[:] = list(sys.modules["machine"].FINDINGS), []
        assert findings == []


@pytest.fixture
def cuda(device, monkeypatch):
    """The CUDA backend on the emulated device, as the context of the test; what it has no kernel for runs there too."""
    import fake_cublas
    import fake_cupy

    from nn_core.errors import ArgumentError
    from nn_ext_cuda import plugin
    from nn_ext_cuda.device.faults import FAULTS
    from nn_ext_cuda.gemm import cublaslt

    with contextlib.suppress(ArgumentError):  # of a test that has read arrays by itself
        FAULTS.check()
    monkeypatch.setattr(cublaslt, "library", lambda: None)
    monkeypatch.setattr(plugin, "why_not", lambda packages, driver: None)
    fake_cublas.install(monkeypatch, fake_cublas.FakeCublas())
    fake_cupy.forget_plugins()
    nn.clear_parameters()
    forget_fallbacks()
    nn.seed(313)
    with nn.context_scope(nn.Context(["cuda:float"], plugin.ARRAY_CLASSES[0])):
        yield device
    nn.clear_parameters()
    fake_cupy.forget_plugins()
    for key in [key for key in spaces._SPACES if key[0] == plugin.ARRAY_CLASSES[0]]:
        del spaces._SPACES[key]
