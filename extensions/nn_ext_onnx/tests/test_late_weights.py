"""Large files whose weights are read while the graph is built."""

import os

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from nn_core.ext import ArgumentError, FileFormatError
from nn_ext_onnx import load
from nn_ext_onnx.importing import external, late, models

WEIGHTS = [np.random.default_rng(seed).normal(size=(64, 64)).astype(np.float32) for seed in range(2)]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Return a model of two products; its files and tensors count as large."""
    monkeypatch.setattr(late, "_LARGE_FILE", 1 << 10)
    monkeypatch.setattr(late, "_LARGE_TENSOR", 1 << 10)
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


def test_weights_read_late_are_those_of_the_file(path):
    assert len(late.read_without_numbers(path)) < 2048 < path.stat().st_size
    network, x = load(path), np.ones((2, 64), np.float32)
    network.inputs["x"].d = x
    network.outputs["y"].forward()
    np.testing.assert_allclose(network.outputs["y"].d, (x @ WEIGHTS[0] + 1) @ WEIGHTS[1].T, rtol=1e-4, atol=1e-3)
    path.unlink()  # the graph has weights of its own
    network.outputs["y"].forward()


def test_links_are_read_whole(path, tmp_path):
    (tmp_path / "link.onnx").symlink_to(path)
    assert late.read_without_numbers(tmp_path / "link.onnx") == path.read_bytes()
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


@pytest.mark.parametrize("change", [lambda path: os.truncate(path, 100), lambda path: path.write_bytes(path.read_bytes())])
def test_a_file_that_changes_while_it_is_read_is_refused(path, change, monkeypatch):
    """A map of it would end the process by SIGBUS, or have other weights."""
    read = late.read_without_numbers

    def reads_then_changes(place):
        found = read(place)
        change(path)
        return found

    monkeypatch.setattr(models, "read_without_numbers", reads_then_changes)
    with pytest.raises(FileFormatError, match=r"net\.onnx"):
        load(path)


def test_a_file_of_weights_that_changes_while_it_is_read_is_refused(path, tmp_path, monkeypatch):
    onnx.save(onnx.load(path), tmp_path / "two.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    read = external.StoredArray.read

    def changes_then_reads(place):
        os.truncate(place.path, 100)
        return read(place)

    assert load(tmp_path / "two.onnx").outputs["y"].shape == (2, 64)
    monkeypatch.setattr(external.StoredArray, "read", changes_then_reads)
    with pytest.raises((FileFormatError, ArgumentError), match="must not change while it is read"):
        load(tmp_path / "two.onnx")


@pytest.mark.parametrize("field", [b"\0\0", b"\x08\0"])
def test_files_of_many_small_fields_are_left_to_the_library(path, field, monkeypatch):
    monkeypatch.setattr(late, "_MOST_FIELDS", 1000)
    path.write_bytes(path.read_bytes() + field * 100_000)
    calls = []
    number = late._number
    monkeypatch.setattr(late, "_number", lambda data, at: calls.append(at) or number(data, at))
    assert late.read_without_numbers(path) == path.read_bytes()
    assert len(calls) < 5000


def test_nothing_of_a_model_is_mapped(path, monkeypatch):
    monkeypatch.setattr(np, "memmap", None)
    assert load(path).outputs["y"].shape == (2, 64)


def test_weights_that_are_read_are_not_copied(path, monkeypatch):
    made = []
    read = external.StoredArray.read
    monkeypatch.setattr(external.StoredArray, "read", lambda place: made.append(read(place)) or made[-1])
    network = load(path)
    assert np.shares_memory(network.parameters["w0"].d, made[0])
