"""Networks, loops, numbers of samples, passes, solvers."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError, BackendNotFoundError, FileFormatError
from nn_core.ext import find_extension
from nn_core.utils.load import load
from nn_core.utils.nnp_graph import NnpLoader
from nn_core.utils.save import create_proto, save
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


def test_both_kinds_of_states_are_the_same():
    found = []
    for name in FILES[:2]:
        nn.clear_parameters()
        states = load(DATA / name, prepare_data_iterator=False).optimizers["opt"].solver.get_states()
        found.append({(p, k): v.d.copy() for p, state in states.items() for k, v in state.pstate.items()})
    assert found[0].keys() == found[1].keys() and len(found[0]) == 12
    for key, values in found[0].items():
        np.testing.assert_array_equal(found[1][key], values)


# -- writing -----------------------------------------------------------------------------------------------------------


def net(batch=4):
    x = nn.Variable((batch, 3, 6, 6))
    h = PF.batch_normalization(PF.convolution(x, 2, (3, 3), name="c"), batch_stat=False, name="b")
    y = PF.affine(F.reshape(F.relu(h), (batch, -1)), 5, name="a")
    return x, y


def contents(x, y, **more):
    network = {"name": "net", "batch_size": x.shape[0], "names": {"x": x}, "outputs": {"y": y}}
    return {"networks": [network], "executors": [{"name": "run", "network": "net"}], **more}


@pytest.mark.parametrize("file", ["n.nnp", "n.nntxt", "n.protobuf", "p.nnp"])
def test_networks_survive(file, tmp_path):
    x, y = net()
    x.d = np.random.default_rng(0).normal(size=x.shape)
    y.forward()
    format_ = ".protobuf" if file == "p.nnp" else ".h5"
    save(tmp_path / file, contents(x, y), include_params=True, parameter_format=format_)
    with nn.parameter_scope("", {}):
        network = NnpLoader(tmp_path / file).get_network("net", batch_size=2)
        assert list(nn.get_parameters(grad_only=False))[:2] == ["c/conv/W", "c/conv/b"]
    network.inputs["x"].d = x.d[1:3]
    network.outputs["y"].forward()
    np.testing.assert_allclose(network.outputs["y"].d, y.d[1:3], atol=1e-6)


def test_saving_twice_gives_the_same_bytes(tmp_path):
    x, y = net()
    save(tmp_path / "a.nnp", contents(x, y))
    info = load(tmp_path / "a.nnp")
    network = info.networks["net"]
    save(tmp_path / "b.nntxt", contents(network.inputs["x"], network.outputs["y"]))
    save(tmp_path / "c.nntxt", contents(x, y))
    assert (tmp_path / "b.nntxt").read_bytes() == (tmp_path / "c.nntxt").read_bytes()


def test_an_input_without_a_name_is_told(tmp_path, caplog):
    x = nn.Variable((1, 3))
    y = x * nn.Variable.from_numpy_array(np.ones((1, 3)))
    network = {"name": "net", "batch_size": 1, "names": {"x": x}, "outputs": {"y": y}}
    save(tmp_path / "a.nnp", {"networks": [network]})
    assert "inputs of network 'net' must have names, got none for one of shape (1, 3)" in caplog.text
    assert list(load(tmp_path / "a.nnp").networks["net"].inputs) == ["x", "@net/Mul2_in"]


@pytest.mark.parametrize(("make", "message"), [
    (lambda x: F.reshape(x, (8, 6)), r"must work for any number of samples, got for 5 in place of 4: .*'@net/Reshape"),
    (lambda x: F.transpose(F.relu(x), (1, 0, 2)), r"must have the samples as its first axis only, got the shape \(3, 5, 4\)"),
    (lambda x: F.add2(x, F.constant(1.0, (2, 2, 3, 4))[0:1, 0].reshape((1, 3, 4)) + F.sum(x) * F.constant(0, (4, 3, 4)), ),
     None),
])  # fmt: skip
def test_graphs_for_one_number_of_samples_are_refused(make, message):
    x = nn.Variable((4, 3, 4))
    y = make(x)
    if message is None:
        save(io.BytesIO(), contents(x, y))
        return
    with pytest.raises(ArgumentError, match=r"(?s)save: .*" + message + ".*hint: variable_batch_size=False"):
        save(io.BytesIO(), contents(x, y))
    save(io.BytesIO(), contents(x, y), variable_batch_size=False)


def parameter(name, *shape):
    values = np.random.default_rng(len(name)).uniform(0.5, 1.5, shape).astype(np.float32)
    return nn.parameter.get_parameter_or_create(name, shape, initializer=values)


@pytest.mark.parametrize("make", [
    lambda x: F.add2(x, parameter("p", 4)), lambda x: parameter("p", 3, 4) * x, lambda x: F.maximum2(x, parameter("p")),
    lambda x: F.pow2(parameter("p", 3, 4), x), lambda x: F.squared_error(x, F.tanh(parameter("p", 4))),
    lambda x: F.batch_matmul(x, parameter("p", 4, 5)), lambda x: F.batch_matmul(parameter("p", 6, 3), x),
])  # fmt: skip
def test_operands_of_different_ranks_are_reshaped(make, tmp_path):
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).uniform(0.5, 1.5, (2, 3, 4)))
    y = make(x)
    y.forward()
    save(tmp_path / "a.nnp", contents(x, y))
    with nn.parameter_scope("", {}):
        network = load(tmp_path / "a.nnp").networks["net"]
        again = network.outputs["y"]
        assert len({variable.ndim for variable in again.parent.inputs}) == 1
        network.inputs["x"].d = x.d
        again.forward()
    np.testing.assert_allclose(again.d, y.d, rtol=1e-6)


def test_losses_of_two_shapes_are_refused():
    x = nn.Variable((2, 3, 4))
    with pytest.raises(ArgumentError, match=r"(?s)BinaryCrossEntropy must have one shape in files, got .*F.broadcast"):
        save(io.BytesIO(), contents(x, F.binary_cross_entropy(x, parameter("p", 4))))


def test_a_configuration_without_a_context_names_the_current_one():
    x, y = net()
    proto = create_proto({**contents(x, y), "global_config": {}})
    assert list(proto.global_config.default_context.backends) == nn.get_current_context().backend


def test_a_failure_leaves_the_old_file(tmp_path):
    (tmp_path / "a.nnp").write_bytes(b"old")
    with pytest.raises(ArgumentError, match="contents must have keys of"):
        save(tmp_path / "a.nnp", {"network": []})
    assert (tmp_path / "a.nnp").read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("change", "message"), [
    ({"executors": [{"name": "e", "network": "other"}]}, r"executors must name one of the networks \['net'\], got 'other'"),
    ({"networks": [{"name": "n", "batch_size": 1, "names": {}}]}, "got none called 'outputs'"),
    ({"networks": [{"name": "n", "batch_size": 1, "names": {"x": 3}, "outputs": {}}]}, "got int for 'x'"),
])  # fmt: skip
def test_contents_that_lack_something_are_refused(change, message):
    x, y = net()
    with pytest.raises(ArgumentError, match=message):
        save(io.BytesIO(), {**contents(x, y), **change})


def test_functions_without_a_place_in_files_are_refused():
    x = nn.Variable((2, 3, 4, 5))
    attention = F.patch_correlation(x, x)
    with pytest.raises(ArgumentError, match="must have the layout of NNabla's, got PatchCorrelation"):
        save(io.BytesIO(), contents(x, attention))
    with pytest.raises(ArgumentError, match=r"the file must be \.nnp, .* got '\.onnx'"):
        save(io.BytesIO(), contents(x, x), extension=".onnx")
    with pytest.raises(ArgumentError, match=r"parameter_format must be '\.h5' or '\.protobuf', got '\.npz'"):
        save(io.BytesIO(), contents(x, x), parameter_format=".npz")


SOLVERS = (
    "Sgd", "SgdW", "Momentum", "Lars", "Nesterov", "Adadelta", "Adagrad", "AdaBelief", "RMSprop", "RMSpropGraves", "Adam",
    "AdamW", "AdaBound", "Adamax", "AMSGRAD", "AMSBound", "Lamb", "Lion",
)  # fmt: skip


@pytest.mark.parametrize("states", [".h5", ".protobuf"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_survive_with_all_numbers_and_states(name, states, tmp_path):
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(4, 3)))
    y = F.mean(F.squared_error(PF.affine(x, 2), nn.Variable((4, 2))))
    solver = getattr(S, name)(0.25)
    solver.set_parameters(nn.get_parameters())

    def step(solver, y):
        y.forward()
        solver.zero_grad()
        y.backward()
        solver.update()

    step(solver, y)
    part = {"name": "o", "solver": solver, "network": "net", "dataset": "d", "update_interval": 2, "weight_decay": 0.5}
    whole = contents(x, y, optimizers=[part])
    save(tmp_path / "a.nnp", whole, include_solver_state=True, solver_state_format=states, variable_batch_size=False)
    with nn.parameter_scope("", {}):
        info = load(tmp_path / "a.nnp")
        optimizer = info.optimizers["o"]
        assert (optimizer.solver.name, optimizer.update_interval, optimizer.weight_decay) == (name, 2, 0.5)
        assert optimizer.solver.learning_rate() == 0.25
        network = info.networks["net"]
        for variable, values in zip(network.inputs.values(), (x.d, 0), strict=True):
            variable.d = values
        step(optimizer.solver, network.outputs["y"])
        again = {key: p.d.copy() for key, p in nn.get_parameters().items()}
    step(solver, y)
    for key, parameter in nn.get_parameters().items():
        np.testing.assert_allclose(again[key], parameter.d, rtol=1e-6, atol=1e-7)


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


def test_two_files_with_other_shapes_under_the_same_names(tmp_path):
    loaders = []
    for width in (3, 5):
        nn.clear_parameters()
        x = nn.Variable.from_numpy_array(np.ones((2, width)))
        y = PF.affine(x, width + 1, name="a")
        y.forward()
        save(tmp_path / f"{width}.nnp", contents(x, y))
        loaders.append((tmp_path / f"{width}.nnp", y.d))
    loaders = [(NnpLoader(path), expected) for path, expected in loaders]
    networks = [loader.get_network("net") for loader, _ in loaders]
    nn.clear_parameters()
    networks += [loader.get_network("net") for loader, _ in loaders]
    for network, (_, expected) in zip(networks, loaders * 2, strict=True):
        network.inputs["x"].d = 1
        network.outputs["y"].forward()
        np.testing.assert_allclose(network.outputs["y"].d, expected, rtol=1e-6)
    for value in nn.get_parameters().values():
        value.d = 0
    again = loaders[1][0].get_network("net")
    again.inputs["x"].d = 1
    again.outputs["y"].forward()
    assert not again.outputs["y"].d.any()  # parameters of the right shape are left alone
    with pytest.raises(ArgumentError, match="must keep its shape"):
        load(tmp_path / "3.nnp")


def test_unknown_networks_are_refused():
    loader = NnpLoader(DATA / "convnet.nnp")
    assert loader.get_network_names() == ["net", "train"]
    with pytest.raises(ArgumentError, match=r"get_network: name must be one of \['net', 'train'\], got 'other'"):
        loader.get_network("other")


def test_a_scope_of_its_own():
    scope = {}
    NnpLoader(DATA / "convnet.nnp", scope=scope).get_network("net")
    assert "c1" in scope and not nn.get_parameters(grad_only=False)


def test_the_extension_door_reads_networks(tmp_path):
    info = find_extension("file_formats", ".nnp", "read_network")(DATA / "convnet.nnp", batch_size=3)
    assert info.networks["net"].inputs["x"].shape[0] == 3
    x, y = net()
    find_extension("file_formats", ".nntxt", "write_network")(tmp_path / "n.nntxt", contents(x, y))
    assert (tmp_path / "n.nntxt").exists()


def test_the_doors_name_the_package_that_is_missing(monkeypatch):
    monkeypatch.setattr("nn_core.files.network_package.PACKAGE", "nn_ext_nnp_missing")
    with pytest.raises(BackendNotFoundError, match=r"(?s)nn-ext-nnp, got no module .*hint: pip install nn-ext-nnp"):
        load("a.nnp")


def test_the_parameters_of_a_module_in_a_network_are_written(tmp_path):
    module = nn.Sequential(nn.layers.Affine(3), nn.layers.BatchNorm()).eval()
    x = nn.Variable((4, 5), name="x")
    y = module(x)
    for parameter in module.get_parameters().values():
        parameter.d = np.random.RandomState(0).rand(*parameter.shape)
    save(str(tmp_path / "net.nnp"), contents(x, y))
    save(str(tmp_path / "part.nnp"), contents(x, y), parameters=module)
    x.d = np.random.RandomState(1).randn(*x.shape)
    y.forward()
    for name in ("net.nnp", "part.nnp"):
        network = next(iter(load(tmp_path / name, batch_size=4).networks.values()))
        next(iter(network.inputs.values())).d = x.d
        result = next(iter(network.outputs.values()))
        result.forward()
        np.testing.assert_allclose(result.d, y.d, atol=1e-5)
