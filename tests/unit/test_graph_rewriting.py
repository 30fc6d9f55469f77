"""Copies of graphs."""

from types import SimpleNamespace

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError
from nn_core.graph_rewriting import GraphCopy, copy_graph, functions_of, network_ports


def test_copies_share_leaves_and_keep_names_and_flags():
    x = nn.Variable.from_numpy_array([[1.0, -2.0]], need_grad=True)
    h = F.exp(x).apply(persistent=True, name="h")
    y = F.tanh(h.apply(need_grad=False)) + x
    (z,) = copy_graph([y])
    copied = z.parent.inputs[0].parent.inputs[0]
    assert (copied.name, copied.persistent, copied.need_grad) == ("h", True, False)
    assert z.parent.inputs[1] is x and copied is not h
    z.forward()
    y.forward()
    np.testing.assert_array_equal(z.d, y.d)


def test_shapes_follow_other_inputs():
    x = nn.Variable((2, 3, 4))
    y = F.sum(F.reshape(x, (2, -1)) * x[:, 0, 0:1], axis=-1)
    (z,) = copy_graph([y], {x: nn.Variable((2, 5, 4))})
    assert z.shape == (2,)
    assert functions_of([z])[0].outputs[0].shape == (2, 20)


def test_variables_between_functions_can_be_replaced():
    x = nn.Variable((2,))
    h = F.exp(x)
    new = nn.Variable.from_numpy_array([1.0, 2.0])
    (z,) = copy_graph([F.tanh(h) * h], {h: new})
    z.forward()
    np.testing.assert_allclose(z.d, np.tanh([1, 2]) * [1, 2], rtol=1e-6)
    assert [f.name for f in functions_of([z])] == ["Tanh", "Mul2"]


def test_unlinked_variables_are_leaves():
    x = nn.Variable.from_numpy_array([1.0])
    h = F.exp(x)
    y = h * h.get_unlinked_variable(need_grad=True)
    (z,) = copy_graph([y])
    assert z.parent.inputs[0] is not h and z.parent.inputs[1].parent is None


def test_optional_inputs_in_the_middle_and_several_outputs():
    rng = np.random.default_rng(0)
    x, lengths = nn.Variable.from_numpy_array(rng.normal(size=(2, 6))), nn.Variable((2, 6))
    a, b = F.split(x, axis=0)
    with nn.parameter_scope("", {}):
        y = PF.batch_normalization(F.stack(b, a), no_bias=True, batch_stat=False)
        (z,) = copy_graph([y], {x: lengths})
    lengths.d = x.d
    z.forward()
    y.forward()
    np.testing.assert_array_equal(z.d, y.d)


def test_python_functions_are_copied():
    class Double(nn.PythonFunction):
        def min_outputs(self):
            return 1

        def setup_impl(self, inputs, outputs):
            outputs[0].reset_shape(inputs[0].shape, True)

        def forward_impl(self, inputs, outputs):
            outputs[0].d = inputs[0].d * 2

    x = nn.Variable((3,))
    y = Double()(F.exp(x))
    (z,) = copy_graph([y], {x: nn.Variable.from_numpy_array([0.0, 0.0])})
    z.forward()
    assert z.d.tolist() == [2.0, 2.0]
    with pytest.raises(ArgumentError, match="changes must be empty for the PythonFunction Double"):
        y.parent.applied_to(x, val=3)


def test_rewriting_must_give_every_output():
    a, _ = F.split(nn.Variable((2, 3)), axis=0)
    with pytest.raises(ArgumentError, match="what stands for Split must have 2 outputs, got 1"):
        copy_graph([a], rewrite=lambda f, inputs: inputs[0])
    with pytest.raises(ArgumentError, match="must have been copied, got <Exp"):
        GraphCopy().add(F.tanh(F.exp(a)).parent)
    with pytest.raises(ArgumentError, match="values of inputs must be Variables, got int"):
        GraphCopy({a: 3})


def test_settings_can_change_on_the_way():
    y = F.leaky_relu(nn.Variable.from_numpy_array([-1.0]), 0.5)
    (z,) = copy_graph([y], rewrite=lambda f, inputs: f.applied_to(*inputs, alpha=0.25))
    z.forward()
    assert z.d.tolist() == [-0.25]


def test_ports_are_named_by_place_by_variable_or_by_the_user():
    a, b, w = nn.Variable((2,)), nn.Variable((2,), name="x"), nn.Variable((2,), need_grad=True)
    scale = nn.Variable((2,))
    y = F.tanh(a * w) + b * scale
    assert network_ports(y, parameters=[scale]) == ({"y": y}, {"x": a, "x_1": b})
    assert network_ports([y, a], [b]) == ({"y0": y, "y1": a}, {"x": b})
    assert network_ports({"x": y}, [scale, w]) == ({"x": y}, {"x_1": scale, "x_2": w})
    assert network_ports({"out": y}, {"left": a}) == ({"out": y}, {"left": a})
    network = SimpleNamespace(outputs={"out": y}, inputs={"left": a})
    assert network_ports(network) == ({"out": y}, {"left": a})
    assert network_ports(network, [b]) == ({"out": y}, {"x": b})


@pytest.mark.parametrize(
    ("outputs", "inputs", "message"),
    [
        ([], None, "save: outputs must be Variables, got none"),
        ([np.ones(2)], None, r"save: outputs must be Variables, got \['ndarray'\]"),
        (nn.Variable((2,)), ["x"], "save: inputs must be Variables, got 'x'"),
    ],
)
def test_ports_must_be_variables(outputs, inputs, message):
    with pytest.raises(ArgumentError, match=message):
        network_ports(outputs, inputs, caller="save")


def test_an_input_is_given_once():
    x = nn.Variable((2,))
    with pytest.raises(ArgumentError, match="export: inputs must be given once each, got a Variable twice"):
        network_ports(F.tanh(x), {"a": x, "b": x})


def _assigned(x):
    y = x * 1
    y[1:] = y[1:, 1:2] * 2
    return y


def _gradient_and_values(x):
    h = F.tanh(x)
    return nn.grad([F.mean(h * h)], [x])[0] * h


BUILT_FOR_SHAPES = {
    "gradient": lambda x: nn.grad([F.mean(x**3)], [x])[0],
    "gradient beside values": _gradient_and_values,
    "gradient without values": lambda x: nn.grad([F.mean(x * 2)], [x])[0],
    "assignment": _assigned,
    "slice by lengths": lambda x: x[: x.shape[0] - 1],
}


@pytest.mark.parametrize("case", BUILT_FOR_SHAPES)
def test_parts_that_are_built_for_shapes_are_built_again_in_a_copy(case):
    build = BUILT_FOR_SHAPES[case]
    x = nn.Variable((3, 4), need_grad=True)
    y = build(x)
    for n in (8, 3):
        values = np.random.RandomState(n).uniform(-1, 1, (n, 4)).astype(np.float32)
        fresh = build(nn.Variable.from_numpy_array(values, need_grad=True))
        (copy,) = copy_graph([y], {x: nn.Variable.from_numpy_array(values, need_grad=True)})
        nn.forward_all([fresh, copy])
        np.testing.assert_array_equal(copy.d, fresh.d)
        assert y.shape == build(nn.Variable((3, 4), need_grad=True)).shape
