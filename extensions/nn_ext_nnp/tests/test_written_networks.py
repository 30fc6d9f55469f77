"""Networks that are written: they compute and train the same when they are read again."""

import io
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.ext import find_extension
from nn_core.graph_rewriting import functions_of
from nn_core.utils.load import load
from nn_core.utils.nnp_graph import NnpLoader
from nn_core.utils.save import create_proto, save

DATA = Path(__file__).with_name("data")
FILES = ("convnet.nnp", "convnet_protobuf.nnp", "convnet.nntxt", "convnet.protobuf")


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
    y = x * nn.Variable((1, 3))
    network = {"name": "net", "batch_size": 1, "names": {"x": x}, "outputs": {"y": y}}
    save(tmp_path / "a.nnp", {"networks": [network]})
    assert "inputs of network 'net' must have names, got none for one of shape (1, 3)" in caplog.text
    assert list(load(tmp_path / "a.nnp").networks["net"].inputs) == ["x", "@net/Mul2_in"]


@pytest.mark.parametrize("file", ["n.nnp", "n.protobuf"])
def test_constants_keep_their_values(tmp_path, caplog, file):
    values = np.array([[0.5, -2.0, 3.25]])
    x = nn.Variable((1, 3))
    named, trained = nn.Variable.from_numpy_array(values), nn.Variable.from_numpy_array(values * 3, need_grad=True)
    named.name, trained.name = "/net//shift", "net"
    y = (x + nn.Variable.from_numpy_array(values)) * named - F.gather(trained, nn.Variable.from_numpy_array([2, 0, 1]), axis=1)
    save(tmp_path / file, contents(x, y), include_params=True)
    with nn.parameter_scope("", {}):
        network = load(tmp_path / file).networks["net"]
        constants = nn.get_parameters(grad_only=False)
        assert {name: parameter.need_grad for name, parameter in constants.items()} == {
            "constant": False, "net/shift": False, "net_1": True, "constant_1": False,
        }  # fmt: skip
        assert list(network.inputs) == ["x"]
        network.inputs["x"].d = values
        network.outputs["y"].forward()
    np.testing.assert_allclose(network.outputs["y"].d, 2 * values**2 - 3 * values[:, [2, 0, 1]])
    assert not caplog.records


@pytest.mark.parametrize("way", ["forward", "cleared", "dynamic", "numpy"])
def test_a_computed_constant_keeps_its_values(tmp_path, caplog, way):
    x, w = nn.Variable((1, 3)), nn.Variable.from_numpy_array(np.float32([[0.5, -2.0, 3.25]]))
    with nn.auto_forward(way == "dynamic"):
        total = F.relu(w) * 2
    if way != "dynamic":
        total.forward(clear_buffer=way == "cleared")
    if way == "numpy":
        total.numpy()
    y = x * total.get_unlinked_variable(need_grad=False)
    y.forward()  # reads the zeros of x, which stays an input
    save(tmp_path / "n.nnp", contents(x, y))
    with nn.parameter_scope("", {}):
        network = load(tmp_path / "n.nnp").networks["net"]
        network.inputs["x"].d = 2
        network.outputs["y"].forward()
    assert network.outputs["y"].d.tolist() == [[2.0, 0.0, 13.0]]
    assert not caplog.records


def test_a_leaf_whose_zeros_a_pass_has_read_is_an_input(tmp_path, caplog):
    x, other = nn.Variable((1, 3)), nn.Variable((1, 3))
    y = x * other
    y.forward()
    with nn.parameter_scope("", {}):
        save(tmp_path / "n.nnp", contents(x, y))
        assert list(load(tmp_path / "n.nnp").networks["net"].inputs) == ["x", "@net/Mul2_in"]
    assert "must have names" in caplog.text


def test_a_constant_over_memory_of_somebody_else_keeps_its_values(tmp_path, caplog):
    x, values = nn.Variable((1, 3)), np.array([[0.5, -2.0, 3.25]], np.float32)
    save(tmp_path / "n.nnp", contents(x, x * nn.Variable.from_dlpack(values)))
    with nn.parameter_scope("", {}):
        network = load(tmp_path / "n.nnp").networks["net"]
        network.inputs["x"].d = 2
        network.outputs["y"].forward()
    assert network.outputs["y"].d.tolist() == (2 * values).tolist()
    assert not caplog.records


def test_integers_that_files_cannot_hold_are_refused(tmp_path):
    x = nn.Variable((1, 3))
    y = F.gather(x, nn.Variable.from_numpy_array(np.array([0, 2**24 + 1])), axis=1)
    with pytest.raises(ArgumentError, match=r"integers of 'constant' must be those that float32 holds, got 16777217"):
        save(tmp_path / "a.nnp", contents(x, y))


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


def test_operands_of_losses_are_broadcast(tmp_path):
    rng = np.random.default_rng(0)
    x, target = (nn.Variable.from_numpy_array(rng.uniform(0.1, 0.9, shape)) for shape in ((2, 3, 4), (3, 1)))
    y = F.binary_cross_entropy(x, target)
    network = {"name": "net", "batch_size": 2, "names": {"x": x, "t": target}, "outputs": {"y": y}}
    save(tmp_path / "a.nnp", {"networks": [network]}, variable_batch_size=False)
    again = load(tmp_path / "a.nnp").networks["net"]
    again.inputs["x"].d, again.inputs["t"].d = x.d, target.d
    again.outputs["y"].forward()
    y.forward()
    np.testing.assert_allclose(again.outputs["y"].d, y.d, rtol=1e-6)
    assert {variable.shape for variable in again.outputs["y"].parent.inputs} == {(2, 3, 4)}


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_matrices_are_functions_of_files(tmp_path, flags):
    """BatchMatmul of NNabla takes three axes at least."""
    rng = np.random.default_rng(0)
    x = nn.Variable.from_numpy_array(rng.normal(size=(3, 2) if flags[0] else (2, 3)))
    w = parameter("w", 4, 3) if flags[1] else parameter("w", 3, 4)
    y = F.batch_matmul(x, w, transpose_a=flags[0], transpose_b=flags[1])
    save(tmp_path / "a.nnp", contents(x, y), variable_batch_size=False)
    y.forward()
    with nn.parameter_scope("", {}):
        again = load(tmp_path / "a.nnp").networks["net"]
        assert again.outputs["y"].parent.name == "Affine"
        again.inputs["x"].d = x.d
        again.outputs["y"].forward()
    np.testing.assert_allclose(again.outputs["y"].d, y.d, rtol=1e-6)


@pytest.mark.parametrize("pool", [F.max_pooling, F.average_pooling, F.sum_pooling])
@pytest.mark.parametrize("is_last", [False, True])
def test_poolings_along_one_axis_are_those_of_images(tmp_path, pool, is_last):
    """Poolings of NNabla have two or three spatial axes."""
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(2, 9, 4)))
    y = F.tanh(pool(x, (3,), (2,), ignore_border=False, pad=(1,), channel_last=is_last))
    y.forward()
    save(tmp_path / "a.nnp", contents(x, y), variable_batch_size=True)
    for samples in (2, 3):
        with nn.parameter_scope("", {}):
            again = NnpLoader(str(tmp_path / "a.nnp")).get_network("net", batch_size=samples)
            kernels = [f.args["kernel"] for f in functions_of(list(again.outputs.values())) if "Pooling" in f.name]
            assert kernels == [[1, 3]]
            again.inputs["x"].d = np.resize(x.d, (samples, 9, 4))
            again.outputs["y"].forward()
        np.testing.assert_array_equal(again.outputs["y"].d[:2], y.d)


@pytest.mark.parametrize("shape", [(2, 3, 8), (2, 3, 4, 5, 6)])
def test_global_poolings_of_other_than_images_are_means(tmp_path, shape):
    """GlobalAveragePooling of NNabla has results with four axes."""
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=shape))
    y = F.global_average_pooling(x)
    y.forward()
    save(tmp_path / "a.nnp", contents(x, y))
    again = load(tmp_path / "a.nnp").networks["net"]
    assert again.outputs["y"].parent.name == "Mean"
    again.inputs["x"].d = x.d
    again.outputs["y"].forward()
    np.testing.assert_allclose(again.outputs["y"].d, y.d, rtol=1e-6)


def test_poolings_of_many_axes_are_refused():
    x = nn.Variable((1, 2, 4, 4, 4, 4))
    with pytest.raises(ArgumentError, match=r"at most three spatial axes, got MaxPooling with kernel \(2, 2, 2, 2\)"):
        save(io.BytesIO(), contents(x, F.max_pooling(x, (2, 2, 2, 2))))


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


class _Sigmoid(nn.PythonFunction):
    """A function that has the name of another one and computes something else."""

    @property
    def name(self):
        return "Sigmoid"

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d * 5


def test_functions_in_python_are_refused_whatever_their_name(tmp_path):
    x = nn.Variable((2, 3))
    with pytest.raises(ArgumentError, match="functions of network 'net' must not be written in Python, got Sigmoid"):
        save(tmp_path / "n.nnp", contents(x, _Sigmoid()(x)))


class _Shifted(nn.PythonFunction):
    """A function in Python that says by which functions it is expressed, with a constant."""

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d + np.array([1.0, 2.0, 3.0])

    def expressed(self, inputs):
        return [inputs[0] + nn.Variable.from_numpy_array([[1.0, 2.0, 3.0]])]


def test_functions_in_python_are_written_as_what_expresses_them(tmp_path):
    x = nn.Variable.from_numpy_array(np.arange(6.0).reshape(2, 3))
    h = _Shifted()(x)
    y = F.tanh(h)
    network = {"name": "net", "batch_size": 2, "names": {"x": x, "h": h}, "outputs": {"y": y}}
    save(tmp_path / "n.nnp", {"networks": [network]})
    y.forward()
    with nn.parameter_scope("", {}):
        again = NnpLoader(str(tmp_path / "n.nnp")).get_network("net", batch_size=2)
        again.inputs["x"].d = x.d
        again.outputs["y"].forward()
    np.testing.assert_allclose(again.outputs["y"].d, y.d, rtol=1e-6)
    assert again.variables["h"].parent.name == "Add2"
    assert h.parent.name == "_Shifted"


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


def test_the_extension_door_reads_networks(tmp_path):
    info = find_extension("file_formats", ".nnp", "read_network")(DATA / "convnet.nnp", batch_size=3)
    assert info.networks["net"].inputs["x"].shape[0] == 3
    x, y = net()
    find_extension("file_formats", ".nntxt", "write_network")(tmp_path / "n.nntxt", contents(x, y))
    assert (tmp_path / "n.nntxt").exists()


@pytest.mark.parametrize("extension", [".nnp", ".nntxt", ".protobuf"])
def test_names_that_utf8_lacks_are_refused(tmp_path, extension):
    x = nn.Variable((2, 3))
    for name, port in (("\udcff", "y"), ("n", "\udcff")):
        network = {"name": name, "batch_size": 2, "outputs": {port: F.tanh(x)}, "names": {"x": x}}
        with pytest.raises(ArgumentError, match=r"^save: names must be text that UTF-8 can hold, got .*\\udcff"):
            save(tmp_path / f"m{extension}", {"networks": [network]})
    assert not any(tmp_path.iterdir())
