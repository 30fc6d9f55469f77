"""The output of `explain` for names and for variables."""

import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.context import Context
from nn_core.engine.dispatch import explain as module
from nn_core.engine.dispatch.explain import explain
from nn_core.engine.dispatch.plugin_manager import Plugins
from nn_core.errors import ArgumentError


@pytest.fixture(autouse=True)
def fresh_plugins(install, monkeypatch):
    """The plugins that the test installs."""
    monkeypatch.setattr(module, "PLUGINS", Plugins())


@pytest.mark.parametrize("name", ["Tanh", "tanh"])
def test_a_name_tells_who_has_a_kernel(name, install):
    install.backend("fast")
    answer = explain(name, Context(["fast:half"]))
    assert (answer.function, answer.winner) == ("Tanh", "reference over fast:half")
    assert str(answer).splitlines()[1:] == [
        "   fast:half                 has no kernel for Tanh",
        "-> reference over fast:half  has a kernel, which may refuse a call",
    ]


def test_a_variable_tells_what_forward_would_do(install):
    refusing = (
        "class Kernel:\n"
        "    def refuse(self, call):\n"
        "        return Refusal(f'{call.inputs[0].shape} {call.outputs[0].dtype} {dict(call.args)}')\n"
        "def load():\n"
        "    backend = Host()\n"
        "    backend.kernels = {'SumPooling': Kernel(), 'Sum': Kernel()}\n"
        "    return backend\n"
    )
    install.backend("fast", body=refusing, more="{'load': load}")
    y = F.sum(nn.Variable((2, 3)), axis=1, keepdims=True)
    answer = explain(y, Context(["fast:half", "reference"]))
    assert [a.entry for a in answer.answers] == ["fast:half", "reference:float", "reference over fast:half"]
    assert answer.answers[0].reason.startswith("(2, 3) float16 {'axes': (1,)")
    assert answer.winner == "reference:float"


def with_implementation(name, layout="contiguous"):
    """Return the body of a plugin whose kernel of Convolution says what computes a call, and in which memory."""
    return (
        "class Kernel:\n"
        "    def refuse(self, call):\n"
        "        return None\n"
        "    def layout(self, call):\n"
        f"        return {layout!r}\n"
        "    def forward(self, call):\n"
        "        run = lambda *arrays: None\n"
        f"        run.implementation = {name!r} + f' {{call.inputs[0].strides}} {{call.inputs[1].strides}}'\n"
        "        return run\n"
        "def load():\n"
        "    backend = Host()\n"
        "    backend.kernels = {'Convolution': Kernel()}\n"
        "    return backend\n"
    )


def test_the_winner_says_what_computes_the_call(install):
    install.backend("fast", body=with_implementation("jit", "channels_last"), more="{'load': load}")
    y = F.convolution(nn.Variable((2, 3, 4, 5)), nn.Variable((6, 3, 1, 1)))
    answer = explain(y, Context(["fast:float"]))
    assert answer.implementation == "jit (240, 4, 60, 12) None"
    assert "-> fast:float                 can run it, by jit (240, 4, 60, 12) None" in str(answer)
    assert not any("slow" in note for note in answer.notes)
    assert explain("Convolution", Context(["fast:float"])).implementation == ""


def test_a_reference_of_a_library_is_warned_of(install):
    install.backend("fast", body=with_implementation("library ref:any"), more="{'load': load}")
    y = F.convolution(nn.Variable((2, 3, 4, 5)), nn.Variable((6, 3, 1, 1)))
    answer = explain(y, Context(["fast:float"]))
    assert (
        "fast:float runs this call by library ref:any None None, which its library has for tests: it is slow" in answer.notes
    )


def test_backends_add_what_they_have_seen(install):
    noting = "def load():\n    backend = Host()\n    backend.notes = lambda api: [f'{api} was seen']\n    return backend\n"
    install.backend("fast", body=noting, more="{'load': load}")
    answer = explain("Tanh", Context(["fast:half"]))
    assert answer.notes == ("tanh was seen",)
    assert str(answer).endswith("\ntanh was seen")


def test_every_reason_is_told_when_nothing_can_be_used():
    answer = explain("Tanh", Context(["absent_here"]))
    assert answer.winner is None
    assert "got 'absent_here'" in answer.answers[0].reason
    assert str(answer).endswith("no backend runs it")


def test_functions_without_a_kernel_run_everywhere():
    class Double(nn.PythonFunction):
        """A function written in Python."""

        def min_outputs(self):
            return 1

        def setup_impl(self, inputs, outputs):
            outputs[0].reset_shape(inputs[0].shape, True)

    x = nn.Variable((2, 3))
    assert explain(Double()(x)).winner == "no kernel needed"
    assert explain(F.reshape(x, (3, 2))).winner == "no kernel needed"
    assert str(explain("Reshape")).endswith("-> no kernel needed  can run it")


def test_the_current_context_is_the_default():
    with nn.context_scope(Context(["reference:double"])):
        assert explain("Tanh").winner == "reference:double"


def test_a_leaf_has_nothing_to_explain():
    with pytest.raises(ArgumentError, match="explain: a variable must be computed by a function, got the leaf <Variable"):
        explain(nn.Variable((2,)))


def test_an_unknown_name_is_refused():
    with pytest.raises(ArgumentError, match="explain: the name of a function must be given, got 'taanh'"):
        explain("taanh")
