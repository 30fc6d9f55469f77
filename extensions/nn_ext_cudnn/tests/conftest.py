"""A device and a cuDNN for tests that need them, both emulated on the host; and the header of the true cuDNN."""

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph.infer import infer, made_outputs
from nn_core.ext import ArrayDesc, Call
from nn_core.operators.rules.arguments import resolve_args

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

    from nn_ext_cuda.codegen import code
    from nn_ext_cuda.launch import graphs
    from nn_ext_cudnn import library, precision
    from nn_ext_cudnn.graph import descriptor

    with fake_cupy.installed():
        code.compiled_for.cache_clear()
        descriptor.functions.cache_clear()
        fake = fake_cudnn.make()
        monkeypatch.setattr(library, "library", lambda: fake)
        monkeypatch.setattr(graphs, "BEFORE_CAPTURE", [])  # handles of this library are of no use later
        monkeypatch.setattr(precision, "_autotuning", False)  # it runs engines that a test did not ask for
        yield fake
    code.compiled_for.cache_clear()
    descriptor.functions.cache_clear()


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


class Header:
    """A header of cuDNN."""

    def __init__(self, text):
        self._text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)

    def numbers(self, prefix):
        """Values of the constants of enumerations whose names begin with `prefix`, by the rest of the name."""
        found = re.findall(rf"\b{prefix}(\w+)(?:\s+CUDNN_DEPRECATED_ENUM)?\s*=\s*(\d+)", self._text)
        return {name: int(value) for name, value in found}

    def n_parameters(self, function):
        """Number of parameters of a function."""
        (inside,) = re.findall(rf"\b{function}\(([^)]*)\);", self._text)
        return len(inside.split(","))


@pytest.fixture(scope="session")
def header():
    """A function from the name of a header to the `Header`."""
    spec = find_spec("nvidia.cudnn") if find_spec("nvidia") else None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the headers of cuDNN are not installed (package nvidia-cudnn-cu12 or nvidia-cudnn-cu13)")
    folder = Path(next(iter(spec.submodule_search_locations))) / "include"
    return lambda name: Header((folder / name).read_text())


@pytest.fixture
def backend(cudnn, monkeypatch):
    """The context of the cuDNN backend in half precision, on the emulated device."""
    import fake_cublas
    import fake_cupy

    import nn_core as nn
    from nn_core.engine.arrays import spaces
    from nn_core.engine.dispatch.plugin_manager import PLUGINS
    from nn_core.engine.dispatch.report import forget_fallbacks
    from nn_ext_cuda import plugin as cuda
    from nn_ext_cuda.gemm import cublaslt
    from nn_ext_cudnn import library

    monkeypatch.setattr(cublaslt, "library", lambda: None)
    monkeypatch.setattr(cuda, "why_not", lambda packages, driver: None)
    monkeypatch.setattr(library, "is_present", lambda: True)  # the core may hold the probe of the plugin already
    fake_cublas.install(monkeypatch, fake_cublas.FakeCublas())
    fake_cupy.forget_plugins()
    assert PLUGINS.backend("cudnn").name == "cudnn", "without it, the next backend of the context would be tested"
    nn.clear_parameters()
    forget_fallbacks()
    nn.seed(313)
    context = nn.Context(["cudnn:half", "cuda:half"], cuda.ARRAY_CLASSES[0])
    with nn.context_scope(context):
        yield context
    nn.clear_parameters()
    fake_cupy.forget_plugins()
    for key in [key for key in spaces._SPACES if key[0] == cuda.ARRAY_CLASSES[0]]:
        del spaces._SPACES[key]


@pytest.fixture
def layouts(backend, monkeypatch):
    """A function that runs another one, and returns how often weights were laid out by it, in recorded graphs too."""
    import fake_cupy

    from nn_ext_cuda.memory.derived_weights import Derived

    runs = []

    class Counted:
        def __init__(self, made):
            self.made = made

        def run(self):
            fake_cupy.Graph.note(lambda: runs.append(self))
            self.made.run()

    start = Derived.__init__

    def counting(self, *arguments):
        start(self, *arguments)
        self.made = Counted(self.made)

    def during(run):
        runs.clear()
        run()
        return len(runs)

    monkeypatch.setattr(Derived, "__init__", counting)
    return during
