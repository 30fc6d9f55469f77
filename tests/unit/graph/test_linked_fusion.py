"""Fusions of plugins as a row of links: what an operator takes from each function of a chain, and what must hold."""

import types

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import ext
from nn_core.engine.graph import plugin_fusion
from nn_core.engine.graph.forward import KEEP_OUTPUTS, forward_plan
from nn_core.ext import ChainLink, Fusion

#: The first link names an input that its function does not have.
WRONG = (ChainLink("MulScalar", inputs={"x": "x0"}), ChainLink("Abs"))


@pytest.fixture
def fusing():
    """Register a plugin with fusions."""

    def register(*fusions):
        made = types.ModuleType("nn_ext_fusing")
        vars(made).update(PLUGIN_API=2, REQUIRES_CORE=">=0.1,<1")
        offers = [
            ext.PassInfo(name=f"fusion_{number}", role="fusion", target=lambda fusion=fusion: fusion)
            for number, fusion in enumerate(fusions)
        ]
        made.nn_core_passes = ext.hookimpl(lambda: offers, specname="nn_core_passes")
        ext.register(made)

    plugin_fusion._TOLD.clear()
    with nn.context_scope(nn.Context(["reference:float"])):
        yield register
    ext.unregister("fusing")


def leaf(*numbers):
    return nn.Variable.from_numpy_array(np.array(numbers, np.float32))


def run(y):
    """Return the functions of a pass without gradients, and the result."""
    y.forward(clear_buffer=True)
    return [entry.node.spec.name for entry in forward_plan((y,), KEEP_OUTPUTS).entries if entry.node], y.d.tolist()


#: A product of matrices and a row that is added to each row of it.
AFFINE = Fusion(
    "Affine",
    (
        ChainLink("BatchMatmul", inputs={"x": "a", "weight": "b"}, requires=lambda call: len(call.result) == 2),
        ChainLink("Add2", "x0", inputs={"bias": "x1"}, requires=lambda call: call.shapes["x1"] == call.result[1:]),
        ChainLink("Abs", optional=True, requires=lambda call: False),
    ),
    sets={"base_axis": 1},
)


def operands():
    """Return x, a weight and a bias."""
    numbers = [[1, 2]], [[1, 2], [3, -9]], [5, 6]
    return [nn.Variable.from_numpy_array(np.array(array, np.float32)) for array in numbers]


def test_inputs_are_taken_by_their_names(fusing):
    fusing(AFFINE)
    x, w, b = operands()
    assert run(F.add2(F.batch_matmul(x, w), b)) == (["Affine"], [[12, -10]])


def test_the_chain_must_come_by_the_input_that_the_link_names(fusing):
    fusing(AFFINE)
    x, w, b = operands()
    assert run(F.add2(b, F.batch_matmul(x, w)))[0] == ["BatchMatmul", "Add2"]


def test_a_shorter_chain_is_taken_where_a_condition_does_not_hold(fusing):
    fusing(AFFINE)
    x, w, b = operands()
    assert run(F.abs(F.add2(F.batch_matmul(x, w), b))) == (["Affine", "Abs"], [[12, 10]])


#: Two scalings in a row are one where the second does nothing.
TWICE = Fusion(
    "MulScalar",
    (
        ChainLink("MulScalar", inputs={"x": "x"}, args={"val": "val"}),
        ChainLink("Identity", optional=True),
        ChainLink("ReLU", requires=lambda call: call.fused["val"] == 0, optional=True),
    ),
    sets={"inplace": False},
)


def test_conditions_see_the_arguments_so_far(fusing):
    fusing(TWICE)
    assert run(F.relu(leaf(-1, 2) * 0.0)) == (["MulScalar"], [0, 0])
    assert run(F.relu(leaf(-1, 2) * 2.0)) == (["MulScalar", "ReLU"], [0, 4])


def test_an_input_is_shown_in_another_shape(fusing):
    link = ChainLink(
        "MulScalar",
        inputs={"x": "x"},
        computed={"axes": lambda call: tuple(range(len(call.result) + 1))},
        shaped={"x": lambda call: (1, *call.shapes["x"])},
    )
    fusing(Fusion("Sum", (link, ChainLink("Sum"))))
    x = leaf(1, 2, 4)
    y = F.sum(x * 1.0)
    assert run(y) == (["Sum"], 7)  # along both axes of (1, 3)
    x.d = [1, 2, 5]
    assert run(y) == (["Sum"], 8)
    assert run(F.sum(F.sin(x) * 1.0))[0] == ["Sin", "MulScalar", "Sum"]  # of a leaf only


def test_no_argument_is_set_twice(fusing):
    links = (ChainLink("Tanh", sets={"val": 2.0}), ChainLink("Abs", sets={"val": 2.0}))
    fusing(Fusion("MulScalar", links))
    assert run(F.abs(F.tanh(leaf(0, 0))))[0] == ["Tanh", "Abs"]


def test_a_link_that_rounds_otherwise_is_left_alone_before_a_jump(fusing):
    links = (ChainLink("Identity", inputs={"x": "x"}), ChainLink("ReLU", exact=False))
    fusing(Fusion("ReLU", links))
    assert run(F.relu(F.identity(leaf(-1, 2))))[0] == ["ReLU"]
    assert run(F.sign(F.relu(F.identity(leaf(-1, 2))), alpha=0.0))[0] == ["Identity", "ReLU", "Sign"]


def test_a_function_is_taken_by_one_fusion(fusing):
    """The first fusion takes the maximum, which is also the end of the second one's chain."""
    first = Fusion("Maximum2", (ChainLink("Identity", inputs={"x0": "x"}), ChainLink("Maximum2", "x0", inputs={"x1": "x1"})))
    second = Fusion("Maximum2", (ChainLink("ReLU", inputs={"x1": "x"}), ChainLink("Maximum2", "x1", inputs={"x0": "x0"})))
    fusing(first, second)
    functions, result = run(F.maximum2(F.identity(leaf(-1, 2)), F.relu(leaf(-3, 1))))
    assert (functions, result) == (["ReLU", "Maximum2"], [0, 2])


@pytest.mark.parametrize(
    ("fusion", "reason"),
    [
        (Fusion("Sin", WRONG[:1]), "a fusion must have a chain of two functions or more, got 1"),
        (Fusion("Sine", WRONG), "function must be an operator that is installed, got 'Sine'"),
        (Fusion("Swish", WRONG), "inputs of MulScalar must be among x, got 'x0'"),
        (
            Fusion("Sin", (ChainLink("MulScalar", inputs={"y": "x"}), ChainLink("Abs"))),
            "inputs of Sin must be among x, got 'y'",
        ),
        (
            Fusion("Sin", (ChainLink("MulScalar", args={"y": "scale"}), ChainLink("Abs"))),
            "arguments of MulScalar must be among inplace, val, got 'scale'",
        ),
        (Fusion("Dropout", (ChainLink("Sin"), ChainLink("Abs", sets={"q": 1}))), "arguments of Dropout must be among"),
        (Fusion("Sin", (ChainLink("Sin"), ChainLink("Abs", computed={"q": len}))), "arguments of Sin must be among"),
        (Fusion("Sin", (ChainLink("Sin"), ChainLink("Abs", shaped={"q": len}))), "inputs of Sin must be among x, got 'q'"),
        (Fusion("Sin", (ChainLink("Sin"), ChainLink("Abs", "z"))), "inputs of Abs must be among x, got 'z'"),
    ],
)
def test_names_that_do_not_exist_are_told(fusing, caplog, fusion, reason):
    fusing(fusion)
    assert run(F.abs(F.sin(leaf(0, 0))))[0] == ["Sin", "Abs"]
    (message,) = [text for text in caplog.messages if "'fusion_0'" in text]
    assert message.startswith(f"graph pass 'fusion_0' of plugin 'fusing' is left out: {reason}")
