"""Kernels, reference kernels and gradient rules of plugins that write what they should only read."""

import types

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import ArgumentError, GraphError, PluginError, ShapeError
from nn_core.settings import Settings

SPEC = """
- name: careless.Bad
  api: careless_bad
  topic: arithmetic
  doc: Three times the input.
  inputs: {x: {doc: Input.}}
  outputs: {y: {doc: Output.}}
  shape: same_as x
  backward: {needs: [x]}
"""
HEAD = """
import ctypes
import numpy as np
import nn_core as nn
from nn_core.ext import *
PLUGIN_API, REQUIRES_CORE = 2, ">=0.1,<1"
def poke(array):  # as native code does, which no flag stops
    ctypes.memset(array.ctypes.data, 0, array.nbytes)
"""
#: Statements by which the forward computation writes its input: in each call, and where it is negative only.
WRITES = {
    "always": "x *= 3",
    "sometimes": "x[x < 0] = 0",
    "in a view": "x.reshape(-1)[:] = 3",
    "never": "pass",
    "in its memory": "poke(x)",
    "by force": "x.flags.writeable = True; x[...] = 3",
}
REFERENCE = """
@kernel("careless.Bad")
def bad(xp, x):
    y = 3 * x
    {write}
    return y
"""
NATIVE = """
class Bad:
    def refuse(self, call):
        return None
    def forward(self, call):
        def run(x, y):
            y[...] = 3 * x
            {write}
        return run
    def backward(self, call, wanted):
        return None
"""
RULE = """
@gradient("careless.Bad")
def bad_gradient(F, g):
    grad, x = g.grad, g.x
    {rule}
    return {result}
@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=SPEC{kernels})]
"""


@pytest.fixture
def plugin():
    """Register a plugin with a function whose parts do what is asked of them."""

    def register(write="pass", rule="pass", result="3 * grad", native=False):
        made = types.ModuleType("careless")
        vars(made)["SPEC"] = SPEC
        kernels = ", kernels={'reference': {'careless.Bad': Bad()}, 'cpu': {'careless.Bad': Bad()}}" if native else ""
        body = (NATIVE if native else REFERENCE).format(write=write)
        exec(HEAD + body + RULE.format(rule=rule, result=result, kernels=kernels), vars(made))
        nn.ext.register(made)
        PLUGINS.forget_prepared()

    yield register
    if "careless" in PLUGINS._registered:
        nn.ext.unregister("careless")


def graph(numbers):
    v = nn.Variable.from_numpy_array(np.array(numbers, np.float32), need_grad=True)
    h = v * 2
    return v, F.sum(F.careless_bad(h)) + F.sum(h * 3)


@pytest.mark.parametrize("backend", ["reference:float", "cpu:float"])
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("how", ["always", "in a view", "in its memory", "by force"])
def test_a_kernel_that_writes_its_input_is_refused(plugin, backend, native, how):
    plugin(WRITES[how], native=native)
    with nn.context_scope(nn.Context([backend])):
        with pytest.raises(PluginError, match=r"careless_bad.* must not change its inputs, got"):
            graph([1, 2])[1].forward()
        with nn.auto_forward(), pytest.raises(PluginError, match="must not change its inputs, got"):
            graph([1, 2])


@pytest.mark.parametrize("native", [False, True])
def test_a_kernel_that_writes_its_input_in_a_later_call_is_refused(plugin, native):
    plugin(WRITES["sometimes"], native=native)
    x = nn.Variable((3,))
    y = F.sum(F.careless_bad(x * 2)) + F.sum(x)
    x.d = 1
    with pytest.raises(PluginError, match=r"careless_bad.* must not change its inputs, got"):
        y.forward()
        y.forward()  # bound to its memory


@pytest.mark.parametrize("native", [False, True])
def test_a_kernel_that_writes_nothing_is_not_disturbed(plugin, native):
    plugin(WRITES["never"], native=native)
    v, y = graph([1, -2])
    for _ in range(3):
        y.forward()
        v.grad.zero()
        y.backward()
        assert y.d == -12 and v.g.tolist() == [12, 12]


@pytest.mark.parametrize(
    "write", ["grad *= 0", "x[0] = 7", "grad[grad > 0] = 0", "poke(grad)", "poke(x)", "F.assign(x, grad)", "F.assign(grad, x)"]
)
def test_a_gradient_rule_that_writes_what_it_reads_is_refused(plugin, write):
    plugin(rule=write)
    v, y = graph([1, -2])
    y.forward()
    v.grad.zero()
    with pytest.raises(PluginError, match="careless_bad: a gradient rule must not change what it reads"):
        y.backward()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("3.0", "must return arrays of the shapes of the inputs, or None, got float"),
        ("Variable((2,))", "must return arrays of the shapes of the inputs, or None, got Variable"),
        ("grad * 1j", "must return real numbers, got complex64"),
        ("nn.NdArray((2,))", "must return arrays of the shapes of the inputs, or None, got NdArray"),
        ("grad.astype('U')", "must return real numbers, got <U32"),
    ],
)
def test_what_is_no_gradient_is_refused(plugin, result, message):
    plugin(result=result)
    v, y = graph([1, -2])
    y.forward()
    v.grad.zero()
    with pytest.raises(PluginError, match=f"careless_bad: a gradient rule {message}"):
        y.backward()


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        ("3.0", PluginError, "must return Variables of the shapes of the inputs, or None, got float"),
        ("np.ones(2)", PluginError, "must return Variables of the shapes of the inputs, or None, got ndarray"),
        (
            "Variable((2,))",
            PluginError,
            r"must return functions of what it is given, got a Variable of shape \(2,\)",
        ),
        ("Variable((2,)) * 2", PluginError, "must return functions of what it is given, got a Variable"),
        ("(grad, grad)", GraphError, "must return 1 gradients, got 2"),
        ("()", GraphError, "must return 1 gradients, got 0"),
    ],
)
def test_what_is_no_gradient_in_a_graph_is_refused(plugin, result, error, message):
    plugin(result=result)
    v, y = graph([1, -2])
    with pytest.raises(error, match=f"careless_bad: a gradient rule {message}"):
        nn.grad([y], [v])


@pytest.mark.parametrize(
    ("result", "value"), [("grad", 8), ("F.constant(5.0, shape=(2,))", 16), ("grad * Variable.from_numpy_array([0., 0.])", 6)]
)
def test_gradients_in_a_graph_may_be_constant_or_depend_on_other_leaves(plugin, result, value):
    plugin(result=result)
    v, y = graph([1, -2])
    (gradient,) = nn.grad([y], [v])
    gradient.forward()
    assert gradient.d.tolist() == [value, value]


def test_an_error_of_a_function_in_a_rule_is_not_that_of_grad(plugin):
    plugin(result="F.sum(grad, keepdims=True)")
    v, y = graph([1, -2])
    with pytest.raises(ArgumentError, match="sum: arguments must be among axes, keep_dims, got 'keepdims'") as caught:
        nn.grad([y], [v])
    assert "in the gradient rule of F.careless_bad of plugin 'careless'" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("write", "error", "message"),
    [
        ("y = y * 1j", PluginError, "a reference kernel must return real numbers, got complex64"),
        ("y = y.astype(object)", PluginError, "a reference kernel must return real numbers, got object"),
        ("y = y.astype('U')", PluginError, "a reference kernel must return real numbers, got <U32"),
        ("y = nn.NdArray((2,))", PluginError, "a reference kernel must return arrays, got NdArray"),
        ("y = nn.Variable((2,))", PluginError, "a reference kernel must return arrays, got Variable"),
        ("y = (y, y)", ShapeError, "the reference kernel must return 1 results, got 2"),
        ("y = ()", ShapeError, "the reference kernel must return 1 results, got 0"),
    ],
)
def test_results_of_a_reference_kernel_that_are_none_are_refused(plugin, write, error, message):
    plugin(write)
    with pytest.raises(error, match=f"careless_bad: {message}"):
        graph([1, -2])[1].forward()


DYNAMIC = """
@shape_rule("careless.Bad")
def bad_shape(x):
    return (x,)
class Bad:
    def refuse(self, call):
        return None
    def forward(self, call):
        def run(x):
            y = 3 * x
            {write}
            return (y,)
        return run
    def backward(self, call, wanted):
        return None
@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=SPEC, kernels={{"reference": {{"careless.Bad": Bad()}}}})]
"""


@pytest.mark.parametrize(
    ("write", "message"),
    [
        ("x *= 3", "a kernel must not change its inputs, got array 0 changed"),
        ("poke(x)", "a kernel must not change its inputs, got array 0 changed"),
        ("y = y * 1j", "a kernel must return real numbers, got complex64"),
        ("x[x < 0] = 0", "a kernel must not change its inputs, got: assignment destination is read-only"),
    ],
)
def test_kernels_that_make_their_results_are_looked_at_too(write, message):
    made = types.ModuleType("careless")
    tail = "shape: rule\n  tags: [dynamic_shape]\n  backward: {none: It is a test.}"
    vars(made)["SPEC"] = SPEC.replace("shape: same_as x", tail).replace("  backward: {needs: [x]}\n", "")
    exec(HEAD + DYNAMIC.format(write=write), vars(made))
    nn.ext.register(made)
    PLUGINS.forget_prepared()
    try:
        with nn.context_scope(nn.Context(["reference:float"])), pytest.raises(PluginError, match=message):
            for sign in (1, -1):
                F.careless_bad(nn.NdArray.from_numpy_array(np.array([1.0, 2.0 * sign], np.float32)))
    finally:
        nn.ext.unregister("careless")


@pytest.mark.parametrize("place", ["def refuse(self, call):\n        ", "def forward(self, call):\n        "])
def test_a_kernel_cannot_change_the_settings_of_a_call(plugin, place, monkeypatch):
    monkeypatch.setitem(globals(), "NATIVE", NATIVE.replace(place, f"{place}call.args['axis'] = 7\n        "))
    plugin(native=True)
    with nn.context_scope(nn.Context(["reference:float"])):
        y = F.careless_bad(nn.Variable((2,)))
        with pytest.raises(TypeError, match="does not support item assignment") as caught:
            y.forward()
    assert "F.careless_bad" in caught.value.__notes__[0] and y.parent.args == {}


def test_rules_of_the_core_are_compared_in_checked_mode(monkeypatch):
    from nn_core.operators.rules.registry import GRADIENTS

    def writes(F, g):
        g.grad[...] = 0
        return g.grad

    monkeypatch.setitem(GRADIENTS, "Sinh", writes)
    monkeypatch.setattr("nn_core.engine.graph.gradient_rule.settings", lambda: Settings(check_kernels=True))
    monkeypatch.setattr("nn_core.engine.graph.gradient_rule.is_trusted", lambda module: True)
    with nn.context_scope(nn.Context(["reference:float"])):
        x = nn.Variable.from_numpy_array(np.ones(2, np.float32), need_grad=True)
        y = F.sinh(x)
        y.forward()
        x.grad.zero()
        with pytest.raises(PluginError, match="sinh: a gradient rule must not change what it reads, got array 2 changed"):
            y.backward(np.ones(2))
