"""The nine classical networks that ONNX's suite has without weights, with the values of the suite and with random weights."""

import math
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from nn_ext_onnx.backend import prepare

CASES = {case.name: case for case in load_model_tests(kind="real")}


def test_there_are_nine():
    assert len(CASES) == 9


def path_of(case):
    return Path(onnx.__file__).parents[1] / case.url


def images_of(model):
    """The names of the inputs and their values in the suite: numbers that grow from 0 to 1."""
    given = {tensor.name for tensor in model.graph.initializer}
    return {entry.name: Runner.generate_dummy_data(entry) for entry in model.graph.input if entry.name not in given}


def drawn(name, shape, rng):
    """Weights that keep the scale of what they are applied to; numbers near 1 for each channel."""
    if len(shape) < 2:
        array = rng.uniform(0.5, 1.5, shape)
    else:
        array = rng.normal(scale=math.sqrt(2 / math.prod(shape[1:])), size=shape)
    return numpy_helper.from_array(array.astype(np.float32), name)


def with_random_weights(model):
    """The model with other numbers for each constant: in the file all of a tensor are one number."""
    rng = np.random.default_rng(0)
    model.ir_version = 8  # initializers need not be inputs from version 4 on
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in [node for node in graph.node if node.op_type == "ConstantOfShape"]:
        graph.initializer.append(drawn(node.output[0], numpy_helper.to_array(tensors[node.input[0]]), rng))
        graph.node.remove(node)
    for name, tensor in tensors.items():
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(drawn(name, tuple(tensor.dims), rng))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_values_of_the_suite(name):
    path = path_of(CASES[name])
    model = onnx.load(path)
    (found,) = prepare(model).run(list(images_of(model).values()))
    stored = path.with_name(f"{path.stem}_output_0.pb").read_bytes()
    Runner.assert_similar_outputs(
        [numpy_helper.to_array(TensorProto.FromString(stored))], [found], CASES[name].rtol, CASES[name].atol
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_random_weights_give_what_onnxruntime_computes(name):
    model = with_random_weights(onnx.load(path_of(CASES[name])))
    inputs = images_of(model)
    (found,) = prepare(model).run(inputs)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, inputs)
    assert np.ptp(expected) > 1e-3 * np.abs(expected).max(), "all classes are equal: nothing was compared"
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
