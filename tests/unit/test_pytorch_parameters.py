"""Weights of PyTorch find their layers, in the layouts of nn_core; what does not fit is refused as a whole."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError
from nn_core.io import load_pytorch_parameters


def _network(x):
    h = F.relu(PF.batch_normalization(PF.convolution(x, 4, 3, pad=1, name="conv1"), batch_stat=False, name="bn1"))
    return PF.affine(F.reshape(h, (x.shape[0], -1)), 5, name="fc")


LAYERS = {"features.0": "conv1", "features.1": "bn1", "classifier": "fc"}
SHAPES = {
    "features.0.weight": (4, 3, 3, 3),
    "features.0.bias": (4,),
    "features.1.weight": (4,),
    "features.1.bias": (4,),
    "features.1.running_mean": (4,),
    "features.1.running_var": (4,),
    "features.1.num_batches_tracked": (),
    "classifier.weight": (5, 64),
    "classifier.bias": (5,),
}


@pytest.fixture
def tensors(rng):
    return {name: rng.uniform(0.5, 1.5, shape).astype(np.float32) for name, shape in SHAPES.items()}


@pytest.fixture
def file(tmp_path, tensors):
    def write(**changes):
        path = tmp_path / "model.safetensors"
        chosen = {name: values for name, values in {**tensors, **changes}.items() if values is not None}
        nn.save_parameters(path, {name: nn.Variable.from_numpy_array(values) for name, values in chosen.items()})
        return path

    return write


def test_the_network_computes_what_pytorch_s_would(file, tensors, rng):
    x = nn.Variable.from_numpy_array(rng.standard_normal((2, 3, 4, 4)).astype(np.float32))
    y = _network(x)
    report = load_pytorch_parameters(file(), LAYERS)
    assert report.is_exact
    y.forward()
    conv = F.convolution(x, *_variables(tensors, "features.0.weight", "features.0.bias"), pad=(1, 1))
    conv.forward()
    t = {name: values.reshape(1, -1, 1, 1) for name, values in tensors.items() if name.startswith("features.1.r")}
    scaled = (conv.d - t["features.1.running_mean"]) / np.sqrt(t["features.1.running_var"] + 1e-5)
    h = scaled * tensors["features.1.weight"].reshape(1, -1, 1, 1) + tensors["features.1.bias"].reshape(1, -1, 1, 1)
    expected = np.maximum(h, 0).reshape(2, -1) @ tensors["classifier.weight"].T + tensors["classifier.bias"]
    np.testing.assert_allclose(y.d, expected, rtol=1e-4, atol=1e-4)


def _variables(tensors, *names):
    return [nn.Variable.from_numpy_array(tensors[name]) for name in names]


def test_depthwise_kernels_and_embeddings_are_loaded(file):
    PF.depthwise_convolution(nn.Variable((1, 3, 8, 8)), 3, name="dw")
    PF.embed(nn.Variable((1, 2)), 7, 4, name="words")
    extra = {"d.weight": np.ones((3, 1, 3, 3)), "d.bias": np.ones(3), "e.weight": np.arange(28.0).reshape(7, 4)}
    report = load_pytorch_parameters(file(**extra), {"d": "dw", "e": "words"})
    assert report.loaded == ("dw/depthwise_conv/W", "dw/depthwise_conv/b", "words/embed/W")
    assert nn.get_parameters()["words/embed/W"].d.tolist() == extra["e.weight"].tolist()
    assert "classifier.weight" in report.unexpected


def test_parameters_without_a_layer_are_missing(file):
    _network(nn.Variable((1, 3, 4, 4)))
    report = load_pytorch_parameters(file(), {"features.0": "conv1"})
    assert "fc/affine/W" in report.missing
    assert not report.is_exact


@pytest.mark.parametrize(
    ("changes", "layers", "error", "message"),
    [
        ({}, {"classifier": "fully"}, ArgumentError, "must name scopes with parameters, got 'fully' among bn1/bn, conv1/conv"),
        ({"classifier.bias": None}, LAYERS, ArgumentError, "the file must have 'classifier.bias' for the parameter 'fc/aff"),
        ({"classifier.weight": np.ones((5, 63))}, LAYERS, ShapeError, r"'classifier.weight' must fit 'fc/affine/W' of shape"),
    ],
)
def test_what_does_not_fit_changes_nothing(file, changes, layers, error, message):
    _network(nn.Variable((1, 3, 4, 4)))
    before = {name: parameter.d.copy() for name, parameter in nn.get_parameters(grad_only=False).items()}
    with pytest.raises(error, match=message):
        load_pytorch_parameters(file(**changes), layers)
    for name, parameter in nn.get_parameters(grad_only=False).items():
        np.testing.assert_array_equal(parameter.d, before[name])
