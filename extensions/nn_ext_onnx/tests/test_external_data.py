"""Numbers that a model keeps in files beside it: read when they are needed, from the folder of the model alone."""

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from extensions.nn_ext_onnx.tests.test_import import computed, linear_model, text_model
from nn_core.ext import FileFormatError
from nn_ext_onnx import load
from nn_ext_onnx.importing.external import stored_or_array, to_array
from nn_ext_onnx.importing.values import UnsupportedError


def test_external_data_is_read_from_the_folder_of_the_model(tmp_path):
    model, weight = linear_model()
    onnx.save_model(model, tmp_path / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    x = np.ones((1, 3), np.float32)
    network = load(tmp_path / "net.onnx", dimensions={"N": 1})
    np.testing.assert_allclose(computed(network, {"x": x})[0], x @ weight.T, rtol=0, atol=1e-5)
    with pytest.raises(FileFormatError, match="load the model by its path"):
        load((tmp_path / "net.onnx").read_bytes(), dimensions={"N": 1})


def moved(tensor, path):
    """Put the numbers of a tensor at the end of a file."""
    with path.open("ab") as file:
        offset = file.tell()
        file.write(tensor.raw_data)
    set_external_data(tensor, path.name, offset, len(tensor.raw_data))
    tensor.ClearField("raw_data")


def test_external_data_of_bodies_and_attributes_is_read(tmp_path):
    model = text_model(
        """(float[2] x) => (float[2] y) {
            yes = Constant<value = bool {1}>()  shift = Constant<value = float[2] {10.0, 20.0}>()
            h = If(yes) <then_branch = a () => (float[2] p) { p = Mul(x, w) },
                          else_branch = b () => (float[2] q) { q = Neg(x) }>
            y = Add(h, shift) }"""
    )
    branch = model.graph.node[2].attribute[0].g
    branch.initializer.append(numpy_helper.from_array(np.array([2, 3], np.float32), "w"))
    shift = model.graph.node[1].attribute[0].t
    shift.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(shift)))
    moved(branch.initializer[0], tmp_path / "net.data")
    moved(shift, tmp_path / "net.data")
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    assert computed(load(tmp_path / "net.onnx"), {"x": np.ones(2)})[0].tolist() == [12.0, 23.0]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16", "uint4"])
@pytest.mark.parametrize("shape", [(3, 2), (0, 2)])
def test_external_numbers_of_all_types_are_those_that_were_written(tmp_path, dtype, shape):
    kind = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype.upper().replace("FLOAT32", "FLOAT")))
    values = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    tensor = numpy_helper.from_array(values, "w")
    (tmp_path / "net.data").write_bytes(b"\1\2\3")
    moved(tensor, tmp_path / "net.data")
    found = to_array(tensor, tmp_path)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_large_external_data_is_not_read_before_it_is_used(tmp_path):
    with (tmp_path / "net.data").open("wb") as file:
        file.truncate(1 << 30)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1 << 28], raw_data=b"")
    set_external_data(tensor, "net.data", 0, 1 << 30)
    tracemalloc.start()
    try:
        found = stored_or_array(tensor, tmp_path)
        assert found.shape == (1 << 28,)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_external_data_of_another_size_is_refused(tmp_path):
    (tmp_path / "net.data").write_bytes(bytes(100))
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], raw_data=b"")
    set_external_data(tensor, "net.data", 0, 12)
    with pytest.raises(UnsupportedError, match=r"'w': 12 bytes for the shape \(4,\) of float32"):
        to_array(tensor, tmp_path)


OUTSIDE = ("../outside.data", "/etc/hostname", "", "net\0.data", "net\n.data", "C:net.data", "n" * 300)


@pytest.mark.parametrize("location", OUTSIDE)
def test_external_data_outside_of_the_folder_is_refused(tmp_path, location):
    (tmp_path / "outside.data").write_bytes(bytes(100))
    folder = tmp_path / "folder"
    folder.mkdir()
    model, _ = linear_model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(FileFormatError, match="must be in the folder of the model"):
        load(folder / "net.onnx", dimensions={"N": 1})
