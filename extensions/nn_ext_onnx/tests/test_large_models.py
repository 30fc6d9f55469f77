"""A model of more than 2 GB, which one protobuf message cannot hold: its numbers are in a file beside it."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from nn_ext_onnx import export, load

SHAPES = [(16384, 12288), (12288, 16384), (16384, 12288)]
#: Of one tensor; three of them are 2.4 GB.
N_BYTES = 16384 * 12288 * 4
NEEDED_BYTES = 16 << 30


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def write_sparse(folder):
    """A chain of three products; the weights have one number each that is not 0, so that their file needs no space."""
    tensors, nodes = [], []
    with (folder / "net.data").open("wb") as file:
        file.truncate(3 * N_BYTES)
        for n, shape in enumerate(SHAPES):
            tensor = TensorProto(name=f"w{n}", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
            for key, value in {"location": "net.data", "offset": n * N_BYTES, "length": N_BYTES}.items():
                tensor.external_data.add(key=key, value=str(value))
            tensors.append(tensor)
            nodes.append(helper.make_node("MatMul", [f"h{n}" if n else "x", f"w{n}"], [f"h{n + 1}"]))
            file.seek(n * N_BYTES + 4 * (n * shape[1] + n + 1))
            file.write(np.float32(n + 2).tobytes())
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n]) for name, n in (("x", 16384), ("h3", 12288))]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "net.onnx").write_bytes(model.SerializeToString())


def result(network):
    network.inputs["x"].d = np.eye(1, 16384) * 3
    (y,) = network.outputs.values()
    y.forward(clear_buffer=True)
    return {int(place): float(y.d[0, place]) for place in np.nonzero(y.d[0])[0]}


@pytest.mark.slow
@pytest.mark.skipif(memory_bytes() < NEEDED_BYTES, reason="it needs 16 GB of free memory")
def test_models_of_more_than_2_gb_are_read_and_written(tmp_path):
    write_sparse(tmp_path)
    network = load(tmp_path / "net.onnx")
    assert result(network) == {3: 3.0 * 2 * 3 * 4}
    export(tmp_path / "again.onnx", network.outputs, network.inputs)
    (tmp_path / "net.data").unlink()
    assert (tmp_path / "again.onnx").stat().st_size < 1 << 20
    assert (tmp_path / "again.onnx.data").stat().st_size >= 3 * N_BYTES
    tensors = onnx.load(tmp_path / "again.onnx", load_external_data=False).graph.initializer
    assert {tensor.data_location for tensor in tensors} == {TensorProto.EXTERNAL}
    del network
    assert result(load(tmp_path / "again.onnx")) == {3: 3.0 * 2 * 3 * 4}
