"""A pytest plugin that gives the CUDA backend a device to run on where there is none: ``-p emulated_device``.

CuPy is replaced by a stand-in over NumPy, and kernels are compiled for the host and run thread by thread. What it
proves is that the sources compute the right numbers, the same in any order of threads and blocks, and that their barriers
and exchanges fit together; with NN_EMULATION_SANITIZE that they stay inside their arrays. It says nothing about speed.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fake_cupy
import machine

sys.modules["cupy"] = fake_cupy.make()

from nn_ext_cuda import plugin  # noqa: E402

plugin.probe = lambda: None

import fake_cublas  # noqa: E402
import fake_cublaslt  # noqa: E402

from nn_ext_cuda.gemm import blas, cublaslt  # noqa: E402

CUBLAS = fake_cublas.FakeCublas()
CUBLASLT = fake_cublaslt.FakeCublasLt()
blas.library = lambda: CUBLAS
cublaslt.library = lambda: CUBLASLT


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test fails by what a launch did wrong, also if a fallback has hidden it."""
    machine.FINDINGS.clear()
    result = yield
    assert machine.FINDINGS == []
    return result
