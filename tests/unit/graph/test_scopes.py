"""Tables of functions name the scope or the module in which a function was called, also one without parameters."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core import layers
from nn_core.engine.graph.reshape import order_for_reader
from nn_core.engine.graph.scopes import scopes_of
from nn_core.function import PythonFunction
from nn_core.graph_rewriting import copy_graph
from nn_core.utils.profiler import Profiler


def found(*results: Any) -> list[tuple[str, str]]:
    """Return each function and its scope, in the order in which they run."""
    nodes = list(order_for_reader(results))
    return list(zip([node.spec.name for node in nodes], scopes_of(nodes), strict=True))


def given() -> nn.Variable:
    return nn.Variable.from_numpy_array(np.ones((2, 3, 8, 8)), need_grad=True)


def nested(x: Any) -> Any:
    h = F.tanh(x)
    with nn.parameter_scope("encoder"):
        h = F.relu(PF.convolution(h, 4, (3, 3), name="first"))
        with nn.parameter_scope("inner/most"):
            h = F.max_pooling(h, (2, 2))
        h = h + 1
    return F.sum(h)


EXPECTED = [
    ("Tanh", ""),
    ("Convolution", "encoder/first/conv"),
    ("ReLU", "encoder"),
    ("MaxPooling", "encoder/inner/most"),
    ("AddScalar", "encoder"),
    ("Sum", ""),
]


@pytest.mark.parametrize("at_once", [False, True])
def test_nested_scopes_in_static_and_dynamic_graphs(at_once: bool) -> None:
    for _ in range(3):  # a dynamic graph follows what it has recorded
        with nn.auto_forward(at_once):
            assert found(nested(given())) == EXPECTED


def test_summary_and_profiler_show_it_in_both_passes() -> None:
    y = nested(given())
    assert [(row.function, row.scope) for row in nn.summary(y).rows] == EXPECTED
    with Profiler() as profiler:
        for _ in range(3):
            y.forward(clear_no_need_grad=True)
            y.backward(clear_buffer=True)
    rows = profiler.rows()
    for name, scope in EXPECTED[1:4]:
        assert {row.scope for row in rows if row.name == name} == {scope}, name
    assert {row.pass_name for row in rows} == {"forward", "backward"}


class Block(nn.Module):
    def __init__(self) -> None:
        self.conv = layers.Conv(4, (3, 3))

    def call(self, x: Any) -> Any:
        return F.relu(self.conv(x)) + 1


class Net(nn.Module):
    def __init__(self) -> None:
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Sequential(F.tanh, layers.Flatten(), layers.Affine(2))

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return F.softmax(self.head(x))


OF_NET = [
    ("Convolution", "@blocks/@0/@conv/conv"),
    ("ReLU", "@blocks/@0"),
    ("AddScalar", "@blocks/@0"),
    ("Convolution", "@blocks/@1/@conv/conv"),
    ("ReLU", "@blocks/@1"),
    ("AddScalar", "@blocks/@1"),
    ("Tanh", "@head/@tanh_0"),
    ("Reshape", "@head/@flatten_1"),
    ("Affine", "@head/@affine_2/affine"),
    ("Softmax", ""),
]


@pytest.mark.parametrize("at_once", [False, True])
def test_modules_and_containers(at_once: bool) -> None:
    net = Net()
    for _ in range(3):
        with nn.auto_forward(at_once):
            assert found(net(given())) == OF_NET
    assert [(row.function, row.scope) for row in nn.summary(net, (2, 3, 8, 8)).rows] == OF_NET
    inside = nn.summary(net.blocks[0], (2, 3, 8, 8)).rows
    assert [row.scope for row in inside] == ["@conv/conv", "", ""]


def test_a_module_without_parameters() -> None:
    net = nn.Sequential(F.relu, nn.Sequential(F.tanh))
    assert found(net(given())) == [("ReLU", "@relu_0"), ("Tanh", "@sequential_1/@tanh_0")]


def test_a_shared_layer_has_its_first_name() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            self.act = nn.Sequential(F.relu)
            self.again = self.act

        def call(self, x: Any) -> Any:
            return self.again(F.tanh(self.act(x)))

    scopes = [scope for _, scope in found(Shared()(given()))]
    assert scopes == ["@act/@relu_0", "", "@act/@relu_0"]


def test_copies_of_graphs_keep_it() -> None:
    y = nested(given())
    assert found(*copy_graph([y])) == found(y.no_grad()) == EXPECTED


class Doubled(PythonFunction):
    def forward_impl(self, inputs: Any, outputs: Any) -> None:
        outputs[0].data[...] = 2 * inputs[0].data


def test_functions_of_python() -> None:
    with nn.parameter_scope("own"):
        y = F.sum(Doubled()(given()))
    assert [scope for _, scope in found(y)] == ["own", "own"]


def test_no_scope_lives_longer_because_of_what_was_called_in_it() -> None:
    with nn.auto_forward():
        net = Net()
        net(given())
        scope = weakref.ref(net.head.parameter_scope)
        del net
    gc.collect()
    assert scope() is None
