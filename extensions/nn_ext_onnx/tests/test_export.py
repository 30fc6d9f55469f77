"""Models as a whole: names, dynamic axes, external data, verification, errors."""

import numpy as np
import onnx
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext import ArgumentError, find_extension
from nn_core.graph_rewriting import copy_graph
from nn_ext_onnx import export, export_model, load
from nn_ext_onnx.exporting import verification
from nn_ext_onnx.exporting.models import IR_VERSIONS

ort = pytest.importorskip("onnxruntime", reason="the judge of exported models")


def small_net(batch=4):
    x = nn.Variable((batch, 3, 8, 8), name="image")
    h = F.relu(PF.batch_normalization(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="c"), batch_stat=False, name="b"))
    h = F.reshape(F.max_pooling(h, (2, 2)), (batch, -1))
    return x, F.softmax(PF.affine(h, 5, name="a"))


@pytest.mark.parametrize("opset", sorted(IR_VERSIONS))
def test_each_operator_set_has_its_version_of_the_format(opset):
    x, y = small_net()
    model = export_model({"y": y}, {"x": x}, opset=opset)
    assert (model.opset_import[0].version, model.ir_version) == (opset, IR_VERSIONS[opset])
    x.d = np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
    y.forward()
    (found,) = verification.run_model(model, {"x": x.d})
    np.testing.assert_allclose(found, y.d, rtol=0, atol=1e-6)


def test_parameters_keep_their_names_and_layout():
    x, y = small_net()
    model = export_model({"y": y}, {"x": x})
    tensors = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    assert tensors["c/conv/W"] == [4, 3, 3, 3]
    assert tensors["a/affine/W"] == [64, 5]
    assert [entry.name for entry in model.graph.input] == ["x"]
    assert {node.op_type for node in model.graph.node} == {
        "Conv", "BatchNormalization", "Relu", "MaxPool", "Reshape", "Gemm", "Softmax",
    }  # fmt: skip


def test_parameters_in_another_layout_and_dtype_keep_their_names():
    x, y = small_net()
    tensors = {tensor.name for tensor in export_model({"y": y}, {"x": x}).graph.initializer}
    assert {name for name in tensors if "/" in name} == set(nn.get_parameters(grad_only=False))
    with nn.context_scope(nn.Context(["reference:double"])):
        z = PF.affine(nn.Variable((2, 3)), 4, name="double")
        assert {tensor.name for tensor in export_model(z).graph.initializer} == {"double/affine/W", "double/affine/b"}


def test_a_parameter_in_two_layouts_is_two_constants():
    x, w = nn.Variable((2, 3)), nn.parameter.get_parameter_or_create("w", (3, 1))
    y = F.concatenate(x * F.reshape(w, (1, 3)), F.reshape(F.affine(x, w), (2, 1)), axis=1)
    assert len([t for t in export_model(y).graph.initializer if t.name.startswith("w")]) == 2


def test_nodes_have_names_of_scopes():
    x, y = small_net()
    names = [node.name for node in export_model({"y": y}, {"x": x}).graph.node]
    assert names == ["c/conv/Conv", "b/bn/BatchNormalization", "Relu", "MaxPool", "Reshape", "a/affine/Gemm", "Softmax"]
    z = F.tanh(F.tanh(x))
    assert [node.name for node in export_model(z).graph.node] == ["Tanh", "Tanh_1"]


def test_models_say_who_wrote_them_and_what_they_are(tmp_path):
    x = nn.Variable((2, 3))
    export(tmp_path / "t.onnx", F.tanh(x), description="A tangent.", metadata={"author": "me", "license": "none"})
    model = onnx.load(tmp_path / "t.onnx")
    assert (model.producer_name, model.producer_version) == ("nn_core", nn.__version__)
    assert model.doc_string == "A tangent."
    assert {entry.key: entry.value for entry in model.metadata_props} == {"author": "me", "license": "none"}
    with pytest.raises(ArgumentError, match=r"description and metadata must be texts, got '' and \{'n': 3\}"):
        export_model(F.tanh(x), metadata={"n": 3})


def test_what_a_model_says_of_itself_comes_back():
    x = nn.Variable((2, 3), name="image")
    texts = {"name": "tangent", "description": "A tangent.", "metadata": {"author": "me"}}
    network = load(export_model(F.tanh(x), **texts))
    assert (network.name, network.description, network.metadata) == tuple(texts.values())
    again = export_model(network)
    assert (again.graph.name, again.doc_string) == ("tangent", "A tangent.")
    assert [(entry.key, entry.value) for entry in again.metadata_props] == [("author", "me")]
    other = export_model(network, name="other", description="", metadata={})
    assert (other.graph.name, other.doc_string, len(other.metadata_props)) == ("other", "", 0)
    y = F.tanh(x)
    y.name = "probability"
    assert export_model(y).graph.name == "network"


def test_inputs_are_found_without_being_named():
    _, y = small_net()
    model = export_model(y)
    assert [entry.name for entry in model.graph.input] == ["image"]
    assert [entry.name for entry in model.graph.output] == ["y"]


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_the_batch_is_dynamic(batch):
    x, y = small_net()
    model = export_model({"y": y}, {"x": x}, dynamic_batch="N")
    assert [axis.dim_param or axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim] == ["N", 3, 8, 8]
    assert model.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "N"
    values = np.random.default_rng(batch).normal(size=(batch, 3, 8, 8)).astype(np.float32)
    other = nn.Variable.from_numpy_array(values)

    def reshaped(function, inputs):
        return function.applied_to(*inputs, shape=(batch, -1)) if function.name == "Reshape" else None

    (expected,) = copy_graph([y], {x: other}, reshaped)
    expected.forward()
    (found,) = verification.run_model(model, {"x": values})
    np.testing.assert_allclose(found, expected.d, rtol=0, atol=1e-6)


def test_lengths_that_follow_from_the_batch_are_formulas():
    x = nn.Variable((2, 3, 5))
    joined = F.reshape(F.broadcast(F.reshape(x, (2, 1, 3, 5)), (2, 4, 3, 5)), (2, 60))
    flipped = F.slice(F.concatenate(joined, x.reshape((2, 15)), axis=1), start=(3,), stop=(70,))
    model = export_model({"y": F.flip(flipped, axes=(0,))}, {"x": x}, dynamic_batch=True)
    for batch in (1, 3):
        values = np.random.default_rng(0).normal(size=(batch, 3, 5)).astype(np.float32)
        repeated = np.repeat(values[:, None], 4, axis=1).reshape(batch, 60)
        expected = np.concatenate((repeated, values.reshape(batch, 15)), axis=1)[::-1, 3:70]
        np.testing.assert_array_equal(verification.run_model(model, {"x": values})[0], expected)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda x: F.reshape(x, (6,)), "must work for any batch|as its first axis only"),
        (lambda x: F.transpose(x, (1, 0)), "as its first axis only"),
        (lambda x: x + nn.Variable.from_numpy_array(np.ones((2, 3))), "must work for any batch"),
        (lambda x: F.unpooling(F.reshape(x, (1, 1, 2, 3)), (2, 2)), "any batch|first axis only|lengths of axes"),
    ],
)
def test_graphs_that_depend_on_the_batch_are_refused(build, match):
    x = nn.Variable((2, 3))
    with pytest.raises(ArgumentError, match=match):
        export_model({"y": build(x)}, {"x": x}, dynamic_batch=True)


def test_all_functions_that_cannot_be_exported_are_listed():
    x = nn.Variable((2, 3))
    y = F.tanh(x) + F.rand_gamma(shape=(2, 3)) * F.rand_beta(shape=(2, 3))
    with pytest.raises(ArgumentError) as caught:
        export_model({"y": y}, {"x": x})
    assert str(caught.value).count("there is no way to write it") == 2
    assert "RandGamma (function" in str(caught.value)
    assert "RandBeta (function" in str(caught.value)


def test_other_operator_sets_and_outputs_are_refused():
    x = nn.Variable((2, 3))
    with pytest.raises(ArgumentError, match="opset must be from 13 to 24, got 12"):
        export_model(F.tanh(x), opset=12)
    with pytest.raises(ArgumentError, match="outputs must be Variables, got"):
        export_model({"y": 3})


def test_external_data(tmp_path):
    x, y = small_net()
    export(tmp_path / "net.onnx", {"y": y}, {"x": x}, external_data=True)
    export(tmp_path / "whole.onnx", {"y": y}, {"x": x})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data", "whole.onnx"]
    values = np.ones(x.shape, np.float32)
    found, expected = (
        ort.InferenceSession(tmp_path / name).run(None, {"x": values})[0] for name in ("net.onnx", "whole.onnx")
    )
    np.testing.assert_array_equal(found, expected)


def test_verification_finds_a_difference(tmp_path, monkeypatch):
    x, y = small_net()
    export(tmp_path / "right.onnx", {"y": y}, {"x": x}, verify=True)
    run = verification.run_model
    monkeypatch.setattr(verification, "run_model", lambda model, arrays: [values + 1 for values in run(model, arrays)])
    with pytest.raises(ArgumentError, match="in onnxruntime, got a difference of"):
        export(tmp_path / "wrong.onnx", {"y": y}, {"x": x}, verify=True)
    assert not (tmp_path / "wrong.onnx").exists()


def test_several_outputs_and_one_variable_twice():
    x = nn.Variable((2, 3))
    y = F.tanh(x)
    model = export_model({"a": y, "b": y, "c": x, "d": y * 2}, {"x": x})
    x.d = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = verification.run_model(model, {"x": x.d})
    for values, expected in zip(found, (np.tanh(x.d), np.tanh(x.d), x.d, 2 * np.tanh(x.d)), strict=True):
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-6)


def test_indices_are_integers():
    labels, table = nn.Variable((4,)), nn.Variable((7, 3), name="table")
    model = export_model({"y": F.embed(labels, table)}, {"labels": labels, "table": table})
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.INT64
    assert [node.op_type for node in model.graph.node] == ["Gather"]


@pytest.mark.parametrize(
    ("opset", "build", "native"),
    [
        (17, PF.layer_normalization, "LayerNormalization"),
        (21, lambda x: PF.group_normalization(x, 2), "GroupNormalization"),
        (20, F.gelu, "Gelu"),
        (18, F.mish, "Mish"),
        (13, PF.instance_normalization, "InstanceNormalization"),
    ],
)
def test_operators_that_the_set_has_are_used(opset, build, native):
    x = nn.Variable((2, 4, 3, 3))
    y = build(x)
    assert [node.op_type for node in export_model(y, opset=opset).graph.node] == [native]
    if opset > 13:
        assert native not in [node.op_type for node in export_model(y, opset=opset - 1).graph.node]


def test_the_door_finds_the_format(tmp_path):
    _, y = small_net()
    find_extension("file_formats", ".onnx", "write_network")(tmp_path / "net.onnx", y)
    assert onnx.load(tmp_path / "net.onnx").graph.name == "network"


def test_parameters_of_a_module_are_no_inputs_and_keep_their_names(tmp_path):
    net = nn.Sequential(nn.layers.Affine(3), nn.layers.BatchNorm(), F.relu).eval()
    x = nn.Variable((4, 5), name="x")
    y = net(x)
    x.d = np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
    export(tmp_path / "net.onnx", y, dynamic_batch=True, verify=True)
    graph = onnx.load(tmp_path / "net.onnx").graph
    assert [port.name for port in graph.input] == ["x"]
    assert {"@affine_0/affine/W", "@affine_0/affine/b"} <= {tensor.name for tensor in graph.initializer}
    names = {f"net/{name}": parameter for name, parameter in net.get_parameters().items()}
    model = export_model(y, parameters=names)
    assert "net/@affine_0/affine/W" in {tensor.name for tensor in model.graph.initializer}
    with nn.parameter_scope("scope"):
        z = PF.affine(x, 3)
    assert "scope/affine/W" in {t.name for t in export_model(z, parameters="scope").graph.initializer}


def test_names_that_utf8_lacks_are_refused(tmp_path):
    x = nn.Variable((2, 3))
    name = "\udcff"
    for arguments in ({"inputs": {name: x}}, {"name": name}, {"description": name}, {"metadata": {"a": name}}):
        with pytest.raises(ArgumentError, match=r"^export: names and texts must be text that UTF-8 can hold, got '\\udcff'"):
            export(tmp_path / "m.onnx", {"y": F.tanh(x)}, **arguments)
    assert not any(tmp_path.iterdir())
