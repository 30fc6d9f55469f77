"""Export for any batch of graphs that read lengths: each number follows the batch, or the export is refused."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_core.models.imagenet import ShuffleNet05
from nn_core.models.transformer import GPT, VisionTransformer
from nn_ext_onnx import export_model
from nn_ext_onnx.exporting import verification

#: Uses of lengths that the model follows.
FOLLOWED = {
    "quotient": lambda x: F.sum(x, axis=0, keepdims=True) / x.shape[0],
    "quotient of a result": lambda x: x / F.concatenate(x, x, axis=0).shape[0],
    "product": lambda x: x * x.shape[0],
    "sum": lambda x: x + x.shape[0],
    "difference": lambda x: (3 * x.shape[0] - 1) - x,
    "reshape": lambda x: F.reshape(x, (x.shape[0], -1, 2)),
    "reshape by a product": lambda x: F.reshape(F.reshape(x, (x.shape[0] * 2, 2)) * 2, (x.shape[0], 4)),
    "broadcast": lambda x: F.broadcast(F.sum(x, axis=0, keepdims=True), x.shape),
    "constant": lambda x: x + F.constant(2, shape=x.shape),
    "tile": lambda x: F.tile(F.sum(x, axis=0, keepdims=True), (x.shape[0], 1)),
    "slice": lambda x: F.concatenate(x, x + 1, axis=0)[: x.shape[0]],
}
#: Uses of lengths that no formula expresses.
REFUSED = {
    "power": lambda x: x * x.shape[0] ** -0.5,
    "square": lambda x: x / x.shape[0] ** 2,
    "numbers in order": lambda x: x * F.reshape(F.arange(0, x.shape[0]), (-1, 1)),
}


def _values(shape):
    return np.random.RandomState(shape[0]).uniform(-1, 1, shape).astype(np.float32)


def _follows(model, build, arrays):
    for array in arrays:
        fresh = build(nn.Variable.from_numpy_array(array))
        fresh.forward()
        (found,) = verification.run_model(model, {"x": array})
        np.testing.assert_allclose(found, fresh.d, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("use", FOLLOWED)
def test_the_model_follows(use):
    x = nn.Variable((3, 4))
    model = export_model({"y": FOLLOWED[use](x)}, {"x": x}, dynamic_batch=True)
    _follows(model, FOLLOWED[use], [_values((n, 4)) for n in (1, 3, 8)])


@pytest.mark.parametrize("use", REFUSED)
def test_what_no_formula_expresses_is_refused(use):
    x = nn.Variable((3, 4))
    with pytest.raises(ArgumentError, match=r"export: (what depends on the batch must be|the nodes must be the same)"):
        export_model({"y": REFUSED[use](x)}, {"x": x}, dynamic_batch=True)


def test_random_numbers_are_drawn_for_each_sample():
    x = nn.Variable((3, 4))
    model = export_model({"y": x + F.randn(shape=x.shape)}, {"x": x}, dynamic_batch=True)
    (found,) = verification.run_model(model, {"x": np.zeros((8, 4), np.float32)})
    assert len(np.unique(found)) == 32


def test_a_number_is_a_constant():
    x = nn.Variable((3, 4))
    model = export_model({"y": x / int(x.shape[0])}, {"x": x}, dynamic_batch=True)
    (found,) = verification.run_model(model, {"x": np.ones((6, 4), np.float32)})
    np.testing.assert_allclose(found, np.full((6, 4), 1 / 3), rtol=1e-6)


def test_a_transformer_for_images():
    network = VisionTransformer(16, 8, n_layers=1, n_features=8, n_heads=2, n_hidden=16, n_classes=3)
    x = nn.Variable((2, 3, 16, 16))
    model = export_model({"y": network(x)}, {"x": x}, dynamic_batch=True)
    _follows(model, network, [_values((n, 3, 16, 16)) for n in (1, 2, 5)])


def test_a_language_model():
    network = GPT(n_tokens=11, n_positions=12, n_layers=1, n_features=8, n_heads=2)
    x = nn.Variable.from_numpy_array(np.zeros((2, 6), np.int32))
    model = export_model({"y": network(x)}, {"x": x}, dynamic_batch=True)
    arrays = [np.random.RandomState(n).randint(0, 11, (n, 6)) for n in (1, 2, 5)]
    _follows(model, network, arrays)


@pytest.mark.slow
def test_a_network_that_shuffles_channels():
    network = ShuffleNet05(weights=None)

    def build(x):
        return network(x, use_up_to="lastconv")

    x = nn.Variable((2, 3, 32, 32))
    model = export_model({"y": build(x)}, {"x": x}, dynamic_batch=True)
    _follows(model, build, [_values((n, 3, 32, 32)) for n in (1, 3)])
