"""bfloat16: what stays float32, what is rounded where, and machines that do not multiply it."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.dispatch.report import forget_fallbacks
from nn_core.ext_utils import get_extension_context
from nn_ext_cpu import _native

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need ml_dtypes")


@pytest.fixture(autouse=True)
def in_bfloat16():
    nn.clear_parameters()
    nn.seed(0)
    forget_fallbacks()
    with nn.context_scope(get_extension_context("cpu", type_config="bfloat16")):
        yield
    nn.clear_parameters()


def convolutional_loss(x, t):
    h = PF.convolution(x, 16, (3, 3), pad=(1, 1), name="conv")
    h = F.relu(PF.batch_normalization(h, name="norm"))
    h = F.average_pooling(h, (2, 2))
    return F.mean(F.softmax_cross_entropy(PF.affine(h, 5, name="scores"), t))


def batch():
    rng = np.random.default_rng(0)
    return rng.normal(size=(8, 3, 8, 8)).astype(np.float32), rng.integers(0, 5, (8, 1))


def test_a_network_trains_and_its_parameters_stay_float32():
    x, t = nn.Variable((8, 3, 8, 8)), nn.Variable((8, 1))
    x.d, t.d = batch()
    loss = convolutional_loss(x, t)
    solver = S.Momentum(0.05)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for _ in range(20):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
    assert losses[-1] < 0.2 * losses[0]
    for parameter in nn.get_parameters(grad_only=False).values():
        assert parameter.d.dtype == np.float32
    assert all(parameter.g.dtype == np.float32 for parameter in nn.get_parameters().values())
    assert nn.fallback_report() == ()


def test_gradients_agree_with_those_of_float32():
    images, labels = batch()

    def gradients():
        x, t = nn.Variable.from_numpy_array(images), nn.Variable.from_numpy_array(labels)
        loss = convolutional_loss(x, t)
        for parameter in nn.get_parameters().values():
            parameter.grad.zero()
        loss.forward()
        loss.backward()
        return {name: parameter.g.copy() for name, parameter in nn.get_parameters().items()}

    narrow = gradients()
    with nn.context_scope(get_extension_context("cpu")):
        wide = gradients()
    for name, gradient in wide.items():
        assert np.linalg.norm(narrow[name] - gradient) < 0.1 * np.linalg.norm(gradient) + 1e-2, name


def test_merging_changes_no_bit():
    x = nn.Variable.from_numpy_array(np.linspace(-3, 3, 5000, dtype=np.float32), need_grad=True)
    y = F.tanh(F.sigmoid(x * 1.1 + 0.3) * x) - 0.7
    runs = []
    for _ in range(3):  # the first run does one function after the other, later ones are merged
        y.forward(clear_no_need_grad=True)
        x.grad.zero()
        y.backward(clear_buffer=True)
        runs.append((y.d.copy(), x.g.copy()))
    for values, gradient in runs[1:]:
        assert np.array_equal(values, runs[0][0])
        assert np.array_equal(gradient, runs[0][1])


def test_rounding_is_to_nearest_even():
    halfway = np.float32([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3.4e38, np.inf, -np.inf, np.nan, 1e-40, 0.0, -0.0])
    values = np.concatenate([halfway, np.random.default_rng(0).normal(size=1000).astype(np.float32)])
    x = nn.Variable.from_numpy_array(values)
    y = F.abs(x)
    y.forward()
    assert y.d.dtype == ml_dtypes.bfloat16
    assert np.array_equal(y.d.view(np.uint16), np.abs(values).astype(ml_dtypes.bfloat16).view(np.uint16))


@pytest.mark.parametrize("isa", ["baseline", "avx2"], indirect=True)
def test_machines_without_products_of_bfloat16_compute_in_float32(isa):
    images, labels = batch()
    assert not _native.multiplies_bfloat16()
    assert _native.bfloat16_products() == "float32 copies"
    x, t = nn.Variable.from_numpy_array(images[:, :, :7]), nn.Variable.from_numpy_array(labels)
    loss = convolutional_loss(x, t)
    loss.forward()
    loss.backward()
    narrow = float(loss.d)
    with nn.context_scope(get_extension_context("cpu")):
        wide = convolutional_loss(x, t)
        wide.forward()
    assert abs(narrow - float(wide.d)) < 0.02
    loss.forward(clear_buffer=True)  # inference joins the convolution with what follows
    assert abs(float(loss.d) - float(wide.d)) < 0.02


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_items_of_any_size_are_arranged(dtype):
    values = (np.arange(24).reshape(2, 3, 4) % 2).astype(dtype)
    x = nn.Variable.from_numpy_array(values)
    y = F.transpose(x, (2, 0, 1))
    y.forward()
    assert np.array_equal(y.d, values.transpose(2, 0, 1))
