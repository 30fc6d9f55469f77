"""Writing of what imported models compute on the host: nodes of ONNX again, and onnxruntime computes the same."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from onnx import numpy_helper, parser

import nn_ext_onnx.importing
from extensions.nn_ext_onnx.tests.test_classical import CASES, X, apart, ensemble, model_of
from nn_core.ext import ArgumentError
from nn_ext_onnx import export_model, load
from nn_ext_onnx.backend import prepare
from nn_ext_onnx.exporting import host
from nn_ext_onnx.exporting.verification import run_model
from nn_ext_onnx.importing.folding import Evaluator

pytest.importorskip("onnxruntime", reason="the judge")


def written_back(model, inputs):
    """Return the model that is written of an imported one."""
    network = load(model, values=inputs)
    assert not network.bound
    outputs = {name: network.outputs[name] for name in (entry.name for entry in model.graph.output)}
    return export_model(outputs, network.inputs)


def assert_comes_back(model, inputs, rtol=1e-5, atol=1e-6):
    for found, wanted in zip(run_model(written_back(model, inputs), inputs), prepare(model).run(inputs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize("case", sorted(CASES))
def test_classical_models_come_back(case):
    kind, attributes, inputs, n_outputs = CASES[case]
    assert_comes_back(model_of(kind, attributes, inputs, n_outputs), inputs)


def test_trees_whose_leaves_are_numbered_apart_come_back():
    assert_comes_back(model_of("TreeEnsemble", apart(), {"x": X}, version=5), {"x": X})
    shared = model_of("TreeEnsemble", {**apart(), "nodes_falsenodeids": [2, 0, 3]}, {"x": X}, version=5)
    with pytest.raises(ArgumentError, match="a node to which two lead"):
        written_back(shared, {"x": X})


def test_several_trees_whose_leaves_are_numbered_apart_come_back():
    """onnxruntime takes the first of neighbours with one number of a tree for a root."""
    attributes = {
        **apart(),
        "tree_roots": [0, 1],
        "nodes_modes": numpy_helper.from_array(np.array([0, 2], np.uint8)),
        "nodes_featureids": [0, 2],
        "nodes_splits": numpy_helper.from_array(np.array([0.1, -0.2], np.float32)),
        "nodes_truenodeids": [0, 2],
        "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 3],
        "nodes_falseleafs": [1, 1],
    }
    assert_comes_back(model_of("TreeEnsemble", attributes, {"x": X}, version=5), {"x": X})


def test_trees_of_float64_compare_in_it():
    """Numbers between two of float32 take the same branch when the model has come back."""
    attributes = ensemble("target", 1)
    values = np.array(attributes.pop("nodes_values")) + 1e-12
    attributes["nodes_values_as_tensor"] = numpy_helper.from_array(values)
    attributes["target_weights_as_tensor"] = numpy_helper.from_array(np.array(attributes.pop("target_weights")))
    x = np.concatenate([X.astype(np.float64), X.astype(np.float64) + 2e-12])
    model = model_of("TreeEnsembleRegressor", attributes, {"x": x})
    network = load(model)
    (given,), (y,) = network.inputs.values(), network.outputs.values()
    given.d = x
    y.forward()
    (found,) = run_model(export_model({"y": y}, {"x": given}), {"x": x})
    assert (y.d[:20] != y.d[20:]).any()
    np.testing.assert_allclose(found, y.d, rtol=1e-6)


def test_trees_that_ask_for_members_are_refused():
    attributes = {
        **apart(),
        "nodes_modes": numpy_helper.from_array(np.array([6, 2, 1], np.uint8)),
        "membership_values": numpy_helper.from_array(np.array([1.0, 2.0, np.nan], np.float32)),
    }
    with pytest.raises(ArgumentError, match="asks whether a feature is one of a set"):
        written_back(model_of("TreeEnsemble", attributes, {"x": X}, version=5), {"x": X})


IMAGE = np.random.default_rng(1).normal(size=(2, 3, 7, 6)).astype(np.float32)
X_AND_PLACES = "(float[2, 3, 7, 6] x) => (float y, int64 i)"
X_AND_ROWS = "(float[2, 3, 7, 6] x, float[2, 3, 2, 6] z, int64[2] at) => (float[2, 3, 7, 6] y)"
MODELS = {
    "windows": (
        f"{X_AND_PLACES} {{ y, i = MaxPool<kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0]>(x) }}",
        {"x": IMAGE},
    ),
    "columns_first": (
        f"{X_AND_PLACES} {{ y, i = MaxPool<kernel_shape = [2, 2], dilations = [2, 1], storage_order = 1>(x) }}",
        {"x": IMAGE},
    ),
    "cache": (
        f"{X_AND_ROWS} {{ y = TensorScatter(x, z, at) }}",
        {"x": IMAGE, "z": IMAGE[:, :, :2] + 9, "at": np.array([5, 0])},
    ),
    "cache_in_a_circle": (
        f'{X_AND_ROWS} {{ y = TensorScatter<mode = "circular">(x, z, at) }}',
        {"x": IMAGE, "z": IMAGE[:, :, :2] + 9, "at": np.array([6, 3])},
    ),
}


@pytest.mark.parametrize("case", sorted(MODELS))
def test_places_come_back(case):
    text, inputs = MODELS[case]
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 24]> g {text}')
    if "MaxPool" in text:
        for entry in model.graph.output:
            entry.type.tensor_type.ClearField("shape")
    assert_comes_back(model, inputs, rtol=0, atol=0)


def test_every_computation_of_the_importer_has_a_writer():
    """Else networks are imported that cannot be written."""
    found = set()
    for module in pkgutil.iter_modules(nn_ext_onnx.importing.__path__):
        made = importlib.import_module(f"nn_ext_onnx.importing.{module.name}")
        found |= {
            kind
            for _, kind in inspect.getmembers(made, inspect.isclass)
            if kind.__module__.startswith("nn_ext_onnx.importing") and "__call__" in vars(kind)
        }
    assert Evaluator in found
    assert found == set(host._WRITERS)
