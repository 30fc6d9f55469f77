"""Networks of Caffe: inputs, phases, older layers, training, damaged files."""

import re

import numpy as np
import pytest

import nn_core.functions as F
import nn_core.solvers as S
from extensions.nn_ext_caffe.tests.nets import drawn, layer, net, text_of, written
from nn_core.ext import ArgumentError, FileFormatError, NNCoreError, find_extension
from nn_core.files import reading_budget
from nn_ext_caffe import load
from nn_ext_caffe.schema import message

DENSE = "inner_product_param { num_output: 3 }"
TRAINING = (
    'name: "trained" layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TRAIN } }'
    'layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TEST } data_param { batch_size: 2 } }'
    + layer("InnerProduct", DENSE, ("data",), ("h",), "fc")
    + layer("ReLU", "", ("h",), ("h",), "relu")
    + layer("SoftmaxWithLoss", "", ("h", "label"), ("loss",), "loss")
    + layer("Accuracy", "include { phase: TEST }", ("h", "label"), ("accuracy",), "accuracy")
)
WEIGHTS = {"fc": [drawn(3, 4), drawn(3)]}


def test_labels_that_are_no_inputs_are_left_out(tmp_path):
    _, path = written(tmp_path, TRAINING, WEIGHTS)
    network = load(path, shapes={"data": (2, 4)})
    assert (network.name, list(network.inputs), list(network.outputs)) == ("trained", ["data"], ["loss"])
    network.inputs["data"].d = x = drawn(2, 4)
    network.outputs["loss"].forward()
    h = np.maximum(x @ WEIGHTS["fc"][0].T + WEIGHTS["fc"][1], 0)
    np.testing.assert_allclose(network.outputs["loss"].d, np.exp(h) / np.exp(h).sum(axis=1, keepdims=True), rtol=1e-5)


def test_losses_and_accuracy_are_computed_where_labels_are_inputs(tmp_path):
    paths = written(tmp_path, TRAINING, WEIGHTS)
    network = load(*paths, shapes={"data": (2, 4), "label": (2,)})
    network.inputs["data"].d, network.inputs["label"].d = drawn(2, 4), [0, 2]
    both = F.sink(*network.outputs.values())
    for output in network.outputs.values():
        output.persistent = True
    both.forward()
    h = np.maximum(drawn(2, 4) @ WEIGHTS["fc"][0].T + WEIGHTS["fc"][1], 0).astype(np.float64)
    p = np.exp(h) / np.exp(h).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(network.outputs["loss"].d, -np.log(p[[0, 1], [0, 2]]).mean(), rtol=1e-5)
    assert network.outputs["accuracy"].d == (h.argmax(axis=1) == [0, 2]).mean()


def test_networks_are_trained_further(tmp_path):
    network = load(*written(tmp_path, TRAINING, WEIGHTS), shapes={"data": (2, 4), "label": (2,)}, phase="TRAIN")
    assert list(network.outputs) == ["loss"] and sorted(network.parameters) == ["fc/W", "fc/b"]
    network.inputs["data"].d, network.inputs["label"].d = drawn(2, 4), [0, 2]
    solver, losses = S.Sgd(lr=0.5), []
    solver.set_parameters(network.parameters)
    for _ in range(20):
        network.outputs["loss"].forward()
        losses.append(float(network.outputs["loss"].d))
        solver.zero_grad()
        network.outputs["loss"].backward()
        solver.update()
    assert losses[-1] < 0.5 * losses[0]


def test_a_missing_input_is_named(tmp_path):
    _, path = written(tmp_path, TRAINING, WEIGHTS)
    with pytest.raises(
        ArgumentError, match=r"InnerProduct 'fc': it reads 'data', which shapes=\{'data': \(...\)\} makes an input"
    ):
        load(path)


def test_layers_before_2014_are_read(tmp_path):
    text = (
        'name: "old" input: "data" input_dim: 1 input_dim: 2 input_dim: 4 input_dim: 4 '
        'layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" convolution_param { num_output: 3 kernel_size: 3 } } '
        'layers { name: "r" type: RELU bottom: "c" top: "c" } '
        'layers { name: "p" type: SOFTMAX_LOSS bottom: "c" bottom: "label" top: "p" }'
    )
    made = net(text)
    for array in (drawn(3, 2, 3, 3), drawn(1, 1, 1, 3)):
        older = message("BlobProto", data=[array.tobytes()])
        older.num, older.channels, older.height, older.width = array.shape
        made.layers[0].blobs.append(older)
    path = tmp_path / "old.caffemodel"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(ArgumentError, match="SoftmaxWithLoss 'p': it reads 'label'"):
        load(path)
    del made.layers[2]
    path.write_bytes(made.SerializeToString())
    network = load(path, batch_size=5)
    assert network.outputs["c"].shape == (5, 3, 2, 2)
    x = drawn(5, 2, 4, 4)
    network.inputs["data"].d = x
    network.outputs["c"].forward()
    expected = np.einsum("bchw,ochw->bo", x[:, :, :3, 1:], drawn(3, 2, 3, 3)) + drawn(1, 1, 1, 3).reshape(3)
    np.testing.assert_allclose(network.outputs["c"].d[:, :, 0, 1], np.maximum(expected, 0), rtol=1e-4, atol=1e-5)


def test_layers_inside_of_layers_are_refused(tmp_path):
    made = message("NetParameter")
    made.layers.add(layer=b"\x0a\x01a")
    path = tmp_path / "oldest.caffemodel"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(FileFormatError, match="layers must be those of Caffe from 2014 on"):
        load(path)


def test_weights_in_float64_are_read(tmp_path):
    made = net(text_of(layer("InnerProduct", DENSE), (2, 4)))
    for array in WEIGHTS["fc"]:
        wide = made.layer[1].blobs.add(double_data=[array.astype("<f8").tobytes()])
        wide.shape.dim.extend(array.shape)
    path = tmp_path / "wide.caffemodel"
    path.write_bytes(made.SerializeToString())
    np.testing.assert_array_equal(load(path).parameters["one/W"].d, WEIGHTS["fc"][0].T)


def test_blobs_hold_features_of_layers_in_the_middle(tmp_path):
    network = load(*written(tmp_path, TRAINING, WEIGHTS), shapes={"data": (2, 4)})
    assert network.blobs["h"].parent.name == "ReLU"


def test_the_command_finds_the_reader(tmp_path):
    read = find_extension("file_formats", ".caffemodel", "read_network")
    _, path = written(tmp_path, text_of(layer("TanH"), (2, 3)))
    assert read(path, batch_size=7).outputs["y"].shape == (7, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layer {", "the text must be a network of Caffe, got: 1:7"),
        ('layer { name: "a" depth: 3 }', "the text must be a network of Caffe, got: 1:19"),
        ("\xff", "the text must be a network of Caffe"),
    ],
)
def test_texts_of_other_kinds_are_refused(tmp_path, text, message):
    path = tmp_path / "net.prototxt"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FileFormatError, match=f"net.prototxt: {message}"):
        load(path)


def test_numbers_that_a_shape_does_not_have_are_refused(tmp_path):
    made = net(text_of(layer("InnerProduct", DENSE), (2, 4)), {"one": WEIGHTS["fc"]})
    made.layer[1].blobs[0].shape.dim[0] = 1 << 40
    path = tmp_path / "net.caffemodel"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(
        FileFormatError, match=re.escape("layer 'one': a blob must have the numbers of its shape (1099511627776, 4)")
    ):
        load(path)


def test_one_name_of_two_layers_is_refused(tmp_path):
    text = text_of(layer("PReLU") + layer("PReLU", "", ("y",), ("z",)), (2, 3))
    with pytest.raises(ArgumentError, match="PReLU 'one': two layers have the name 'one'"):
        load(written(tmp_path, text, {"one": [drawn(3)]})[1])


def test_files_stay_within_the_budget_of_readers(tmp_path):
    prototxt, model = written(tmp_path, text_of(layer("TanH"), (2, 3)))
    for path in (prototxt, model):
        with (
            reading_budget(nodes=1),
            pytest.raises(FileFormatError, match=r"layers of the network must stay within .* nodes 1, got 2"),
        ):
            load(path)
    with reading_budget(text_bytes=10), pytest.raises(FileFormatError, match=r"the text must stay within .* text_bytes 10"):
        load(prototxt)
    prototxt.write_text(" " * 5000)
    with pytest.raises(FileFormatError, match="blanks in a row must stay within"):
        load(prototxt)


def test_damaged_files_raise_our_errors_only(tmp_path):
    _, path = written(tmp_path, TRAINING, WEIGHTS)
    whole, rng = path.read_bytes(), np.random.default_rng(5)
    n_read = 0
    for _ in range(150):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), 1 + rng.integers(3)):
            data[at] = rng.integers(256)
        path.write_bytes(bytes(data[: rng.integers(len(data) // 2, len(data) + 1)] if rng.integers(2) else data))
        try:
            load(path, shapes={"data": (2, 4), "label": (2,)})
            n_read += 1
        except NNCoreError:
            pass
    assert n_read


def test_refused_inputs_name_the_file(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text('input: "x" input_dim: -1')
    with pytest.raises(ArgumentError, match=r"inputs must have a shape that fits into memory, .*\n  file: .*net\.prototxt"):
        load(path)
