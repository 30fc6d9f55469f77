"""The report of ``nn-core doctor`` about engines."""

from types import ModuleType

import pytest

from nn_core import ext
from nn_core.engine.dispatch.doctor import findings
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.plugin_record import State


def examined(**parts):
    module = ModuleType("nn_ext_line")
    module.PLUGIN_API, module.REQUIRES_CORE = 1, ">=0.1,<0.2"
    info = ext.CommunicatorInfo(name="line", description="a telephone line", target=lambda ctx: None, **parts)
    module.nn_core_communicators = ext.hookimpl(lambda: [info])
    ext.register(module)
    try:
        return list(findings("line", PLUGINS, watched=False))[1]
    finally:
        ext.unregister("line")


def test_an_engine_tells_of_its_libraries():
    row = examined(devices=lambda: ["library: 1", "launcher: none"])
    assert (row.state, row.reason, row.devices) == (State.LOADED, "a telephone line", "library: 1\nlauncher: none")


def broken():
    raise OSError("the line is dead")


@pytest.mark.parametrize(
    ("parts", "state", "reason"),
    [
        ({"probe": lambda: ext.Refusal("no dialling tone")}, State.NO_DEVICE, "no dialling tone"),
        ({"probe": broken}, State.BROKEN, "OSError: the line is dead"),
        ({"devices": broken}, State.BROKEN, "OSError: the line is dead"),
        ({"probe": lambda: None}, State.LOADED, "a telephone line"),
    ],
)
def test_an_engine_that_cannot_work_says_why(parts, state, reason):
    row = examined(**parts)
    assert (row.state, row.reason) == (state, reason)
