"""A backend whose kernels a test plants, to see the conformance kit find what is wrong with them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph import call
from nn_core.engine.runtime import installed
from nn_core.testing import cases, expected, perturbed_inputs
from nn_core.testing.cases import Case, ErrorCase, FunctionCase
from nn_core.testing.samples.registry import Sample, errors_of, samples_of

BACKEND = """
import numpy as np
from nn_core.ext import BackendInfo, hookimpl

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1"

class Planted:
    name = "planted"
    array_class = "CpuCachedArray"

    def __init__(self):
        self.kernels = {}

    def namespace(self):
        return np

    def empty(self, shape, dtype):
        return np.empty(shape, dtype)

    def from_numpy(self, array):
        return array.copy()

    def to_numpy(self, array):
        return array

@hookimpl
def nn_core_backends():
    return [BackendInfo(name="planted", array_class="CpuCachedArray", load=Planted)]
"""


def install(folder: Path, module: str, body: str, name: str) -> None:
    """Make a package with one plugin in `folder`."""
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{module}.py").write_text(body)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[nn_core.extensions]\n{name} = {module}\n")


def forget() -> None:
    """Forget what was prepared and computed with other kernels and rules."""
    call.forget()
    cases._prepared.cache_clear()
    expected.truth_of.cache_clear()
    perturbed_inputs.other_numbers.cache_clear()


class Bed:
    """The place for planted kernels."""

    def plant(self, function: str, kernel: Any) -> None:
        """Let `kernel` run `function` on the backend "planted"."""
        PLUGINS.backend("planted").kernels[function] = kernel
        forget()

    def plant_update(self, solver: str, kernel: Any) -> None:
        """Let `kernel` do the updates of `solver` on the backend "planted"."""
        PLUGINS.backend("planted").updates = {solver: kernel}

    def case(self, function: str, sample: str = "matrix", dtype: str = "float32", backend: str = "planted") -> Case:
        """The case of one sample."""
        spec = spec_of(function)
        return Case(backend, spec, dtype, next(s for s in samples_of(spec) if s.name == sample))

    def case_of(self, function: str, sample: Sample) -> Case:
        """The case of a sample that is not in the tables."""
        return Case("planted", spec_of(function), "float32", sample)

    def function(self, name: str) -> FunctionCase:
        """All samples of a function."""
        return FunctionCase("planted", spec_of(name))

    def error(self, function: str, sample: str) -> ErrorCase:
        """One wrong call."""
        spec = spec_of(function)
        return ErrorCase("planted", spec, next(s for s in errors_of(spec) if s.name == sample))


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bed]:
    install(tmp_path, "planted_backend", BACKEND, "planted")
    monkeypatch.syspath_prepend(tmp_path)
    installed.forget()
    yield Bed()
    monkeypatch.undo()
    PLUGINS.refresh()
    sys.modules.pop("planted_backend", None)
    forget()


class Tanh:
    """A kernel without fault; tests change one thing."""

    def refuse(self, call):
        return None

    def forward(self, call):
        return self.compute

    def backward(self, call, wanted):
        return self.differentiate

    @staticmethod
    def compute(x, y):
        np.tanh(x, out=y)

    @staticmethod
    def differentiate(x, y, dy, dx):
        dx[...] = dy * (1 - y * y)


@pytest.fixture
def tanh() -> type[Tanh]:
    return Tanh
