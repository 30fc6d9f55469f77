"""A device and a cuDNN for tests that need them, both emulated on the host."""

import shutil
import sys
from pathlib import Path

import pytest

from nn_core.dispatch.registry import spec_of
from nn_core.ext import ArrayDesc, Call
from nn_core.graph.infer import infer, made_outputs
from nn_core.rules.arguments import resolve_args

FOLDERS = [
    Path(__file__).with_name("emulation"),
    Path(__file__).parents[2] / "nn_ext_cuda" / "tests" / "emulation",
]


@pytest.fixture
def cudnn(monkeypatch):
    """A stand-in for libcudnn, for modules of this package that are imported in the test; CuPy is replaced as well."""
    if shutil.which("g++") is None:
        pytest.skip("the emulated device compiles kernels with g++, which is not installed")
    monkeypatch.setattr(sys, "path", [*map(str, FOLDERS), *sys.path])
    import fake_cudnn
    import fake_cupy

    from nn_ext_cuda import code
    from nn_ext_cudnn import library

    with fake_cupy.installed():
        code.compiled.cache_clear()
        fake = fake_cudnn.make()
        monkeypatch.setattr(library, "library", lambda: fake)
        yield fake
    code.compiled.cache_clear()


@pytest.fixture
def call_of():
    """Makes a call from the name of a function, the shapes of its inputs, and its settings."""

    def make(name, *shapes, dtype="float32", **args):
        spec = spec_of(name)
        shapes = (*shapes, *[None] * (len(spec.inputs) - len(shapes)))
        resolved = resolve_args(spec, args, shapes)
        outputs = made_outputs(spec, infer(spec, resolved, shapes))
        inputs = tuple(None if shape is None else ArrayDesc(shape, dtype) for shape in shapes)
        return Call(spec, resolved, inputs, tuple(ArrayDesc(shape, dtype) for _, shape in outputs), dtype)

    return make
