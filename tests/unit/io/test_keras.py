"""Weights of Keras find their layers: kernels, gates and statistics in the order that Keras documents."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError
from nn_core.io import load_keras_parameters


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _file(tmp_path, tensors):
    path = tmp_path / "model.safetensors"
    nn.save_parameters(path, {name: nn.Variable.from_numpy_array(values) for name, values in tensors.items()})
    return path


@pytest.fixture
def draw(rng):
    return lambda *shape: rng.uniform(-0.5, 0.5, shape).astype(np.float32)


def test_kernels_of_convolutions_have_their_channels_last(tmp_path, draw):
    tensors = {"conv2d/kernel": draw(3, 2, 3, 5), "conv2d/bias": draw(5), "dw/depthwise_kernel:0": draw(3, 3, 5, 2)}
    x = nn.Variable.from_numpy_array(draw(2, 3, 6, 6))
    h = PF.convolution(x, 5, (3, 2), name="conv2d")
    y = PF.depthwise_convolution(h, 3, multiplier=2, with_bias=False, name="dw")
    assert load_keras_parameters(_file(tmp_path, tensors)).is_exact
    y.forward()
    windows = np.lib.stride_tricks.sliding_window_view(x.d, (3, 2), axis=(2, 3))
    hidden = np.einsum("nchwij,ijco->nohw", windows, tensors["conv2d/kernel"]) + tensors["conv2d/bias"].reshape(1, -1, 1, 1)
    windows = np.lib.stride_tricks.sliding_window_view(hidden, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwij,ijcm->ncmhw", windows, tensors["dw/depthwise_kernel:0"]).reshape(y.shape)
    np.testing.assert_allclose(y.d, expected, rtol=1e-4, atol=1e-5)


def test_kernels_of_transposed_convolutions_have_their_outputs_before_their_inputs(tmp_path, draw):
    kernel = draw(2, 2, 4, 3)  # (spatial, outputs, inputs)
    x = nn.Variable.from_numpy_array(draw(1, 3, 4, 4))
    y = PF.deconvolution(x, 4, (2, 2), stride=(2, 2), with_bias=False, name="up")
    load_keras_parameters(_file(tmp_path, {"conv2d_transpose/kernel": kernel}), {"conv2d_transpose": "up"})
    y.forward()
    expected = np.einsum("nchw,ijoc->nohiwj", x.d, kernel).reshape(y.shape)
    np.testing.assert_allclose(y.d, expected, rtol=1e-4, atol=1e-5)


def test_dense_layers_embeddings_and_normalizations_keep_their_layout(tmp_path, draw):
    tensors = {"embedding/embeddings": draw(7, 4), "dense/kernel": draw(4, 3), "dense/bias": draw(3)}
    tensors |= {f"bn/{name}": draw(3) + 1 for name in ("gamma", "beta", "moving_mean", "moving_variance")}
    ids = nn.Variable.from_numpy_array(np.array([1, 5], np.int32))
    h = PF.affine(PF.embed(ids, 7, 4, name="embedding"), 3, name="dense")
    y = PF.batch_normalization(h, batch_stat=False, eps=1e-3, name="bn")
    assert load_keras_parameters(_file(tmp_path, tensors)).is_exact
    y.forward()
    h = tensors["embedding/embeddings"][[1, 5]] @ tensors["dense/kernel"] + tensors["dense/bias"]
    gamma, beta, mean, var = (tensors[f"bn/{name}"] for name in ("gamma", "beta", "moving_mean", "moving_variance"))
    np.testing.assert_allclose(y.d, gamma * (h - mean) / np.sqrt(var + 1e-3) + beta, rtol=1e-4, atol=1e-5)


def test_lstm_has_the_gates_i_f_c_o(tmp_path, draw):
    tensors = {"lstm/kernel": draw(3, 16), "lstm/recurrent_kernel": draw(4, 16), "lstm/bias": draw(16)}
    x, zeros = nn.Variable.from_numpy_array(draw(5, 2, 3)), nn.Variable.from_numpy_array(np.zeros((1, 1, 2, 4)))
    y, *_ = PF.lstm(x, zeros, zeros, name="lstm")
    h = c = nn.Variable.from_numpy_array(np.zeros((2, 4)))
    for step in F.split(x, axis=0):
        h, c = PF.lstm_cell(step, h, c, 4, name="cell")
    path = _file(tmp_path, tensors)
    load_keras_parameters(path, {"lstm": "lstm"})
    load_keras_parameters(path, {"lstm": "cell"})
    y.forward()
    h.forward()
    state = memory = np.zeros((2, 4))
    for step in x.d:
        i, f, g, o = np.split(
            step @ tensors["lstm/kernel"] + state @ tensors["lstm/recurrent_kernel"] + tensors["lstm/bias"], 4, axis=1
        )
        memory = _sigmoid(f) * memory + _sigmoid(i) * np.tanh(g)
        state = _sigmoid(o) * np.tanh(memory)
    np.testing.assert_allclose(y.d[-1], state, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(h.d, state, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gru/{}", "gru/gru_cell/{}", "gru/gru_cell/{}:0"])
def test_gru_has_the_gates_z_r_h_and_two_biases(tmp_path, draw, name):
    tensors = {"gru/kernel": draw(3, 12), "gru/recurrent_kernel": draw(4, 12), "gru/bias": draw(2, 12)}
    renamed = {name.format(key.removeprefix("gru/")): values for key, values in tensors.items()}
    x, zeros = nn.Variable.from_numpy_array(draw(5, 2, 3)), nn.Variable.from_numpy_array(np.zeros((1, 1, 2, 4)))
    y, _ = PF.gru(x, zeros, name="gru")
    assert load_keras_parameters(_file(tmp_path, renamed)).is_exact
    y.forward()
    state = np.zeros((2, 4))
    for step in x.d:
        xz, xr, xh = np.split(step @ tensors["gru/kernel"] + tensors["gru/bias"][0], 3, axis=1)
        hz, hr, hh = np.split(state @ tensors["gru/recurrent_kernel"] + tensors["gru/bias"][1], 3, axis=1)
        z = _sigmoid(xz + hz)
        state = z * state + (1 - z) * np.tanh(xh + _sigmoid(xr + hr) * hh)
    np.testing.assert_allclose(y.d[-1], state, rtol=1e-4, atol=1e-5)


def test_what_has_no_counterpart_is_refused(tmp_path, draw):
    x = nn.Variable((5, 2, 3))
    PF.gru(x, nn.Variable((1, 1, 2, 4)), name="gru")
    PF.gru(x, nn.Variable((2, 1, 2, 4)), num_layers=2, name="deep")
    PF.lstm(x, nn.Variable((1, 1, 2, 4)), nn.Variable((1, 1, 2, 4)), name="lstm")
    tensors = {"gru/kernel": draw(3, 12), "gru/recurrent_kernel": draw(4, 12), "gru/bias": draw(12)}
    path = _file(tmp_path, tensors)
    for scope, error, message in (
        ("gru", ArgumentError, "GRU must have reset_after=True, with two biases a gate, got one"),
        ("deep", ArgumentError, "must have one layer and one direction each, got several"),
        ("lstm", ShapeError, "'gru' must fit 'lstm/lstm/weight_l0' of shape"),
    ):
        with pytest.raises(error, match=message):
            load_keras_parameters(path, {"gru": scope})
