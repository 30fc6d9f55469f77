"""Extensions by name: contexts, modules, lists."""

import sys

import pytest

from nn_core import ext_utils
from nn_core.communicators import LocalCommunicator, launchers
from nn_core.context import Context
from nn_core.engine.dispatch.plugin_manager import Plugins
from nn_core.errors import ArgumentError, BackendNotFoundError, BackendUnavailableError, PluginError
from nn_core.ext_utils import get_extension_context, import_extension_module, list_extensions


@pytest.fixture(autouse=True)
def fresh_plugins(install, monkeypatch):
    """The plugins that the test installs."""
    monkeypatch.setattr(ext_utils, "PLUGINS", Plugins())


@pytest.fixture
def alone(monkeypatch):
    """No launcher, and no world that was joined before."""
    monkeypatch.setattr(launchers, "_LARGEST", [1])
    monkeypatch.setattr(launchers.os, "environ", {})


@pytest.mark.usefixtures("alone")
def test_the_cpu_is_one_device_for_all_ranks(monkeypatch):
    with pytest.raises(ArgumentError, match=r"must be 0 on the CPU.*, got '1'\n  hint: get_ext.*\('reference'"):
        get_extension_context("reference", device_id=1)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    assert get_extension_context("reference", device_id="3").device_id == "3"
    with pytest.raises(ArgumentError, match=r"must be 0 or the rank of one of 4 processes on the CPU.*, got '4'"):
        get_extension_context("reference", device_id="4")


@pytest.mark.usefixtures("alone")
def test_ranks_that_are_threads_may_name_themselves():
    def program(comm):
        return get_extension_context("reference", device_id=comm.rank).device_id

    assert LocalCommunicator.run(3, program) == ["0", "1", "2"]


@pytest.mark.parametrize("device_id", ["gpu0", "-1", -1, 1.5, "1.0", "²", True, None])
def test_a_device_is_a_whole_number(device_id):
    with pytest.raises(ArgumentError, match=r"Context: device_id must be a whole number of at least 0.*, got"):
        get_extension_context("reference", device_id=device_id)


def test_the_default_context_is_the_backend_alone(install):
    install.backend("acme", family="Acme")
    assert get_extension_context("acme") == Context(["acme:float"], "Acme", "0")
    assert get_extension_context("acme", device_id=2, type_config="half") == Context(["acme:half"], "Acme", "2")


def test_a_backend_makes_its_own_context(install):
    body = "def context(*, lanes=1):\n    return Context(['acme', 'reference'], f'Acme{lanes}')\n"
    install.backend("acme", body=body, more="{'context': context}")
    assert get_extension_context("acme", lanes=4) == Context(["acme", "reference"], "Acme4", "0")


def test_an_unknown_keyword_is_refused_with_those_accepted(install):
    install.backend("acme")
    with pytest.raises(ArgumentError, match="'acme' takes device_id, type_config, got 'devices'"):
        get_extension_context("acme", devices=1)


def test_an_unknown_type_config_is_refused(install):
    install.backend("acme")
    with pytest.raises(ArgumentError, match="type_config: must be one of float, half, bfloat16, double, got 'single'"):
        get_extension_context("acme", type_config="single")


def test_auto_takes_the_best(install):
    install.backend("acme", more="{'priority': 1000}")
    assert get_extension_context("auto", type_config="half").backend == ["acme:half"]


def test_failures_come_when_the_name_is_given(install):
    install("broken", "import a_library_that_nobody_has")
    install.backend("idle", more="{'probe': lambda: Refusal('no device')}")
    with pytest.raises(PluginError, match="a_library_that_nobody_has"):
        get_extension_context("broken")
    with pytest.raises(BackendUnavailableError, match="no device"):
        get_extension_context("idle")
    with pytest.raises(BackendNotFoundError, match="got 'absent'"):
        get_extension_context("absent")


def test_the_module_of_an_extension(install):
    name = install.backend("acme")
    assert import_extension_module("acme") is sys.modules[name]
    assert import_extension_module("reference").__name__ == "nn_core.operators.reference"


def test_the_module_of_a_broken_extension_is_an_error(install):
    install("broken", "import a_library_that_nobody_has")
    with pytest.raises(PluginError, match="ModuleNotFoundError"):
        import_extension_module("broken")


def test_the_list_imports_nothing(install):
    name = install.backend("acme")
    assert {"acme", "reference"} <= set(list_extensions())
    assert name not in sys.modules
