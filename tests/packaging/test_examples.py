"""The example plugins, installed and uninstalled by pip."""

import pytest

SWISH = """
import numpy as np, nn_core as nn, nn_core.functions as F
x = nn.Variable.from_numpy_array(np.linspace(-2, 2, 5).astype(np.float32), need_grad=True)
x.g = 0
y = F.acme_swish_beta(x, beta=2.0)
y.forward()
y.backward()
gate = 1 / (1 + np.exp(-2 * x.d))
np.testing.assert_allclose(y.d, x.d * gate, rtol=1e-5)
np.testing.assert_allclose(x.g, gate * (1 + 2 * x.d * (1 - gate)), rtol=1e-4, atol=1e-6)
assert "acme_swish_beta" in dir(F)
assert F.acme_swish_beta.__doc__.startswith("Swish")
from nn_core.engine.dispatch.explain import explain
print(explain(y))
"""
TRACED = """
import nn_core as nn, nn_core.functions as F
from nn_core.ext_utils import get_extension_context, list_extensions
assert "tracing" in list_extensions()
with nn.context_scope(get_extension_context("tracing", type_config="half")):
    y = F.tanh(nn.Variable((2,)))
    y.forward()
import nn_ext_tracing
assert nn_ext_tracing.USES["tanh"] == 1, nn_ext_tracing.USES
"""


@pytest.mark.slow
def test_the_operator_comes_and_goes_with_its_package(site):
    assert "has no function 'acme_swish_beta'" in site.run("-c", SWISH).stderr
    package = site.install_example("plugin_minimal")
    assert "acme.SwishBeta" in site.output(SWISH)
    assert "acme.SwishBeta" in site.run("-m", "nn_core", "doctor").stdout
    site.uninstall(package)
    assert "has no function 'acme_swish_beta'" in site.run("-c", SWISH).stderr


@pytest.mark.slow
def test_the_operator_gets_a_type_stub(site, tmp_path):
    site.install_example("plugin_minimal")
    result = site.run("-m", "nn_core", "stubs", "--folder", str(tmp_path / "typings"))
    assert result.returncode == 0, result.stderr
    package = tmp_path / "typings" / "nn_core-stubs"
    assert (package / "py.typed").read_text() == "partial\n"
    stub = (package / "functions" / "__init__.pyi").read_text()
    assert "def acme_swish_beta(x: Operand, beta: float = ...," in stub
    assert "from nn_core.functions.activation import tanh as tanh" in stub
    compile(stub, "stub", "exec")


@pytest.mark.slow
def test_the_backend_comes_and_goes_with_its_package(site):
    package = site.install_example("plugin_backend")
    site.output(TRACED)
    assert "tracing" in site.run("-m", "nn_core", "doctor", "tracing").stdout
    site.uninstall(package)
    result = site.run("-c", "from nn_core.ext_utils import *; get_extension_context('tracing')")
    assert "got 'tracing'" in result.stderr
    assert "nn-core doctor lists the backends" in result.stderr


@pytest.mark.slow
def test_of_two_backends_the_one_with_the_higher_priority_is_chosen(site):
    source = (
        "from nn_core.ext import *\n"
        "from nn_ext_tracing import TracingBackend\n"
        "PLUGIN_API, REQUIRES_CORE = 1, '>=0.1'\n"
        "class Better(TracingBackend):\n"
        "    name = 'better'\n"
        "@hookimpl\n"
        "def nn_core_backends():\n"
        "    return [BackendInfo(name='better', array_class='TracedArray', load=Better, priority=1000)]\n"
    )
    site.install_example("plugin_backend")
    site.install("nn-ext-better", "1.0", "better = nn_ext_better", {"nn_ext_better.py": source})
    best = "from nn_core.ext_utils import *; print(get_extension_context('auto').backend)"
    assert site.output(best) == "['better:float']\n"
    site.uninstall("nn-ext-better")
    assert "better" not in site.output(best)
