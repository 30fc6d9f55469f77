"""Plugins that come, go and change while a process lives, and names of plugins that do not load."""

import importlib
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core import ext
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.runtime import installed
from nn_core.errors import ArgumentError, BackendNotFoundError, PluginError, UnknownAttributeError

CELL = '''
from nn_core.ext import FunctionPackage, hookimpl, kernel

@kernel("cell.Scaled")
def scaled(xp, x):
    return x * {factor}

@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec="""
- name: cell.Scaled
  api: cell_scaled{suffix}
  topic: arithmetic
  doc: Scaled.
  inputs: {{x: {{doc: Input.}}}}
  outputs: {{y: {{doc: Output.}}}}
  shape: same_as x
  backward: {{none: for a test}}
""")]
'''


@pytest.fixture(autouse=True)
def forgotten():
    yield
    if "cell" in PLUGINS.names():
        PLUGINS.unregister("cell")
    PLUGINS.refresh()


def cell(factor, suffix=""):
    """Run a cell of a notebook that makes and registers a plugin."""
    module = types.ModuleType("nn_ext_cell")
    exec(CELL.format(factor=factor, suffix=suffix), vars(module))
    for name in ("scaled", "nn_core_functions"):
        vars(module)[name].__module__ = "nn_ext_cell"
    ext.register(module)
    return module


def scaled():
    with nn.context_scope(nn.Context(["cpu", "reference"])):
        y = F.cell_scaled(nn.Variable.from_numpy_array(np.ones(2)))
        y.forward()
    return float(y.d[0])


def test_a_cell_of_a_notebook_may_be_run_again():
    for factor in (2, 3, 3, 5):
        cell(factor)
        assert scaled() == factor
    ext.unregister("cell")
    with pytest.raises(UnknownAttributeError):
        _ = F.cell_scaled


def test_a_cell_that_fails_leaves_the_plugin_as_it_was():
    cell(2)
    with pytest.raises(PluginError, match=r"plugin 'cell' .*must load"):
        cell(3, "\n  nonsense: true")
    assert "cell" in PLUGINS.names() and F.cell_scaled(nn.Variable((2,))).shape == (2,)


def test_a_second_function_for_one_operator_is_still_refused():
    cell(2)
    with pytest.raises(PluginError, match=r"cell.Scaled: a function has one reference kernel, got a second one"):
        ext.kernel("cell.Scaled")(lambda xp, x: x)


def test_a_reloaded_module_counts_after_refresh(install):
    name = install("cell", CELL.format(factor=2, suffix=""))
    ext.refresh()
    assert scaled() == 2
    path = Path(sys.modules[name].__file__)
    path.write_text(path.read_text().replace("x * 2", "x * 7 + 0"))  # of another length: the cache of byte code goes by it
    importlib.reload(sys.modules[name])
    ext.refresh()
    assert scaled() == 7


def test_an_installed_plugin_is_unregistered_until_refresh(install):
    install("cell", CELL.format(factor=2, suffix=""))
    ext.refresh()
    assert scaled() == 2
    ext.unregister("cell")
    assert "cell" not in PLUGINS.names()
    with pytest.raises(UnknownAttributeError):
        _ = F.cell_scaled
    with pytest.raises(BackendNotFoundError, match=r"unregister: a plugin must be registered or installed \(.*\), got 'cell'"):
        ext.unregister("cell")
    cell(4)  # in its place
    assert scaled() == 4
    ext.unregister("cell")
    ext.refresh()
    assert scaled() == 2


def test_the_reference_is_no_plugin_to_unregister():
    with pytest.raises(BackendNotFoundError, match="unregister"):
        ext.unregister("reference")


def test_a_device_that_is_loaded_anew_is_another(install):
    import nn_core.engine.arrays.spaces as spaces

    install.backend("cell", family="CellArray", body="class Own:\n    def __getattr__(self, name): return getattr(np, name)\n")
    ext.refresh()
    backend = PLUGINS.backend("cell")
    backend.namespace = lambda: types.SimpleNamespace(**vars(np))
    first = spaces.space_of(backend, "0")
    assert spaces.space_of(backend, "0") is first
    ext.unregister("cell")
    ext.refresh()
    again = PLUGINS.backend("cell")
    again.namespace = backend.namespace
    assert spaces.space_of(again, "0").backend is again


@pytest.mark.parametrize(
    "index", ["functions.cell_scaled = cell\nsolvers.Cell = cell\nfile_formats..cell = cell\ncommunicators.cell = cell", ""]
)
def test_who_asks_for_something_of_a_plugin_that_failed_is_told(install, index):
    install("cell", "import a_library_that_nobody_has", index=index)
    ext.refresh()
    told = r"plugin 'cell' \(nn-ext-cell 1.0\): must load, got: ModuleNotFoundError: No module named 'a_library"
    other = told if index else r"hint: plugins that did not load may have it: 'cell' \(nn-ext-cell 1.0\); nn-core doctor"
    with pytest.raises(UnknownAttributeError, match=told) as caught:
        _ = F.cell_scaled
    assert "did you mean 'cell_scaled'" not in str(caught.value)
    assert isinstance(caught.value.__cause__, PluginError)
    with pytest.raises(UnknownAttributeError, match=other):
        _ = S.Cell
    with pytest.raises(ArgumentError, match=other):
        ext.find_extension("solvers", "Cell")
    with pytest.raises(ArgumentError, match=other):
        ext.write_entries("weights.cell", {}, ".cell")
    # neither does it count its name among those that there are, nor advise to install what is there
    with pytest.raises(ArgumentError, match=other) as missing:
        nn.load_parameters("weights.cell")
    assert ".cell" not in str(missing.value).partition("got '.cell'")[0]
    with pytest.raises(ArgumentError, match=other) as missing:
        nn.communicators.Communicator(nn.get_current_context(), engine="cell").init()
    assert "cell" not in str(missing.value).partition("got 'cell'")[0]


def test_an_old_index_says_that_pip_copies_it(install):
    install("cell", CELL.format(factor=2, suffix=""), index="functions.cell_other = cell")
    ext.refresh()
    with pytest.raises(UnknownAttributeError, match=r"(?s)the index of plugin 'cell' must list.*install the package again"):
        _ = F.cell_scaled
    assert installed.index()[("functions", "cell_other")] == ("cell",)
