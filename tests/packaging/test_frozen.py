"""Plugins written against earlier versions of the door, which must keep working: the files in frozen/ never change."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core import ext
from nn_core.ext_utils import get_extension_context

FROZEN = Path(__file__).parent / "frozen"
NAMES = {"api_1_operator": "acme", "api_1_backend": "tracing", "api_1_offers": "plain"}


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
