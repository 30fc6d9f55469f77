"""An emulated device for tests that need one: CuPy is replaced, and kernels run on the host (see ``emulation``)."""

import shutil
import sys
from pathlib import Path

import pytest

EMULATION = Path(__file__).with_name("emulation")


@pytest.fixture(scope="module")
def device():
    """A stand-in for CuPy, for the modules of this package that are imported while it is there."""
    if shutil.which("g++") is None:
        pytest.skip("the emulated device compiles kernels with g++, which is not installed")
    sys.path.insert(0, str(EMULATION))
    try:
        import fake_cupy

        from nn_ext_cuda import code

        with fake_cupy.installed() as cupy:
            code.compiled.cache_clear()
            yield cupy
        code.compiled.cache_clear()
    finally:
        sys.path.remove(str(EMULATION))
