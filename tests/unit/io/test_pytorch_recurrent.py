"""Recurrent layers of PyTorch: gates in the order of the state dict, the two biases added where they may be."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.io import load_pytorch_parameters


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _step_rnn(x, h, c, n):
    return np.tanh(x + h), c


def _step_lstm(x, h, c, n):
    i, f, g, o = np.split(x + h, 4, axis=1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _step_gru(x, h, c, n):
    (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, axis=1), np.split(h, 3, axis=1)
    z = _sigmoid(xz + hz)
    return (1 - z) * np.tanh(xn + _sigmoid(xr + hr) * hn) + z * n, c


STEPS = {"rnn": (_step_rnn, 1), "lstm": (_step_lstm, 4), "gru": (_step_gru, 3)}


def _expected(kind, tensors, x, n_layers, n_hidden):
    """PyTorch's equations by its names of tensors, layer by layer and direction by direction."""
    step, _ = STEPS[kind]
    for layer in range(n_layers):
        outputs = []
        for end in ("", "_reverse"):
            w, u, b, d = (tensors[f"rnn.{name}_l{layer}{end}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            h = c = np.zeros((x.shape[1], n_hidden))
            steps = []
            for values in x[::-1] if end else x:
                h, c = step(values @ w.T + b, h @ u.T + d, c, h)
                steps.append(h)
            outputs.append(np.stack(steps[::-1] if end else steps))
        x = np.concatenate(outputs, axis=2)
    return x


@pytest.mark.parametrize("kind", STEPS)
def test_two_layers_in_both_directions(kind, tmp_path, rng):
    n_gates = STEPS[kind][1]
    tensors = {}
    for layer, n_inputs in ((0, 3), (1, 8)):
        for end in ("", "_reverse"):
            for name, *shape in (("weight_ih", n_inputs), ("weight_hh", 4), ("bias_ih",), ("bias_hh",)):
                tensors[f"rnn.{name}_l{layer}{end}"] = rng.uniform(-0.5, 0.5, (4 * n_gates, *shape)).astype(np.float32)
    nn.save_parameters(tmp_path / "a.safetensors", {k: nn.Variable.from_numpy_array(v) for k, v in tensors.items()})
    x = nn.Variable.from_numpy_array(rng.uniform(-1, 1, (5, 2, 3)))
    states = [nn.Variable.from_numpy_array(np.zeros((2, 2, 2, 4))) for _ in range(2 if kind == "lstm" else 1)]
    y, *_ = getattr(PF, kind)(x, *states, num_layers=2, bidirectional=True, name="rnn")
    assert load_pytorch_parameters(tmp_path / "a.safetensors").is_exact
    y.forward()
    np.testing.assert_allclose(y.d, _expected(kind, tensors, x.d, 2, 4), rtol=1e-4, atol=1e-5)


def test_a_cell_has_its_gates_in_another_order(tmp_path, rng):
    shapes = {"weight_ih": (16, 3), "weight_hh": (16, 4), "bias_ih": (16,), "bias_hh": (16,)}
    tensors = {f"cell.{name}": rng.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    nn.save_parameters(tmp_path / "a.safetensors", {k: nn.Variable.from_numpy_array(v) for k, v in tensors.items()})
    x, h, c = (nn.Variable.from_numpy_array(rng.uniform(-1, 1, (2, n))) for n in (3, 4, 4))
    y, memory = PF.lstm_cell(x, h, c, 4, name="cell")
    assert load_pytorch_parameters(tmp_path / "a.safetensors").is_exact
    F.sink(y, memory).forward()
    w, u, b, d = tensors.values()
    state, expected = _step_lstm(x.d @ w.T + b, h.d @ u.T + d, c.d, None)
    np.testing.assert_allclose(y.d, state, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(memory.d, expected, rtol=1e-4, atol=1e-5)


def test_conv1d_of_transformers_is_not_transposed(tmp_path, rng):
    values = rng.uniform(-1, 1, (4, 4)).astype(np.float32)
    tensors = {"h.c_fc.weight": nn.Variable.from_numpy_array(values), "h.c_fc.bias": nn.Variable((4,))}
    nn.save_parameters(tmp_path / "a.safetensors", tensors)
    PF.affine(nn.Variable((2, 4)), 4, name="h/c_fc")
    weight = nn.get_parameters()["h/c_fc/affine/W"]
    load_pytorch_parameters(tmp_path / "a.safetensors", conv1d=True)
    np.testing.assert_array_equal(weight.d, values)
    load_pytorch_parameters(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(weight.d, values.T)
