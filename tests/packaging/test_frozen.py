"""Plugins written against earlier versions of the door, which must keep working: the files in frozen/ never change."""

import importlib.util
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import ext
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import PluginError
from nn_core.ext_utils import get_extension_context
from nn_core.scaffold.stubs import functions_stub

FROZEN = Path(__file__).parent / "frozen"
NAMES = {
    "api_1_operator": "acme",
    "api_1_backend": "tracing",
    "api_1_offers": "plain",
    "api_2_operator": "prefixed",
    "api_2_namespace": "vendor",
}


def test_every_frozen_plugin_is_tested():
    assert {path.stem for path in FROZEN.glob("*.py")} == set(NAMES)


@pytest.fixture
def frozen(request) -> Iterator[object]:
    """A frozen plugin, registered."""
    spec = importlib.util.spec_from_file_location(request.param, FROZEN / f"{request.param}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ext.register(module, NAMES[request.param])
    yield module
    ext.unregister(NAMES[request.param])


@pytest.mark.parametrize("frozen", ["api_1_operator"], indirect=True)
def test_an_operator(frozen):
    x = nn.Variable.from_numpy_array(np.linspace(-2, 2, 5).astype(np.float32), need_grad=True)
    x.g = 0
    y = F.swish_beta(x, beta=2.0)
    y.forward()
    y.backward()
    gate = 1 / (1 + np.exp(-2 * x.d))
    np.testing.assert_allclose(y.d, x.d * gate, rtol=1e-5)
    np.testing.assert_allclose(x.g, gate * (1 + 2 * x.d * (1 - gate)), rtol=1e-4, atol=1e-6)
    assert F.acme.swish_beta is F.swish_beta


@pytest.mark.parametrize("frozen", ["api_1_backend"], indirect=True)
def test_a_backend(frozen):
    with nn.context_scope(get_extension_context("tracing")):
        y = F.tanh(nn.Variable.from_numpy_array(np.ones((2,), np.float32)))
        y.forward()
        np.testing.assert_allclose(y.d, np.tanh(1), rtol=1e-6)
    assert frozen.USES["tanh"] == 1


@pytest.mark.parametrize("frozen", ["api_1_offers"], indirect=True)
def test_a_file_format_and_a_solver(frozen, tmp_path):
    nn.save_parameters(tmp_path / "w.plain", {"w": nn.Variable.from_numpy_array(np.ones((2,), np.float32))})
    assert (tmp_path / "w.plain").read_text() == '{"w": [1.0, 1.0]}'
    assert S.Plain is S.Sgd


def check_cube(function):
    """Values, gradients and second derivatives of x^3."""
    x = nn.Variable.from_numpy_array(np.array([[1.0, -2.0]], np.float32), need_grad=True)
    x.g = 0
    y = function(x)
    y.forward()
    y.backward()
    np.testing.assert_allclose(x.g, 3 * x.d**2)
    (second,) = nn.grad(nn.grad(function(x), x)[0], x)
    second.forward()
    np.testing.assert_allclose(second.d, 6 * x.d)


@pytest.mark.parametrize("frozen", ["api_2_operator"], indirect=True)
def test_an_operator_with_a_prefix(frozen):
    check_cube(F.prefixed_cube)
    assert F.prefixed.cube is F.prefixed_cube


@pytest.mark.parametrize("frozen", ["api_2_namespace"], indirect=True)
def test_a_vendor_namespace(frozen):
    check_cube(F.vendor.cube)
    ones = nn.Variable.from_numpy_array(np.ones((1, 2), np.float32))
    y, z = F.vendor.double(ones), PF.vendor.scale(ones)
    nn.forward_all([y, z])
    assert y.d.tolist() == [[2.0, 2.0]] and z.d.tolist() == [[3.0, 3.0]]
    for module, name in ((F, "cube"), (F, "double"), (PF, "scale")):
        with pytest.raises(AttributeError, match=f"{name!r}, of its own or of a plugin; did you mean 'vendor.{name}'"):
            getattr(module, name)
        assert all(each.isidentifier() for each in dir(module))
    assert pickle.loads(pickle.dumps(F.vendor.cube)) is F.vendor.cube
    assert nn.explain("vendor.cube", nn.Context(["reference"])).winner == "reference:float"
    stub = functions_stub()
    assert "class vendor:\n    @staticmethod\n    def cube(x: Operand, n_outputs" in stub
    assert "import double as _vendor_double\n" in stub and "    double = _vendor_double\n" in stub
    compile(stub, "stub", "exec")


@pytest.mark.parametrize("frozen", ["api_1_operator"], indirect=True)
def test_names_without_a_prefix_are_kept_for_plugins_that_were_written_before_the_rule(frozen):
    assert PLUGINS.plugin("acme").unprefixed == ("swish_beta",)
    ext.unregister("acme")
    try:
        for stated in (2, (1, 2)):
            frozen.PLUGIN_API = stated
            with pytest.raises(PluginError, match=r"acme.SwishBeta: an API name must start with 'acme_', got 'swish_beta'"):
                ext.register(frozen, "acme")
    finally:
        frozen.PLUGIN_API = 1
        ext.register(frozen, "acme")
