"""Plugins that do not work, and backends that are missing, as programs see them."""

import pytest

NETWORK = """
import nn_core as nn, nn_core.functions as F
nn.set_default_context(nn.Context(['reference']))
y = F.tanh(nn.Variable((2,)))
y.forward()
"""


@pytest.mark.slow
def test_a_broken_plugin_does_not_disturb_the_core(site):
    site.install("nn-ext-crash", "1.0", "crash = nn_ext_crash", {"nn_ext_crash.py": "import a_library_that_nobody_has\n"})
    assert site.run("-c", NETWORK).stderr == ""
    unknown = site.run("-c", NETWORK + "F.taanh\n").stderr
    assert "crash is passed over: ModuleNotFoundError" in unknown
    assert "did you mean 'tanh'?" in unknown
    named = site.run("-c", "from nn_core.ext_utils import *; get_extension_context('crash')").stderr
    assert "ModuleNotFoundError: No module named 'a_library_that_nobody_has'" in named
    assert "PluginError: plugin 'crash' (nn-ext-crash 1.0): must load" in named
    doctor = site.run("-m", "nn_core", "doctor")
    assert doctor.returncode == 1
    assert "broken" in doctor.stdout


@pytest.mark.slow
def test_a_broken_default_backend_leaves_the_reference(site):
    site.install("nn-ext-cpu", "9.9", "cpu = nn_ext_cpu", {"nn_ext_cpu.py": "raise OSError('libcpu.so: bad ELF')\n"})
    result = site.run("-c", NETWORK.replace("nn.Context(['reference'])", "nn.Context()"))
    assert result.returncode == 0, result.stderr
    assert "Tanh runs on reference:float instead of cpu:float" in result.stderr
    assert "libcpu.so: bad ELF" in result.stderr


def test_falling_back_is_never_silent(site):
    code = NETWORK.replace("'reference'", "'absent_here', 'reference'")
    result = site.run("-c", code)
    assert result.returncode == 0, result.stderr
    assert "Tanh runs on reference:float instead of absent_here:float" in result.stderr
    strict = site.run("-c", code, NN_CORE_STRICT="1")
    assert "FallbackError: Tanh: strict mode requires the device family" in strict.stderr
