"""Networks, loops, numbers of samples, passes, solvers."""

import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, BackendNotFoundError, FileFormatError
from nn_core.utils.load import load
from nn_core.utils.nnp_graph import NnpLoader
from nn_ext_nnp.codec import parse_text
from nn_ext_nnp.network import build, plan_network

DATA = Path(__file__).with_name("data")
FILES = ("convnet.nnp", "convnet_protobuf.nnp", "convnet.nntxt", "convnet.protobuf")


@pytest.mark.parametrize("name", FILES)
def test_networks_of_nnabla_give_its_results(name):
    values = np.load(DATA / "convnet_values.npz")
    network = load(DATA / name).networks["net"]
    network.inputs["x"].d = values["x"]
    network.outputs["y"].forward()
    np.testing.assert_allclose(network.outputs["y"].d, values["y"], atol=1e-5)


@pytest.mark.parametrize("batch_size", [1, 3, 7])
def test_networks_take_any_number_of_samples(batch_size):
    values = np.load(DATA / "convnet_values.npz")
    network = NnpLoader(DATA / "convnet.nnp").get_network("net", batch_size=batch_size)
    assert {name: v.shape for name, v in network.inputs.items()} == {"x": (batch_size, 3, 6, 6)}
    rows = [n % 4 for n in range(batch_size)]
    network.inputs["x"].d = values["x"][rows]
    network.outputs["y"].forward()
    np.testing.assert_allclose(network.outputs["y"].d, values["y"][rows], atol=1e-5)


def test_everything_about_training_is_read():
    info = load(DATA / "convnet.nnp", prepare_data_iterator=False)
    optimizer = info.optimizers["opt"]
    assert (info.training_config.max_epoch, info.training_config.iter_per_epoch) == (3, 4)
    assert info.training_config.save_best and info.training_config.monitor_interval == 10
    assert optimizer.solver.name == "Adam" and optimizer.weight_decay == pytest.approx(0.01)
    assert sorted(optimizer.dataset_assign.values()) == ["x", "y"]
    assert [v.name for v in optimizer.loss_variables] == ["loss"]
    assert "b1/bn/mean" not in optimizer.parameters and "c1/conv/W" in optimizer.parameters
    assert {state.t for state in optimizer.solver.get_states().values()} == {1}
    assert info.executors["rt"].output_assign[info.networks["net"].outputs["y"]] == ("", "y")
    assert list(info.monitors) == ["valid_error"] and info.datasets["d"].uri == "a.csv"


def test_targets_are_the_same_variables_each_time():
    """A new graph would need a new plan in each step of a training."""
    info = load(DATA / "convnet.nnp", prepare_data_iterator=False)
    executor, monitor = info.executors["rt"], info.monitors["valid_error"]
    assert executor.forward_target is executor.forward_target
    assert monitor.target is monitor.target
    optimizer = info.optimizers["opt"]
    optimizer.loss_variables = [*optimizer.loss_variables, *executor.output_assign]
    assert optimizer.target is optimizer.target
    assert optimizer.target.parent.inputs == optimizer.loss_variables
    optimizer.loss_variables = optimizer.loss_variables[::-1]
    assert optimizer.target.parent.inputs == optimizer.loss_variables


def test_both_kinds_of_states_are_the_same():
    found = []
    for name in FILES[:2]:
        nn.clear_parameters()
        states = load(DATA / name, prepare_data_iterator=False).optimizers["opt"].solver.get_states()
        found.append({(p, k): v.d.copy() for p, state in states.items() for k, v in state.pstate.items()})
    assert found[0].keys() == found[1].keys() and len(found[0]) == 12
    for key, values in found[0].items():
        np.testing.assert_array_equal(found[1][key], values)


# -- files by hand -----------------------------------------------------------------------------------------------------


def text(functions, variables="", **network):
    settings = " ".join(f"{key}: {value}" for key, value in network.items())
    return f'network {{ name: "n" {settings or "batch_size: 2"} {variables} {functions} }}'


def buffer(name, *dims, kind="Buffer", more=""):
    shape = " ".join(f"dim: {dim}" for dim in dims)
    return f'variable {{ name: "{name}" type: "{kind}" shape {{ {shape} }} {more} }}'


def loaded(whole, **settings):
    (proto,) = parse_text(whole.encode(), "net.nntxt").network
    return build(plan_network(proto, "net.nntxt"), **settings)


EXP = 'function { name: "f" type: "Exp" input: "x" output: "h" }'
TANH = 'function { name: "g" type: "Tanh" input: "h" output: "y" }'
ROWS = buffer("x", -1, 3) + buffer("h", 9, 9) + buffer("y", -1, 3)


def test_functions_may_be_in_any_order_and_shapes_between_them_are_inferred():
    network = loaded(text(TANH + EXP, ROWS))
    network.inputs["x"].d = 0.5
    network.outputs["y"].forward()
    np.testing.assert_allclose(network.outputs["y"].d, np.full((2, 3), np.tanh(np.exp(0.5))), rtol=1e-6)


@pytest.mark.parametrize(("whole", "message"), [
    (text(EXP, buffer("x", -1, 3)), "net.nntxt: network 'n': variables of function 'f' must be listed, got 'h'"),
    (text(EXP, ROWS + buffer("x", 1)), "variables must have different names, got 'x' twice"),
    (text(EXP + EXP, ROWS), "one function must compute variable 'h', got several"),
    (text(EXP + TANH.replace('"y"', '"x"'), ROWS), "functions must not wait for each other, got a circle at 'f'"),
    (text(EXP.replace('"h"', '"x"'), ROWS), "functions must not wait for each other, got a circle at 'f'"),
    (text(EXP, ROWS.replace("Buffer", "Input")), "type of variable 'x' must be Buffer or Parameter, got 'Input'"),
    (text('function { name: "f" type: "Affine" input: "x" input: "h" output: "y" affine_param { base_axis: 1 } }', ROWS),
     r"function 'f' \(Affine\) of network 'n' must fit its inputs, got: affine: .*"),
    (text('function { name: "f" type: "Add2" input: "x" output: "y" }', ROWS), "Add2 must have from 2 to 2 inputs, got 1"),
    (text('function { name: "f" type: "Exp" input: "x" output: "y" output: "h" }', ROWS), "must have 1 outputs, got 2"),
    (text('function { name: "f" type: "Split" input: "x" output: "y" output: "h" split_param { axis: 1 } }', ROWS),
     r"'f' \(Split\) of network 'n' must have 3 outputs, got 2"),
    (text(EXP, ROWS.replace('"h" type: "Buffer"', '"h" type: "Parameter"')), "one function must compute variable 'h'"),
    (text('function { name: "f" type: "RepeatEnd" repeat_param { repeat_id: "L" } input: "x" output: "y" }', ROWS),
     "network 'n' must say how often 'L' repeats, got 0"),
    (text('function { name: "f" repeat_id: "L" type: "Exp" input: "x" output: "y" }',
          ROWS + 'repeat_info { id: "L" times: 2000000 }'), "the budget of readers, nodes 200000, got 2000000"),
])  # fmt: skip
def test_odd_networks_are_refused(whole, message):
    with pytest.raises(FileFormatError, match=message):
        loaded(whole)


def test_the_number_of_samples_must_be_known():
    with pytest.raises(ArgumentError, match=r"batch_size must be given for network 'n' of net\.nntxt, got 0 in the file"):
        loaded(text(EXP, ROWS, batch_size=0))
    assert loaded(text(EXP, ROWS, batch_size=0), batch_size=5).inputs["x"].shape == (5, 3)


@pytest.mark.parametrize(("kind", "low", "high"), [
    ("Constant", 0.5, 0.5), ("Uniform", -0.5, 0.5), ("UniformAffineGlorot", -0.25, 0.25), ("", 0, 0), ("Range", 0, 1e9),
    ("NormalAffineHeForward", -1, 1), ("UniformConvolutionGlorot", -0.5, 0.5), ("Normal", -9, 9),
])  # fmt: skip
def test_initial_values_follow_the_file(kind, low, high):
    variable = buffer("w", 100, 92, kind="Parameter", more=f'initializer {{ type: "{kind}" multiplier: 0.5 }}')
    whole = text('function { name: "f" type: "Exp" input: "w" output: "h" }', variable + buffer("h", 1))
    values = loaded(whole, rng=np.random.default_rng(0)).variables["w"].d
    assert low <= values.min() and values.max() <= high
    assert kind in ("Constant", "") or values.std() > 0.01


def test_unknown_initializers_are_refused():
    variable = buffer("w", 4, 3, kind="Parameter", more='initializer { type: "Magic" multiplier: 1 }')
    with pytest.raises(FileFormatError, match="initializer of 'w' must be one of NNabla's, got 'Magic'"):
        loaded(text('function { name: "f" type: "Exp" input: "w" output: "h" }', variable + buffer("h", 1)))


def test_parameters_must_have_the_shape_of_the_network():
    with pytest.raises(FileFormatError, match=r"'w' must have lengths of at least 0, got the shape \[4, -1\]"):
        loaded(text('function { name: "f" type: "Exp" input: "w" output: "h" }', buffer("w", 4, -1, kind="Parameter") + ROWS))
    nn.parameter.set_parameter("w", nn.Variable((2, 2)))
    variable = buffer("w", 4, 3, kind="Parameter")
    with pytest.raises(FileFormatError, match=r"'w' must have the shape \(4, 3\) that the network says, got \(2, 2\)"):
        loaded(text('function { name: "f" type: "Exp" input: "w" output: "h" }', variable + buffer("h", 1)))


ODD = """network {
  name: "m" batch_size: 1
  variable { name: "W" type: "Parameter" shape { dim: 2 } }
}
network {
  name: "n"
  batch_size: 2
  repeat_info { id: "L" times: 2 }
  variable { name: "x" type: "Buffer" shape { dim: -1 dim: 3 } }
  variable { name: "W" type: "Parameter" shape { dim: 3 dim: 4 } }
  variable { name: "\\303\\266" type: "Buffer" repeat_id: "L" shape { dim: -1 dim: 4 } }
  variable { name: "y" type: "Buffer" shape { dim: -1 dim: 4 } }
  function { name: "f" type: "Affine" repeat_id: "L" input: "x" input: "W" output: "\\303\\266" affine_param { base_axis: 1 } }
  function {
    name: "g"
    type: "RepeatEnd"
    input: "\\303\\266"
    output: "y"
    repeat_param { repeat_id: "L" times: 2 }
  }
}
executor {
  name: "e"
  network_name: "n"
  data_variable { variable_name: "x" data_name: "x" }
  output_variable { variable_name: "y" data_name: "y" }
}
"""


@pytest.mark.parametrize(("old", "new", "message"), [
    ("dim: 4 } }\n  variable { name: \"\\303", "dim: 5 } }\n  variable { name: \"\\303",
     r":10: network 'n': parameter 'W' must have the shape \(3, 5\) that the network says, got \(3, 4\)"),
    ('"RepeatEnd"', '"Warp9"', r": functions must be .*, got 'Warp9' \('g' in network 'n', line 16\)"),
    ("base_axis", "axis", ':13: the text must be .* no field named "axis"'),
    ('network_name: "n"', 'network_name: "o"', r":22: 'e' must name one of the networks \['m', 'n'\], got 'o'"),
    ('variable_name: "y"', 'variable_name: "z"', ":22: variables must be in network 'n', got 'z'"),
    ("  batch_size: 2\n", "\n", r"network 'n' of .*:5, got 0 in the file"),
    ('input: "x" input: "W"', 'input: "x" input: "V"', ":13: .* variables of function 'f.*' must be listed, got 'V'"),
    ('input: "x" input: "W"', 'input: "W" input: "x"', r":13: function 'f_L\[0\]' \(Affine\) .* must fit its inputs"),
    ('"Buffer" repeat_id: "L"', '"Input" repeat_id: "L"', ":11: network 'n': type of variable 'ö_L.0.' must be Buffer"),
    ("repeat_info { id: \"L\" times: 2 }", "repeat_info { id: \"L\" }", ":5: .* must say how often 'L' repeats, got 0"),
    ('output: "y"', 'output: "x"', ":14: network 'n': functions must not wait for each other"),
    ('    input: "\\303\\266"\n', "", r":14: RepeatEnd 'g' must have 1 inputs and 1 output, got 0 and 1"),
])  # fmt: skip
@pytest.mark.parametrize("extension", [".nntxt", ".nnp"])
def test_messages_about_texts_have_file_and_line(old, new, message, extension, tmp_path):
    path, w = tmp_path / f"net{extension}", 'parameter { variable_name: "W" shape { dim: 3 dim: 4 } ' + "data: 1 " * 12 + "}\n"

    def write(whole):
        if extension == ".nnp":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("a/odd.nntxt", whole + w)
        else:
            path.write_text(whole + w)
        return path

    assert load(write(ODD)).networks["n"].outputs["y"].shape == (2, 4)
    assert old in ODD
    name = "net.nnp/a/odd.nntxt" if extension == ".nnp" else "net.nntxt"
    nn.clear_parameters()
    with pytest.raises((FileFormatError, ArgumentError), match="(?s)" + message) as caught:
        load(write(ODD.replace(old, new)))
    assert name in str(caught.value)


LOOP = """
network { name: "n" batch_size: 2 repeat_info { id: "L" times: 3 }
  variable { name: "x" type: "Buffer" shape { dim: -1 dim: 4 } }
  variable { name: "s" type: "Buffer" repeat_id: "L" shape { dim: -1 dim: 4 } }
  variable { name: "a" type: "Buffer" repeat_id: "L" shape { dim: -1 dim: 4 } }
  variable { name: "w{L}" type: "Parameter" repeat_id: "L" shape { dim: 1 dim: 4 }
    initializer { type: "Constant" multiplier: 2 } }
  variable { name: "e" type: "Buffer" shape { dim: -1 dim: 4 } }
  variable { name: "y" type: "Buffer" shape { dim: -1 dim: 4 } }
  function { name: "start" type: "RepeatStart" repeat_id: "L" input: "x" input: "a" output: "s"
    repeat_param { repeat_id: "L" times: 3 } }
  function { name: "add" type: "Add2" repeat_id: "L" input: "s" input: "w{L}" output: "a" add2_param { } }
  function { name: "end" type: "RepeatEnd" input: "a" output: "e" repeat_param { repeat_id: "L" times: 3 } }
  function { name: "out" type: "MulScalar" input: "e" output: "y" mul_scalar_param { val: 10 } } }
"""


def test_loops_are_written_out():
    network = loaded(LOOP)
    assert sorted(network.parameters) == ["w[0]", "w[1]", "w[2]"]
    nn.parameter.get_parameter("w[1]").d = 5
    network.inputs["x"].d = 1
    network.outputs["y"].forward()
    assert np.unique(network.outputs["y"].d).tolist() == [100.0]
    assert {"a_L[0]", "a_L[1]", "a_L[2]", "e"} <= set(network.variables)


RECURRENT = """
network { name: "n" batch_size: 2
  variable { name: "x" type: "Buffer" shape { dim: -1 dim: 3 dim: 2 } }
  variable { name: "h0" type: "Buffer" shape { dim: -1 dim: 2 } }
  variable { name: "i" type: "Buffer" repeat_id: "R" shape { dim: -1 dim: 2 } }
  variable { name: "d" type: "Buffer" repeat_id: "R" shape { dim: -1 dim: 2 } }
  variable { name: "h" type: "Buffer" repeat_id: "R" shape { dim: -1 dim: 2 } }
  variable { name: "y" type: "Buffer" shape { dim: -1 dim: 3 dim: 2 } }
  function { name: "in" type: "RecurrentInput" repeat_id: "R" input: "x" output: "i"
    recurrent_param { repeat_id: "R" length: 3 axis: 1 } }
  function { name: "delay" type: "Delay" repeat_id: "R" input: "h" input: "h0" output: "d"
    recurrent_param { repeat_id: "R" length: 3 axis: 1 } }
  function { name: "add" type: "Add2" repeat_id: "R" input: "i" input: "d" output: "h" add2_param { } }
  function { name: "stack" type: "RecurrentOutput" input: "h" output: "y"
    recurrent_param { repeat_id: "R" length: 3 axis: 1 } } }
"""


def test_recurrent_networks_are_written_out():
    network = loaded(RECURRENT)
    x = np.random.default_rng(0).normal(size=(2, 3, 2))
    network.inputs["x"].d, network.inputs["h0"].d = x, 1
    network.outputs["y"].forward()
    np.testing.assert_allclose(network.outputs["y"].d, 1 + np.cumsum(x, axis=1), rtol=1e-5)


def test_unknown_networks_are_refused():
    loader = NnpLoader(DATA / "convnet.nnp")
    assert loader.get_network_names() == ["net", "train"]
    with pytest.raises(ArgumentError, match=r"get_network: name must be one of \['net', 'train'\], got 'other'"):
        loader.get_network("other")


def test_a_scope_of_its_own():
    scope = {}
    NnpLoader(DATA / "convnet.nnp", scope=scope).get_network("net")
    assert "c1" in scope and not nn.get_parameters(grad_only=False)


def test_the_doors_name_the_package_that_is_missing(monkeypatch):
    monkeypatch.setattr("nn_core.files.network_package.PACKAGE", "nn_ext_nnp_missing")
    with pytest.raises(BackendNotFoundError, match=r"(?s)nn-ext-nnp, got no module .*hint: pip install nn-ext-nnp"):
        load("a.nnp")


def test_parameters_with_indices_of_two_types(tmp_path):
    with h5py.File(tmp_path / "parameter.h5", "w") as file:
        for name, index in {"a": 0, "b": "x"}.items():
            file[name] = np.zeros(3, np.float32)
            file[name].attrs["index"] = index
    with zipfile.ZipFile(tmp_path / "f.nnp", "w") as archive:
        archive.writestr("nnp_version.txt", "0.1\n")
        archive.writestr("network.nntxt", "")
        archive.write(tmp_path / "parameter.h5", "parameter.h5")
    with pytest.raises(FileFormatError, match="index"):
        load(str(tmp_path / "f.nnp"))


@pytest.mark.parametrize("wrong", ["dim: 7", 'executor {name: "e" network_name: "net" data_variable {variable_name: "zz"}}'])
def test_a_network_that_is_refused_leaves_the_parameters(wrong, tmp_path):
    path = tmp_path / "f.nntxt"
    shape = wrong if wrong.startswith("dim") else "dim: 3"
    path.write_text(
        'network { name: "net" batch_size: 2 variable { name: "x" type: "Buffer" shape { dim: 2 dim: 3 } } '
        'variable { name: "y" type: "Buffer" shape { dim: 2 dim: 4 } } '
        f'variable {{ name: "w" type: "Parameter" shape {{ {shape} dim: 4 }} }} '
        'function { name: "f" type: "Affine" input: "x" input: "w" output: "y" affine_param { base_axis: 1 } } } '
        + (wrong if shape != wrong else "")
    )
    nn.parameter.set_parameter("own", nn.Variable((2,)))
    with pytest.raises(nn.errors.NNCoreError):
        load(str(path))
    assert list(nn.get_parameters(grad_only=False)) == ["own"]
