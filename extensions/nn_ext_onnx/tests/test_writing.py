"""Files of models that are written field by field: the bytes that protobuf writes, and the memory that it takes."""

import subprocess
import sys

import numpy as np
import onnx
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx import export, export_model, load
from nn_ext_onnx.exporting import verification, writing

#: Writes and reads 128 MB of weights, some of them in another order than in memory, and prints by how many MB the peak grew.
MEASURED = """
import gc, sys
from pathlib import Path
import numpy as np
import nn_core as nn, nn_core.functions as F
from nn_ext_onnx import export, load

def net(length, count):
    x = h = nn.Variable((1, length))
    for _ in range(count):
        w = np.ones((length, length), np.float32)
        h = F.affine(h, F.transpose(nn.Variable.from_numpy_array(w), (1, 0)))
    return {"y": h}, {"x": x}

def peak_mb():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

folder, options = Path(sys.argv[1]), {OPTIONS}
export(folder / "small.onnx", *net(16, 2), **options)
load(folder / "small.onnx", dimensions=dict(batch=1)).outputs["y"].forward()
outputs, inputs = net(2048, 8)
before = peak_mb()
export(folder / "large.onnx", outputs, inputs, **options)
print(peak_mb() - before)
del outputs, inputs
gc.collect()
network = load(folder / "large.onnx", dimensions=dict(batch=1))
network.outputs["y"].forward(clear_buffer=True)
print(peak_mb() - before)
"""


def net(dtype=np.float32):
    """Return a net with constants of several orders in memory, and an output of a half."""
    rng = np.random.default_rng(0)
    x = nn.Variable((1, 64))
    weights = [rng.normal(size=shape).astype(dtype) for shape in ((64, 96), (96, 128), (128, 64))]
    h = F.affine(x, nn.Variable.from_numpy_array(weights[0]))
    h = F.affine(h, F.transpose(nn.Variable.from_numpy_array(weights[1].T.copy()), (1, 0)))
    h = F.affine(h, nn.Variable.from_numpy_array(weights[2])) * 0.5 + nn.Variable.from_numpy_array(weights[2][:1, :1])
    return {"y": h}, {"x": x}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("piece", [1 << 22, 1000, 100])
def test_files_have_the_bytes_that_protobuf_writes(dtype, piece, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_PIECE", piece)
    outputs, inputs = net(dtype)
    texts = {"description": "of three", "metadata": {"by": "us"}}
    model = export_model(outputs, inputs, **texts)
    export(tmp_path / "net.onnx", outputs, inputs, **texts)
    assert (tmp_path / "net.onnx").read_bytes() == model.SerializeToString()
    export(tmp_path / "net.onnx", outputs, inputs, external_data=True, **texts)
    read = onnx.load(tmp_path / "net.onnx")
    for tensor, wanted in zip(read.graph.initializer, model.graph.initializer, strict=True):
        assert (tensor.name, tensor.raw_data, list(tensor.dims)) == (wanted.name, wanted.raw_data, list(wanted.dims))


def test_arrays_of_other_byte_orders_and_negative_steps_are_written_as_they_read(tmp_path):
    model = export_model(F.tanh(nn.Variable((1,))))
    constants = {
        "big": np.arange(400, dtype=">f4").reshape(20, 20),
        "back": np.arange(400, dtype=np.int64)[::-2],
        "few": np.array(2.5, np.float16),
        "none": np.zeros((0, 3), np.float32),
        "flags": np.arange(2000).reshape(2, 1000).T % 3 == 0,
    }
    writing.write_model(tmp_path / "net.onnx", model, constants)
    for tensor in onnx.load(tmp_path / "net.onnx").graph.initializer:
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), constants[tensor.name])


def test_models_beyond_one_message_are_checked_and_verified_from_files(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_INLINE_LIMIT", 1 << 12)
    outputs, inputs = net()
    given = []
    real = verification.run_model
    monkeypatch.setattr(verification, "run_model", lambda source, arrays: given.append(source) or real(source, arrays))
    export(tmp_path / "net.onnx", outputs, inputs, verify=True, dynamic_batch=True)
    assert len(given) == 3 and all(isinstance(source, str) for source in given)
    assert {path.name for path in tmp_path.iterdir()} == {"net.onnx", "net.onnx.data"}
    again = load(tmp_path / "net.onnx", dimensions={"batch": 1})
    again.inputs["x"].d = inputs["x"].d = np.linspace(-1, 1, 64)[None]
    again.outputs["y"].forward()
    outputs["y"].forward()
    np.testing.assert_array_equal(again.outputs["y"].d, outputs["y"].d)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("options", ["dict()", "dict(external_data=True)", "dict(dynamic_batch=True)"])
def test_writing_and_reading_take_little_more_memory_than_the_weights(options, tmp_path):
    program = MEASURED.replace("{OPTIONS}", options)
    arguments = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert all(float(grown) < 0.3 * 128 for grown in done.stdout.split()), done.stdout
