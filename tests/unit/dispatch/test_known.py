"""Operators that grow: what tables of kernels, overlays, fusions and exporters of before do with the calls."""

from types import ModuleType

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import ext
from nn_core.engine.dispatch.known import NarrowedKernel, known_by, without
from nn_core.engine.graph.apply import apply
from nn_core.errors import ArgumentError, PluginError, SpecError
from nn_core.operators.spec.load import loads
from nn_core.operators.spec.model import ArgSpec, InputSpec
from nn_core.testing.growth import ARGUMENT, INPUT, LATER, grown, grown_spec

SWISH, TANH, RELU, ADD_N = (ext.function_spec(name) for name in ("Swish", "Tanh", "ReLU", "AddN"))


def module(**statements):
    made = ModuleType("nn_ext_demo")
    vars(made).update(PLUGIN_API=2, **statements)
    return made


def call_of(spec, x, *others, **args):
    return apply(spec, (x, *others, *[None] * (len(spec.inputs) - 1 - len(others))), args)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("spec", [SWISH, TANH, RELU], ids=lambda spec: spec.name)
def test_no_backend_leaves_out_an_argument_that_it_does_not_know(spec, dynamic):
    data = np.array([-1.0, 0.5, 2.0], np.float32)
    with grown(spec), nn.auto_forward(dynamic):
        x = nn.Variable.from_numpy_array(data, need_grad=True)
        plain, added, given = (
            call_of(spec, x),
            call_of(spec, x, **{ARGUMENT.name: 10.0}),
            call_of(spec, x, nn.Variable.from_numpy_array(data)),
        )
        for y in (plain, added, given):
            y.forward()
            y.backward()
        np.testing.assert_allclose(added.d, plain.d + 10, rtol=1e-6)
        np.testing.assert_array_equal(given.d, plain.d)
        reasons = [answer.reason for answer in nn.explain(added).answers]
        backends = nn.get_current_context().backend
        expected = f"reads the {spec.name} of version 0.1, which has no argument {ARGUMENT.name}"
        tables = [reason for reason, entry in zip(reasons, backends, strict=False) if not entry.startswith("reference")]
        assert tables == [expected] * len(tables)
        assert not nn.explain(plain).answers[0].reason


def test_a_table_knows_what_it_states_or_the_oldest_core_that_it_takes():
    assert known_by(module(REQUIRES_CORE=">=0.3,<1")).version == "0.3"
    assert known_by(module(REQUIRES_CORE="~=0.4.1")).version == "0.4.1"
    assert known_by(module(REQUIRES_CORE="<1")).version == "" == known_by(module()).version
    assert known_by(module(KNOWN_OPERATORS=ext.KnownOperators("0.5"), REQUIRES_CORE=">=0.1")).version == "0.5"
    with pytest.raises(PluginError, match=r"KNOWN_OPERATORS must be a KnownOperators, got '0\.1'"):
        known_by(module(KNOWN_OPERATORS="0.1"))
    with pytest.raises(PluginError, match="KNOWN_OPERATORS must be a KnownOperators"):
        ext.register(module(KNOWN_OPERATORS=1, REQUIRES_CORE=">=0.1,<1"), "demo")


def test_what_is_unknown_follows_from_versions_and_names():
    later = grown_spec(SWISH)
    assert ext.KnownOperators("0.1").unknown(later) == (ARGUMENT.name, INPUT.name)
    assert ext.KnownOperators("0.1", {"Swish": (INPUT.name,)}).unknown(later) == (ARGUMENT.name,)
    assert ext.KnownOperators(LATER).unknown(later) == ()
    # whoever has kernels for a younger operator knows it as it was at first
    young = grown_spec(SWISH)
    object.__setattr__(young, "since", LATER)
    assert ext.KnownOperators("0.1").unknown(young) == ()
    before = without(later, (ARGUMENT.name, INPUT.name))
    assert [a.name for a in before.args] == [a.name for a in SWISH.args] and before.inputs == SWISH.inputs
    # versions are numbers
    ten = [ArgSpec("a", "int", "", default=0, since="0.10"), InputSpec("b", "", optional=True, since="0.9")]
    object.__setattr__(later, "args", (ten[0],))
    assert ext.KnownOperators("0.9").unknown(later) == ("a", INPUT.name)


class Recorded:
    """A kernel that notes what it is shown, and adds 1."""

    def __init__(self):
        self.calls = []

    def refuse(self, call):
        self.calls.append(call)

    def forward(self, call):
        self.calls.append(call)
        return lambda x, y: np.add(x, 1, out=y)

    def backward(self, call, wanted):
        self.calls.append((call, wanted))
        return lambda x, y, dy, dx: np.copyto(dx, dy)

    def strided(self, call):
        self.calls.append(call)
        return True


def test_a_kernel_is_shown_the_operator_as_it_was():
    later, kernel = grown_spec(TANH), Recorded()
    x = ext.ArrayDesc((2,), "float32")
    shown = NarrowedKernel(kernel, ext.KnownOperators("0.1"))
    call = ext.Call(later, {ARGUMENT.name: 0.0}, (x, None), (x,), "float32")
    a, y, dx = np.ones(2, np.float32), np.empty(2, np.float32), np.empty(2, np.float32)
    assert shown.refuse(call) is None and shown.strided(call) is True and not hasattr(shown, "other")
    shown.forward(call)(a, None, y)
    shown.backward(call, (True, False))(None, None, y, a, dx, None)
    assert y.tolist() == [2, 2] and dx.tolist() == [1, 1]
    *calls, (last, wanted) = kernel.calls
    assert wanted == [True]
    for seen in (*calls, last):
        assert seen.inputs == (x,) and seen.args == {} and [entry.name for entry in seen.spec.inputs] == ["x"]
    refusal = shown.refuse(ext.Call(later, {ARGUMENT.name: 2.0}, (x, x), (x,), "float32"))
    assert refusal.reason.endswith(f"which has no argument {ARGUMENT.name} and no input {INPUT.name}")


OVERLAY = """
import numpy as np
from nn_core.ext import FunctionPackage, KnownOperators, hookimpl
PLUGIN_API, REQUIRES_CORE = 2, "{required}"
{statement}
class Eleven:
    def refuse(self, call):
        return None
    def forward(self, call):
        return lambda x, *rest: rest[-1].fill(11)
    def backward(self, call, wanted):
        return None
@hookimpl
def nn_core_functions():
    return [FunctionPackage(overlays={{"reference": {{"Swish": Eleven()}}}})]
"""


@pytest.mark.parametrize(
    ("required", "statement", "value"),
    [
        (">=0.1,<1", "", 10),
        ("<1", "", 10),
        (">=0.1,<1", "KNOWN_OPERATORS = KnownOperators('0.1', {'Swish': ('later_argument',)})", 11),
    ],
)
def test_an_overlay_runs_the_calls_that_it_knows(required, statement, value):
    made = ModuleType("nn_ext_demo")
    exec(OVERLAY.format(required=required, statement=statement), vars(made))
    ext.register(made)
    try:
        with nn.context_scope(nn.Context(["reference:float"])), grown(SWISH):
            x = nn.Variable.from_numpy_array(np.zeros(1, np.float32))
            y, z = call_of(SWISH, x, **{ARGUMENT.name: 10.0}), call_of(SWISH, x)
            y.forward()
            z.forward()
            assert (y.d.item(), z.d.item()) == (value, 11)
    finally:
        ext.unregister("demo")


FUSION = """
from nn_core.ext import PassInfo, hookimpl
PLUGIN_API, REQUIRES_CORE = 2, ">=0.1,<1"
class Sinus:
    chain, function = ("MulScalar", "Tanh"), "Sin"
    def settings(self, *args):
        return {}
@hookimpl
def nn_core_passes():
    return [PassInfo(name="sinus", role="fusion", target=Sinus)]
"""


def test_a_fusion_of_a_plugin_leaves_calls_alone_that_it_does_not_know():
    made = ModuleType("nn_ext_demo")
    exec(FUSION, vars(made))
    ext.register(made)
    try:
        with nn.context_scope(nn.Context(["reference:float"])), grown(TANH):
            x = nn.Variable.from_numpy_array(np.ones(1, np.float32))
            y = call_of(TANH, x * 2, **{ARGUMENT.name: 10.0})
            y.forward(clear_buffer=True)
            assert y.d.item() == pytest.approx(10 + np.tanh(2))
    finally:
        ext.unregister("demo")


def test_the_fusions_of_the_core_leave_calls_alone_that_they_do_not_know():
    draw = np.random.default_rng(0).normal
    x, w = (nn.Variable.from_numpy_array(draw(size=s).astype("float32")) for s in ((1, 2, 5, 5), (3, 2, 3, 3)))
    with grown(RELU):
        results = []
        for added in (0.0, 10.0):
            y = call_of(RELU, F.convolution(x, w), **{ARGUMENT.name: added})
            y.forward(clear_buffer=True)
            results.append(np.array(y.d))
    np.testing.assert_allclose(results[1], results[0] + 10, rtol=1e-6)


def test_a_writer_of_a_plugin_is_not_given_what_it_does_not_know():
    written = []
    made = module(REQUIRES_CORE=">=0.1,<1")
    offer = ext.FileFormatInfo(name="demo", extensions=(".demo",), write_network=lambda path, contents: written.append(path))
    made.nn_core_file_formats = ext.hookimpl(lambda: [offer], specname="nn_core_file_formats")
    ext.register(made, "demo")
    try:
        write = ext.find_extension("file_formats", ".demo", "write_network")
        with grown(SWISH):
            x = nn.Variable((2,))
            write("a", {"networks": [{"outputs": {"y": call_of(SWISH, x)}}]})
            with pytest.raises(ArgumentError, match=r"plugin 'demo' can write, got: reads the Swish of version 0\.1"):
                write("b", {"networks": [{"outputs": {"y": F.exp(call_of(SWISH, x, **{ARGUMENT.name: 2.0}))}}]})
        assert written == ["a"]
    finally:
        ext.unregister("demo")


ENTRY = """
- name: acme.Grown
  api: acme_grown
  topic: activation
  doc: A test.
  inputs:
    x: {{doc: Input.}}
    z: {{doc: Input.{z}}}
  args:
    a: {{type: float, doc: A number.{a}}}
  outputs: {{y: {{doc: Output.}}}}
  shape: same_as x
  backward: {{none: a test}}
"""


def test_what_was_added_has_a_version_and_may_be_left_out():
    (spec,) = loads(ENTRY.format(z=", optional: true, since: '0.2'", a=", default: 1.0, since: '0.3'"))
    assert [(entry.name, entry.since) for entry in spec.later] == [("a", "0.3"), ("z", "0.2")]
    for z, a, message in (
        (", since: '0.2'", ", default: 1.0", r"Grown\.z: what was added later must be optional, got since '0\.2'"),
        ("", ", since: '0.2'", r"Grown\.a: what was added later must have a default"),
        ("", ", default: 1.0, since: soon", r"Grown\.a: since must be a version such as '0\.2', got 'soon'"),
    ):
        with pytest.raises(SpecError, match=message):
            loads(ENTRY.format(z=z, a=a))


def test_the_documentation_says_since_when(tmp_path):
    from nn_core.operators.spec.signature import docstring
    from tools.site.function_pages import function_section

    (spec,) = loads(ENTRY.format(z=", optional: true, since: '0.2'", a=", default: 1.0, since: '0.3'"))
    assert "Since 0.2." in docstring(spec) and "Since 0.3." in docstring(spec)
    assert "A number. Since 0.3." in function_section(spec)
