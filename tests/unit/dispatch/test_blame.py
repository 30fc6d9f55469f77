"""Exceptions in everything that a plugin supplies: they name the plugin, and none ends the program but those meant for it."""

import importlib
import io
import os
import signal
import sys
import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import PluginError, ShapeError
from nn_core.ext_utils import get_extension_context
from nn_core.files.formats import read_entries, write_entries
from nn_core.utils.inspection import view

MODULE = '''
import numpy as np

class Fault:
    """An exception, and where it is raised."""
    place, error = None, None

def at(place, result=None):
    if Fault.place == place:
        raise Fault.error
    return result

class Runner:
    def __init__(self, function):
        self.function = function
    def __call__(self, *arrays):
        at("runner")
        self.function(*arrays)
    def bind(self, *arrays):
        at("bind")
        def step():
            at("step")
            self.function(*arrays)
        return step

def negate(x, y):
    np.negative(x, out=y)

class Kernel:
    def refuse(self, call):
        return at("refuse")
    def layout(self, call):
        return at("layout", "contiguous")
    def strided(self, call):
        return at("strided", False)
    def forward(self, call):
        at("forward")
        return Runner(negate)
    def backward(self, call, wanted):
        at("backward")
        return None

class Array(np.ndarray):
    pass

class Host:
    name, array_class, kernels = "acme", "AcmeArray", {"acme.Negate": Kernel()}
    class Space:
        def __getattr__(self, name):
            return getattr(np, name)
    def namespace(self):
        at("namespace")
        return self.Space()
    def empty(self, shape, dtype):
        at("empty")
        return np.empty(shape, dtype)
    def from_numpy(self, array):
        at("from_numpy")
        return array.copy()
    def to_numpy(self, array):
        at("to_numpy")
        return array
    def use_device(self, device_id):
        at("use_device")
    def notes(self, api):
        return at("notes", ["a note"])

@hookimpl
def nn_core_backends():
    return [BackendInfo(name="acme", array_class="AcmeArray", load=Host)]

@shape_rule("acme.Negate")
def negate_shape(x):
    return (at("shape", x),)

@gradient("acme.Negate")
def negate_gradient(F, g):
    at("gradient")
    return F.mul_scalar(g.grad, val=-1.0)

@kernel("acme.Negate")
def negate_reference(xp, x):
    at("reference")
    return -x

@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=SPEC, overlays={"cpu": {"Sinh": Overlay()}})]

class Overlay(Kernel):
    def refuse(self, call):
        return at("overlay", Refusal("only faults"))

SPEC = """
- name: acme.Negate
  api: acme_negate
  topic: arithmetic
  doc: Negative.
  inputs: {x: {doc: Input.}}
  outputs: {y: {doc: Output.}}
  shape: rule
  backward: {needs: []}
"""

class Fusion:
    chain, function = ("Sigmoid", "ReLU"), "Sigmoid"
    def settings(self, *args):
        return at("settings", {})

class View:
    def view(self, v):
        return at("view", "seen")

def read(file):
    return at("read", {})

def write(file, entries):
    at("write")

@hookimpl
def nn_core_passes():
    return [PassInfo(name="acme_fusion", role="fusion", target=Fusion)]

@hookimpl
def nn_core_viewers():
    return [ViewerInfo(name="View", role="viewer", target=View)]

@hookimpl
def nn_core_file_formats():
    return [FileFormatInfo(name="acme", extensions=(".acme",), read=read, write=write)]
'''
INDEX = """functions.acme_negate = acme
backends.acme = acme
overlays.cpu = acme
passes.acme_fusion = acme
viewers.View = acme
file_formats..acme = acme"""


class Ends(BaseException):
    """Not an Exception."""


@pytest.fixture
def refreshed():
    """Forgets the plugin after it is uninstalled."""
    yield
    PLUGINS.refresh()


@pytest.fixture
def fault(refreshed, install):
    """Lets the plugin acme raise something at a place."""
    name = install("acme", MODULE, index=INDEX)
    PLUGINS.refresh()
    PLUGINS.backend("acme")
    module = importlib.import_module(name)

    def raise_at(place, error):
        module.Fault.place, module.Fault.error = place, error

    yield raise_at
    module.Fault.place = None


def acme():
    return nn.context_scope(get_extension_context("acme"))


def x():
    return nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)


def forward(times=1):
    with acme():
        y = F.acme_negate(x())
        for _ in range(times):
            y.forward()


def at_once():
    with acme(), nn.auto_forward():
        F.acme_negate(x())


def backward():
    with acme():
        y = F.sum(F.acme_negate(x()))
        y.forward()
        y.backward()


def differentiated():
    v = x()
    nn.grad([F.acme_negate(v)], [v])


def fused():
    F.relu(F.sigmoid(x())).forward(clear_buffer=True)


def overlaid():
    with nn.context_scope(nn.Context(["cpu", "reference"])):
        F.sinh(x()).forward()


def referenced():
    with nn.context_scope(nn.Context(["reference"])):
        F.acme_negate(x()).forward()


PLACES = {
    "refuse": forward, "layout": forward, "strided": forward, "forward": forward, "runner": forward, "empty": forward,
    "bind": lambda: forward(3), "step": lambda: forward(3), "from_numpy": forward, "use_device": forward, "shape": forward,
    "namespace": forward, "backward": backward, "gradient": differentiated, "reference": referenced,
    "view": lambda: view(F.relu(x()), "View"), "overlay": overlaid,
    "read": lambda: read_entries(io.BytesIO(b""), ".acme"),
    "write": lambda: write_entries(io.BytesIO(), {}, ".acme"),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_whatever_a_plugin_raises_names_it(fault, place):
    run = PLACES[place]
    fault(place, KeyError("acme's fault"))
    with pytest.raises((KeyError, nn.errors.FileFormatError)) as caught:
        run()
    errors = [caught.value, caught.value.__cause__]
    told = "".join(note for error in errors for note in [str(error), *getattr(error, "__notes__", [])])
    assert "'acme'" in told and told.count("nn_core: ") == 1, told
    for error in (SystemExit(3), Ends("over")):
        fault(place, error)
        with pytest.raises(PluginError, match=r"of plugin 'acme': must not end the program, got (Sys.*3|Ends: over)") as ends:
            run()
        assert ends.value.__cause__ is error
    fault(place, StopIteration(4))
    # whoever runs such calls one after another would take it for their end
    with pytest.raises(PluginError, match=r"'acme'.* must not raise StopIteration"):
        run()
    fault(place, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run()


@pytest.mark.parametrize("error", [KeyError("acme's fault"), SystemExit(3), Ends("over")], ids=["Exception", "exit", "ends"])
def test_a_fusion_whose_settings_raise_stops_no_program(fault, caplog, monkeypatch, error):
    monkeypatch.setattr("nn_core.engine.graph.plugin_fusion._TOLD", set())
    fault("settings", error)
    fused()
    (message,) = [text for text in caplog.messages if "left out" in text]
    assert message.startswith("graph pass 'acme_fusion' of plugin 'acme' is left out: ") and str(error.args[0]) in message
    fault("settings", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        fused()


def test_calls_at_once_are_guarded_as_well(fault):
    at_once()
    fault("runner", SystemExit(3))
    with pytest.raises(PluginError, match=r"F\.acme_negate, run by backend 'acme', of plugin 'acme': must not end"):
        at_once()


def test_errors_of_ours_keep_their_class(fault):
    fault("runner", ShapeError("F.acme: a complaint"))
    with pytest.raises(ShapeError, match=r"^F\.acme: a complaint") as caught:
        forward()
    assert "of plugin 'acme'" in caught.value.__notes__[0]

    class OwnError(ShapeError):
        def __init__(self, text, second):
            super().__init__(text)

    fault("shape", OwnError("x must be odd", 2))
    with pytest.raises(ShapeError, match=r"^acme_negate: x must be odd"):
        F.acme_negate(nn.Variable((5,)))


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="handles signals")
def test_what_a_signal_handler_raises_passes(fault):
    def stop(number, frame):
        sys.exit(4)

    module = next(m for name, m in sys.modules.items() if name.startswith("plugin_of_a_test") and hasattr(m, "Fault"))
    before, own = signal.signal(signal.SIGTERM, stop), module.negate
    module.negate = lambda x, y: os.kill(os.getpid(), signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="4"):
            forward()
    finally:
        module.negate = own
        signal.signal(signal.SIGTERM, before)


def test_explain_shows_what_a_plugin_raises(fault):
    for error in (ValueError("no"), SystemExit(2)):
        fault("overlay", error)
        with nn.context_scope(nn.Context(["cpu", "reference"])):
            found = nn.explain(F.sinh(x()), nn.Context(["cpu", "reference"]))
        answer = next(answer for answer in found.answers if "overlay" in answer.entry)
        assert answer.reason.startswith("refuse() raises ") and found.winner is not None
    fault("notes", ValueError("no"))
    with acme():
        found = nn.explain(F.acme_negate(x()), get_extension_context("acme"))
    assert "notes() of backend 'acme' raises ValueError: no" in str(found)


def test_a_format_that_returns_no_entries_is_not_blamed_on_the_file(fault):
    module = next(m for name, m in sys.modules.items() if name.startswith("plugin_of_a_test") and hasattr(m, "Fault"))
    for result in ([], {"w": np.ones(2)}, None):
        module.at, before = lambda place, _=None, result=result: result, module.at
        try:
            with pytest.raises(PluginError, match=r"plugin 'acme': read\(\) must return \{name: Entry\}, got"):
                read_entries(io.BytesIO(b""), ".acme")
        finally:
            module.at = before
