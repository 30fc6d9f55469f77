"""Large files whose weights are mapped while the graph is built."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from nn_core.ext import ArgumentError, FileFormatError
from nn_ext_onnx import load
from nn_ext_onnx.importing import mapping

WEIGHTS = [np.random.default_rng(seed).normal(size=(64, 64)).astype(np.float32) for seed in range(2)]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Return a model of two products; its files and tensors count as large."""
    monkeypatch.setattr(mapping, "_LARGE_FILE", 1 << 10)
    monkeypatch.setattr(mapping, "_LARGE_TENSOR", 1 << 10)
    tensors = [numpy_helper.from_array(array, f"w{k}") for k, array in enumerate(WEIGHTS)]
    tensors.append(helper.make_tensor("few", onnx.TensorProto.FLOAT, [64], np.ones(64)))
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"]),
        helper.make_node("Add", ["h", "few"], ["a"]),
        helper.make_node("Gemm", ["a", "w1"], ["y"], transB=1),
    ]
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 64]) for name in "xy"]
    graph = helper.make_graph(nodes, "net", ports[:1], ports[1:], tensors)
    made = tmp_path / "net.onnx"
    made.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    return made


def test_mapped_weights_are_those_of_the_file(path):
    assert len(mapping.read_mapped(path)) < 2048 < path.stat().st_size
    network, x = load(path), np.ones((2, 64), np.float32)
    network.inputs["x"].d = x
    network.outputs["y"].forward()
    np.testing.assert_allclose(network.outputs["y"].d, (x @ WEIGHTS[0] + 1) @ WEIGHTS[1].T, rtol=1e-4, atol=1e-3)
    path.unlink()  # the graph has weights of its own
    network.outputs["y"].forward()


def test_links_are_read_whole(path, tmp_path):
    (tmp_path / "link.onnx").symlink_to(path)
    assert mapping.read_mapped(tmp_path / "link.onnx") == path.read_bytes()
    assert load(tmp_path / "link.onnx").outputs["y"].shape == (2, 64)


def test_files_that_are_cut_are_refused(path):
    whole = path.read_bytes()
    for length in (len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="damaged bytes"):
            load(path)


def test_weights_of_another_length_than_their_shape_are_refused(path):
    model = onnx.load(path)
    model.graph.initializer[0].dims[0] = 63
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ArgumentError, match="w0"):
        load(path)
