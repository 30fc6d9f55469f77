"""The support table."""

import types

import numpy as np
import pytest

from nn_core import ext
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.testing.samples import registry
from nn_core.testing.samples.registry import samples_of
from nn_core.testing.support import Cell, Status, support_table, who_runs


def test_the_reference_runs_everything_in_every_dtype():
    table = support_table(["reference"])
    for column in table.columns.values():
        assert {name for name, cell in column.items() if cell.status is Status.REFUSED} == set()
    assert all(samples_of(spec) for spec in table.functions)


def test_the_reference_has_no_column_beside_others():
    table = support_table(["reference"])
    table.columns["acme", "float32"] = dict.fromkeys([spec.name for spec in table.functions], Cell(Status.NATIVE))
    table.columns["acme", "float32"]["Tanh"] = Cell(Status.PARTLY, "takes nothing far from zero")
    page = table.markdown()
    assert "| function | acme float32 |" in page
    assert "The reference runs every function in float32, float64, float16" in page
    assert "- acme float32, Tanh: takes nothing far from zero" in page


def test_the_page_has_a_row_for_each_function():
    table = support_table(["reference"])
    page = table.markdown()
    assert "| function | reference float32 | reference float64 | reference float16 |" in page
    for spec in table.functions:
        assert f"| {spec.name} |" in page


class OnlySingle:
    """A kernel for the reference backend that refuses all but float32."""

    def refuse(self, call):
        return None if call.dtype == "float32" else ext.Refusal("only float32")

    def forward(self, call):
        return lambda x, y: np.tanh(x, out=y)

    def backward(self, call, wanted):
        return None


@pytest.fixture
def overlaid():
    module = types.ModuleType("single")
    package = ext.FunctionPackage(overlays={"reference": {"Tanh": OnlySingle()}})
    module.nn_core_functions = ext.hookimpl(lambda: [package], specname="nn_core_functions")
    ext.register(module)
    yield
    ext.unregister("single")


def test_kernels_of_plugins_for_the_reference_backend_are_native(overlaid):
    assert PLUGINS.registry.kernels_of("single") == [("reference", "Tanh")]
    rows = who_runs(["reference"], ["Tanh", "Sigmoid"])
    assert rows["Tanh"]["reference"]["native"] == ["float32"]
    assert rows["Tanh"]["reference"]["reference"][:2] == ["float64", "float16"]
    assert list(rows["Sigmoid"]["reference"]) == ["reference"]
    assert who_runs(["reference"], []) == {}


def test_functions_without_samples_are_untested_and_not_native(overlaid, monkeypatch):
    monkeypatch.setattr(registry, "_derived", lambda spec: ())
    monkeypatch.setitem(registry._SAMPLES, "Tanh", [])
    assert list(who_runs(["reference"], ["Tanh"])["Tanh"]["reference"]) == ["untested"]
