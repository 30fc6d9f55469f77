"""Commands on files of ONNX, on either side."""

import csv
import re

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from extensions.nn_ext_nnp.tests.test_commands import run
from nn_core.utils.nnp_graph import NnpLoader

onnx = pytest.importorskip("onnx", reason="the other format")
onnxruntime = pytest.importorskip("onnxruntime", reason="the judge of files of ONNX")
nn_ext_onnx = pytest.importorskip("nn_ext_onnx", reason="reads and writes it")
from nn_ext_onnx import export, load  # noqa: E402

VALUES = np.random.default_rng(0).normal(size=(3, 2, 4)).astype(np.float32)
#: A model with integers, which files of NNabla cannot hold, and axes without lengths.
INTEGERS = '<ir_version: 8, opset_import: ["": 13]> g (int64[N, M] x) => (int64[N, M] y) { y = Add(x, x) }'


def net(batch=2):
    """Return a network of which one constant is no parameter of the scope."""
    x = nn.Variable((batch, 2, 4), name="x")
    h = F.tanh(PF.affine(x, 5, name="a")) * nn.Variable.from_numpy_array(np.linspace(0.5, 1.5, 5))
    return x, F.softmax(PF.affine(h, 3, name="b"))


@pytest.fixture
def model(tmp_path):
    x, y = net()
    export(tmp_path / "net.onnx", {"y": y}, {"x": x}, dynamic_batch=True)
    x, y = net(3)
    x.d = VALUES
    y.forward()
    return tmp_path / "net.onnx", np.array(y.d)


def computed(path, values):
    (found,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": values})
    return found


def test_onnx_becomes_nnp_and_back(tmp_path, model):
    path, expected = model
    run("convert", path, tmp_path / "net.nnp")
    with nn.parameter_scope("", {}):
        loader = NnpLoader(tmp_path / "net.nnp")
        network = loader.get_network(loader.get_network_names()[0], batch_size=3)
        assert {"a/affine/W", "b/affine/b"} <= set(nn.get_parameters(grad_only=False))
        network.inputs["x"].d = VALUES
        network.outputs["y"].forward()
        np.testing.assert_allclose(network.outputs["y"].d, expected, atol=1e-6)
    run("convert", tmp_path / "net.nnp", tmp_path / "again.onnx", "-d", "opset_21")
    again = onnx.load(tmp_path / "again.onnx")
    assert again.opset_import[0].version == 21
    assert "a/affine/W" in {tensor.name for tensor in again.graph.initializer}
    np.testing.assert_allclose(computed(tmp_path / "again.onnx", VALUES), expected, atol=1e-6)
    run("convert", "-b", "3", tmp_path / "net.nnp", tmp_path / "three.onnx")
    assert onnx.load(tmp_path / "three.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3


def test_onnx_becomes_nnb(tmp_path, model):
    run("convert", model[0], tmp_path / "net.nnb")
    assert (tmp_path / "net.nnb").stat().st_size > 4 * (2 * 4 * 5 + 5 * 3)


def test_networks_of_onnx_are_run(tmp_path, model):
    path, expected = model
    VALUES.tofile(tmp_path / "x.bin")
    assert run("infer", "-c", path, "-b", 3, "-o", tmp_path / "r", tmp_path / "x.bin") == "3 samples\n"
    for n in range(3):
        np.testing.assert_allclose(np.fromfile(tmp_path / f"r_{n}.bin", "<f4"), expected[n], atol=1e-6)
    for n, values in enumerate(VALUES):
        np.savetxt(tmp_path / f"{n}.csv", values, delimiter=",")
    (tmp_path / "data.csv").write_text("x:x\n0.csv\n1.csv\n2.csv\n")
    run("forward", "-c", path, "-d", tmp_path / "data.csv", "-o", tmp_path / "results")
    with (tmp_path / "results" / "output_result.csv").open() as file:
        rows = list(csv.reader(file))
    np.testing.assert_allclose(np.array(rows[1:])[:, -3:].astype(float), expected, atol=1e-5)
    assert "--param must be given with files of NNabla only" in run(
        "infer", "-c", path, "-p", tmp_path / "x.bin", tmp_path / "x.bin", code=1
    )


def test_networks_of_onnx_are_shown(tmp_path, model):
    text = run("dump", "-F", model[0])
    assert "batch size 1" in text and "Data      x [-1, 2, 4]" in text and "Affine" in text
    assert "Softmax" in run("function_info", model[0])
    assert (tmp_path / "network.dot") == tmp_path / run("draw_graph", "-f", "dot", "-o", tmp_path, model[0]).strip()
    assert "(7, 3)" in run("summary", "-b", 7, model[0])
    assert "--network must be one of ['network'], got 'x'" in run("summary", "-n", "x", model[0], code=1)
    (tmp_path / "parameters.nntxt").write_text('parameter { variable_name: "a" shape { dim: 1 } data: 1 }')
    assert "parameters.nntxt must have a network, got none" in run("summary", tmp_path / "parameters.nntxt", code=1)


def test_lengths_of_named_axes_are_given(tmp_path):
    path = tmp_path / "integers.onnx"
    model = onnx.parser.parse_model(INTEGERS)
    model.doc_string = "Doubles integers."
    onnx.helper.set_model_props(model, {"author": "me"})
    onnx.save(model, path)
    assert "must give the length of axis 'M' of input 'x'" in run("summary", path, code=1)
    assert "(4, 6)" in run("summary", "-b", 4, "-d", "M=6", path)
    assert "--dimension must be NAME=LENGTH, got 'M'" in run("summary", "-d", "M", path, code=1)
    assert "--dimension must be NAME=LENGTH, got 'M'" in run("dump", "--dimension", "M", path, code=1)
    assert "x [-1, 6]" in run("dump", "--dimension", "M=6", path)
    np.arange(12, dtype=np.int32).tofile(tmp_path / "x.bin")
    run("infer", "-c", path, "-b", 2, "-t", "int32", "--dimension", "M=6", "-o", tmp_path / "r", tmp_path / "x.bin")
    np.testing.assert_array_equal(np.fromfile(tmp_path / "r_1.bin", "<f4"), 2 * np.arange(6, 12))
    run("convert", "--dimension", "M=6", path, tmp_path / "again.onnx")
    np.testing.assert_array_equal(computed(tmp_path / "again.onnx", np.full((7, 6), 2**40)), np.full((7, 6), 2**41))
    again = onnx.load(tmp_path / "again.onnx")
    assert (again.doc_string, again.metadata_props[0].value) == ("Doubles integers.", "me")


def test_networks_for_one_number_of_samples_say_so(tmp_path, caplog):
    text = '<ir_version: 8, opset_import: ["": 13]> g (float[N, 2] x) => (float[2, N] y) { y = Transpose(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "t.onnx")
    run("convert", tmp_path / "t.onnx", tmp_path / "t.nnp")
    assert "t.onnx is read for 1 samples only" in caplog.text
    assert NnpLoader(tmp_path / "t.nnp").get_network("g").outputs["y"].shape == (2, 1)
    error = run("convert", tmp_path / "t.onnx", tmp_path / "u.onnx", code=1)
    assert "as its first axis only" in error and "hint: -b 1 writes it for one sample" in error
    run("convert", "-b", 1, tmp_path / "t.onnx", tmp_path / "u.onnx")
    assert load(tmp_path / "u.onnx").outputs["y"].shape == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-d", "nnb_3", "net.onnx", "a.onnx"), "must be one of opset_13, .* for this format, got nnb_3"),
        (("-d", "opset_17", "net.onnx", "a.nnb"), "must be one of nnb_2, nnb_3 for this format, got opset_17"),
        (
            ("net.tflite", "a.nnp"),
            r"files must be \.nnp, .*, or of a format that an installed package reads, got 'net\.tflite'",
        ),
        (("-I", "NNP", "net.onnx", "a.nnp"), "--import-format NNP must go with"),
    ],
)
def test_wrong_formats_are_refused(tmp_path, monkeypatch, model, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.tflite").write_bytes(b"x")
    assert re.search(message, " ".join(run("convert", *arguments, code=1).split()))
