"""Networks as data."""

from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.core import graph_def
from nn_core.errors import ArgumentError

DATA = Path(__file__).with_name("data")
VALUES = np.load(DATA / "convnet_values.npz")


def test_networks_are_called_like_functions():
    graph = graph_def.load(DATA / "convnet.nnp")
    assert list(graph.networks) == ["net", "train"] and list(graph.executors) == ["rt"]
    x = nn.Variable.from_numpy_array(VALUES["x"][:3])
    for y in (graph(x), graph.net(x), graph["net"](x)):
        y.forward()
        np.testing.assert_allclose(y.d, VALUES["y"][:3], atol=1e-5)
    assert not nn.get_parameters(grad_only=False)
    assert graph.get("c1/conv/W").shape == (2, 3, 3, 3) and graph.get("nothing", 3) == 3
    with pytest.raises(ArgumentError, match=r"variables must be 1, for \['x'\], got 2"):
        graph.net(x, x)
    with pytest.raises(ArgumentError, match="got 'other'"):
        graph["other"]


def test_networks_say_what_they_are():
    net = graph_def.load(DATA / "convnet.nnp").default_graph().clone()
    assert (net.name, net.batch_size, net.inputs, net.outputs) == ("net", 4, ["x"], ["y"])
    assert net.variables["x"].shape == [-1, 3, 6, 6] and "a/affine/W" in net.parameters
    found = []
    net.execute_on_proto(lambda function: found.append(function.type))
    assert found == [f.type for f in net.forward_sequence()] == [f.type for f in net.functions.values()]
    assert found == ["Convolution", "BatchNormalization", "ReLU", "Reshape", "Affine"]


@pytest.mark.parametrize("name", ["g.nnp", "g.nntxt", "g.protobuf"])
def test_graphs_survive(name, tmp_path):
    graph_def.load(DATA / "convnet.nnp").net.save(tmp_path / name, include_parameter=True)
    graph = graph_def.load(tmp_path / name)
    y = graph(nn.Variable.from_numpy_array(VALUES["x"]))
    y.forward()
    np.testing.assert_allclose(y.d, VALUES["y"], atol=1e-5)
    assert list(graph.networks) == ["net"]


def test_graphs_of_variables_become_networks(tmp_path):
    x = nn.Variable.from_numpy_array(np.ones((2, 3)))
    y = F.tanh(PF.affine(x, 4, name="a"))
    graph = graph_def.create_graph_from_variable("mine", y, names={"x": x})
    assert graph.mine.inputs == ["x"] and graph.mine.outputs == ["y"]
    graph_def.save(tmp_path / "m.nnp", [graph])
    again = graph_def.load(tmp_path / "m.nnp")(x)
    y.forward()
    again.forward()
    np.testing.assert_array_equal(again.d, y.d)
