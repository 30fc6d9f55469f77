"""The members of what `load` returns, as NNabla's programs read them."""

from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.core import graph_def
from nn_core.errors import ArgumentError
from nn_core.utils.load import load
from nn_core.utils.nnp_graph import NnpLoader
from nn_core.utils.save import save

VALUES = np.random.default_rng(3).standard_normal((4, 2)).astype(np.float32)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Save a network with a loss, with all that is done with it."""
    (tmp_path / "data.csv").write_text("x__0,x__1,y\n" + "".join(f"{n},{-n},{n % 2}\n" for n in range(8)))
    x, t = nn.Variable((4, 2)), nn.Variable((4, 1))
    y = F.sigmoid(PF.affine(F.relu(PF.affine(x, 5, name="a")), 1, name="b"))
    loss = F.binary_cross_entropy(y, t)
    adam = S.Adam(0.1)
    adam.set_parameters(nn.get_parameters())
    data = {"x": "x", "t": "y"}
    contents = {
        "networks": [{"name": "net", "batch_size": 4, "outputs": {"loss": loss}, "names": {"x": x, "t": t, "y": y}}],
        "datasets": [
            {"name": "points", "uri": str(tmp_path / "data.csv"), "batch_size": 4, "shuffle": True, "variables": ["x", "y"]}
        ],
        "optimizers": [
            {"name": "adam", "network": "net", "dataset": "points", "solver": adam, "data_variables": data}
            | {"lr_decay": 0.5, "lr_decay_interval": 3}
        ],
        "monitors": [{"name": "error", "network": "net", "dataset": "points", "data_variables": data}],
        "executors": [{"name": "runtime", "network": "net", "data": ["x", "t"], "output": ["y"]}],
    }
    save(tmp_path / "project.nnp", contents, include_params=True)
    return tmp_path / "project.nnp"


def test_arguments_and_data(project):
    info = load([project], batch_size=2)
    assert (info.batch_size, info.exclude_parameter, info.parameter_only, info.prepare_data_iterator) == (
        2,
        False,
        False,
        True,
    )
    assert info.default_context is info.global_config.default_context
    assert info.parameter_scope is nn.get_current_parameter_scope()
    assert info.datasets["points"].normalize
    assert load([project], prepare_data_iterator=False).monitors["error"].data_iterators == {"points": None}
    for part in (info.optimizers["adam"], info.monitors["error"]):
        with part.data_iterators["points"]() as iterator:
            assert iterator.next()[0].shape == (2, 2)


def test_variables_stand_for_themselves(project):
    """NNabla has descriptions in these places, and the variables in `variable_instance`."""
    executor = load([project]).executors["runtime"]
    for variable, name in executor.dataset_assign.items():
        variable.variable_instance.d = VALUES if name == "x" else 0
    executor.forward_target.forward()
    ((output, (_, name)),) = executor.output_assign.items()
    values = {name: v.variable_instance.d for name, v in executor.network.parameters.items()}
    assert name == "y" and output.variable_instance is executor.network.variables["y"]
    hidden = np.maximum(VALUES @ values["a/affine/W"] + values["a/affine/b"], 0)
    expected = hidden @ values["b/affine/W"] + values["b/affine/b"]
    np.testing.assert_allclose(output.d, 1 / (1 + np.exp(-expected)), atol=1e-6)
    assert set(executor.parameters.values()) == set(nn.get_parameters())
    assert executor.parameter_learning_rate_multipliers.keys() == executor.parameters.keys()


def test_targets_and_schedules(project):
    info = load([project])
    optimizer, monitor = info.optimizers["adam"], info.monitors["error"]
    assert optimizer.target is optimizer.loss_variables[0] is info.networks["net"].variables["loss"]
    assert optimizer.target.parent.name == "BinaryCrossEntropy" and monitor.target.parent.name == "Sink"
    assert [optimizer.scheduler.get_learning_rate(n) for n in (0, 3)] == pytest.approx([0.1, 0.05])
    rates = optimizer.parameter_learning_rate_multipliers
    assert list(rates.values()) == [1.0] * 4 and rates.keys() == set(optimizer.parameters.values())


def test_functions_of_networks(project):
    network = load([project]).networks["net"]
    (first, *_), names = network.functions.values(), list(network.functions)
    assert (first.type, first.args, first.outputs[0] in network.variables) == ("Affine", {"base_axis": 1}, True)
    assert list(network.inputs) == ["x", "t"] and list(network.outputs) == ["loss"]
    assert first.inputs == ["x", "a/affine/W", "a/affine/b"] and first.name == names[0]
    assert first.function_instance.outputs == [network.variables[name] for name in first.outputs]
    assert [f.inputs for f in graph_def.load(project).net.functions.values()] == [f.inputs for f in network.functions.values()]


def test_networks_are_called(project):
    network = load([project]).networks["net"]
    x, t = nn.Variable((7, 2)), nn.Variable((7, 1))
    loss = network(x, t)
    loss.forward()
    assert loss.shape == (7, 1) and network.variables["loss"].shape == (4, 1)
    network.parameters["b/affine/b"].d = 3
    loss.forward()
    np.testing.assert_allclose(loss.d, np.log1p(np.exp(3)), rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"variables must be 2, for \['x', 't'\], got 1"):
        network(x)


def test_a_refusal_of_a_solver_names_the_file(tmp_path):
    x = nn.Variable((1, 3))
    y = x * nn.Variable.from_numpy_array(np.ones((1, 3)))
    network = {"name": "net", "batch_size": 1, "names": {"x": x}, "outputs": {"y": y}}
    optimizer = {"name": "way", "network": "net", "solver": S.Adam(0.125), "dataset": [], "loss_variables": ["y"]}
    save(tmp_path / "net.nntxt", {"networks": [network], "optimizers": [{**optimizer, "data_variables": {"x": "x"}}]})
    path = tmp_path / "net.nntxt"
    path.write_text(path.read_text().replace("alpha: 0.125", "alpha: -1"))
    with nn.parameter_scope("", {}), pytest.raises(ArgumentError, match=r"Adam: alpha .*got -1.0\n  file: .*net\.nntxt"):
        load(path)


@pytest.mark.parametrize("read", [load, NnpLoader, graph_def.load], ids=["load", "NnpLoader", "graph_def"])
def test_parameters_that_cannot_stand_beside_each_other_are_refused_with_the_file(read, tmp_path):
    path = tmp_path / "clash.nntxt"
    path.write_text("".join(f'parameter {{ variable_name: "{name}" shape {{ dim: 1 }} data: 1 }}\n' for name in ("a", "a/b")))
    with pytest.raises(ArgumentError, match=r"must not have the name of a parameter, got 'a'(?s:.)*clash\.nntxt"):
        read(str(path))
    assert nn.get_parameters() == {}
