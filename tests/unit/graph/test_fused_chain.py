"""Fusions of plugins are compared with the functions that they replace, and a broken one stops nobody."""

import types

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import ext
from nn_core.engine.graph import plugin_fusion
from nn_core.errors import PluginError
from nn_core.settings import Settings


class Fusion:
    """A fusion of functions of which the operator knows nothing."""

    def __init__(self, chain, function, settings=lambda *args: {}):
        self.chain, self.function, self.settings = chain, function, settings


@pytest.fixture
def fusing():
    """Register a plugin with a fusion."""

    def register(target):
        made = types.ModuleType("nn_ext_fusing")
        vars(made).update(PLUGIN_API=2, REQUIRES_CORE=">=0.1,<1")
        offer = ext.PassInfo(name="wrong", role="fusion", target=target)
        made.nn_core_passes = ext.hookimpl(lambda: [offer], specname="nn_core_passes")
        ext.register(made)

    plugin_fusion._TOLD.clear()
    with nn.context_scope(nn.Context(["reference:float"])):
        yield register
    ext.unregister("fusing")


def chain_of(numbers):
    return F.abs(F.relu(nn.Variable.from_numpy_array(np.array(numbers, np.float32))))


def test_a_fusion_that_computes_something_else_is_refused(fusing):
    fusing(lambda: Fusion(("ReLU", "Abs"), "Sin"))
    y = chain_of([1.0, -2.0])
    message = r"'wrong' of plugin 'fusing': Sin must give what its chain gives, ReLU, Abs, got a difference of 0\.909"
    for _ in range(2):
        with pytest.raises(PluginError, match=message):
            y.forward(clear_buffer=True)


@pytest.mark.parametrize("dtype", ["float", "half", "double"])
def test_a_fusion_that_is_its_chain_runs(fusing, dtype):
    fusing(lambda: Fusion(("ReLU", "Abs"), "ReLU"))
    with nn.context_scope(nn.Context([f"reference:{dtype}"])):
        y = chain_of([1.0, -2.0, np.nan, np.inf])
        for _ in range(3):
            y.forward(clear_buffer=True)
            np.testing.assert_array_equal(y.d, [1, 0, np.nan, np.inf])


def test_inputs_of_all_functions_are_compared(fusing):
    fusing(lambda: Fusion(("Add2", "Mul2"), "Where"))
    x, a, b = (nn.Variable.from_numpy_array(np.array(n, np.float32)) for n in ([1, 0], [2, 3], [4, 5]))
    y = F.mul2(F.add2(x, a), b)
    with pytest.raises(PluginError, match="Where must give what its chain gives, Add2, Mul2"):
        y.forward(clear_buffer=True)


def test_later_passes_are_compared_in_checked_mode(fusing, monkeypatch):
    fusing(lambda: Fusion(("ReLU", "Abs"), "Abs"))  # right for positive numbers only
    for checked in (False, True):
        monkeypatch.setattr(
            "nn_core.engine.graph.fused_chain.settings", lambda checked=checked: Settings(check_kernels=checked)
        )
        x = nn.Variable.from_numpy_array(np.ones(2, np.float32))
        y = F.abs(F.relu(x))
        y.forward(clear_buffer=True)
        y.forward(clear_buffer=True)
        x.d = -1
        if checked:
            with pytest.raises(PluginError, match="Abs must give what its chain gives"):
                y.forward(clear_buffer=True)
        else:
            y.forward(clear_buffer=True)


def broken():
    raise RuntimeError("no fusion today")


def raising(*args):
    raise ZeroDivisionError("today")


def renaming(relu, absolute):
    relu["inplace"] = absolute["other"] = True
    return {}


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (lambda: Fusion(("ReLU",), "Sin"), "a fusion must have a chain of two functions or more, got 1"),
        (lambda: Fusion("ReLU", "Sin"), "a chain must be a tuple of names of functions, got 'ReLU'"),
        (lambda: Fusion((1, 2), "Sin"), r"a chain must be a tuple of names of functions, got (1, 2)"),
        (lambda: Fusion(("ReLU", "Abs"), None), "function must be an operator that is installed, got None"),
        (lambda: Fusion(("ReLU", "Abs"), "Sine"), "function must be an operator that is installed, got 'Sine'"),
        (lambda: Fusion(("ReLU", "Abs"), "Sin", raising), "ZeroDivisionError: today"),
        (lambda: Fusion(("ReLU", "Abs"), "Sin", lambda *args: 3), "TypeError: 'int' object is not iterable"),
        (object, "AttributeError: 'object' object has no attribute 'chain'"),
        (broken, "RuntimeError: no fusion today"),
    ],
)
def test_what_is_no_fusion_is_left_out_and_told_once(fusing, caplog, target, reason):
    fusing(target)
    for _ in range(2):
        y = chain_of([1.0, -2.0])
        y.forward(clear_buffer=True)
        assert y.d.tolist() == [1, 0]
    (message,) = [text for text in caplog.messages if "'wrong'" in text]
    assert message == f"graph pass 'wrong' of plugin 'fusing' is left out: {reason}"


@pytest.mark.parametrize("function", ["Rand", "Unique", "Where"])
def test_an_operator_that_cannot_stand_for_the_chain_is_not_run(fusing, function):
    fusing(lambda: Fusion(("ReLU", "Abs"), function))
    y = chain_of([1.0, -2.0])
    y.forward(clear_buffer=True)
    assert y.d.tolist() == [1, 0]


def test_a_fusion_cannot_change_the_settings_of_functions(fusing):
    fusing(lambda: Fusion(("ReLU", "Abs"), "ReLU", renaming))
    y = chain_of([1.0, -2.0])
    relu = y.parent.inputs[0].parent
    y.forward(clear_buffer=True)
    assert y.d.tolist() == [1, 0]
    assert relu.args == {"inplace": False} and y.parent.args == {}
