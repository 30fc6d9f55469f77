"""Recurrent layers over sequences of different lengths, against the cells step by step in NumPy, and their conveniences."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError

T, B, N_IN, H = 6, 4, 3, 5
LENGTHS = [6, 2, 0, 4]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(kind, x, states, w, b):
    """Return one step for one sequence; w (gates, H, N_IN + H), b (gates, H)."""
    wx, wh = w[..., : len(x)], w[..., len(x) :]
    h = states[0]
    if kind == "rnn":
        return (np.tanh(wx @ x + wh @ h + b),)
    if kind == "gru":
        r, z = (sigmoid(wx[n] @ x + wh[n] @ h + b[n]) for n in (0, 1))
        n = np.tanh(wx[2] @ x + b[2] + r * (wh[2] @ h + b[3]))
        return ((1 - z) * n + z * h,)
    i, f, g, o = (wx[n] @ x + wh[n] @ h + b[n] for n in range(4))
    c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def truth(kind, x, states, weights, bias):
    """Return each sequence by itself: outputs (T, B, directions H) with zeros for padding, and the last states."""
    n_layers, n_directions = states[0].shape[:2]
    last, y = [state.copy() for state in states], np.zeros((T, B, n_directions * H))
    for sample, length in enumerate(LENGTHS):
        rows = list(x[:length, sample])
        for number in range(n_layers):
            outputs = np.zeros((length, n_directions * H))
            for direction in range(n_directions):
                place = (number, direction, sample)
                state = tuple(one[place] for one in states)
                for t in range(length)[:: -1 if direction else 1]:
                    state = cell(kind, rows[t], state, weights[number][direction], bias[number, direction])
                    outputs[t, direction * H : (direction + 1) * H] = state[0]
                for kept, value in zip(last, state, strict=True):
                    kept[place] = value
            rows = list(outputs)
        y[:length, sample] = rows if length else y[:0, sample]
    return [y, *last]


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize(("n_layers", "bidirectional"), [(1, False), (2, True)])
def test_sequences_of_different_lengths(kind, n_layers, bidirectional):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((T, B, N_IN))
    for sample, length in enumerate(LENGTHS):
        x[length:, sample] = np.nan  # padding is not read
    n_directions = 2 if bidirectional else 1
    states = [rng.standard_normal((n_layers, n_directions, B, H)) for _ in range(2 if kind == "lstm" else 1)]
    variables = [nn.Variable.from_numpy_array(array) for array in (x, *states, np.array(LENGTHS))]
    *operands, lengths = variables
    layer = getattr(PF, kind)
    results = layer(*operands, bidirectional=bidirectional, lengths=lengths, name="layer")
    parameters = nn.get_parameters()
    for parameter in parameters.values():
        parameter.d = rng.normal(0, 0.5, parameter.shape)
    weights = [parameters[f"layer/{kind}/weight_l0"].d, *(parameters[f"layer/{kind}/weight"].d if n_layers > 1 else [])]
    nn.forward_all(results)
    for result, expected in zip(results, truth(kind, x, states, weights, parameters[f"layer/{kind}/bias"].d), strict=True):
        np.testing.assert_allclose(result.d, expected, rtol=1e-4, atol=1e-5)
    loss = sum(F.sum(result * result) for result in results)
    loss.forward()
    for parameter in parameters.values():
        parameter.grad.zero()
    loss.backward()
    assert all(np.isfinite(parameter.g).all() for parameter in parameters.values())


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_full_lengths_change_nothing(kind):
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).standard_normal((T, B, N_IN)))
    layer = getattr(PF, kind)
    without = layer(x, hidden_size=H, name="layer")
    lengths = layer(x, hidden_size=H, lengths=nn.Variable.from_numpy_array(np.full(B, T)), name="layer")
    nn.forward_all([*without, *lengths])
    for plain, padded in zip(without, lengths, strict=True):
        np.testing.assert_allclose(padded.d, plain.d, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_states_are_zeros_by_default_and_the_batch_may_come_first(kind):
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).standard_normal((T, B, N_IN)))
    zeros = [nn.Variable.from_numpy_array(np.zeros((2, 1, B, H))) for _ in range(2 if kind == "lstm" else 1)]
    layer = getattr(PF, kind)
    given = layer(x, *zeros, name="layer")
    default = layer(F.transpose(x, (1, 0, 2)), num_layers=2, hidden_size=H, batch_first=True, name="layer")
    nn.forward_all([*given, *default])
    np.testing.assert_array_equal(default[0].d, given[0].d.transpose(1, 0, 2))
    for first, second in zip(given[1:], default[1:], strict=True):
        np.testing.assert_array_equal(first.d, second.d)
    assert default[0].shape == (B, T, H)


def test_wrong_calls_are_refused():
    x, h = nn.Variable((T, B, N_IN)), nn.Variable((1, 1, B, H))
    for call, error, message in (
        (lambda: PF.lstm(x), ArgumentError, "lstm: without h, hidden_size must be given, got None"),
        (lambda: PF.gru(x, hidden_size=0), ArgumentError, "gru: hidden_size must be a whole number of at least 1, got 0"),
        (lambda: PF.rnn(x, h, hidden_size=4), ShapeError, "rnn: hidden_size must be the last length of h, got 4 and 5"),
        (lambda: PF.gru(x, h, lengths=nn.Variable((3,))), ShapeError, r"gru: lengths must have the shape \(4,\), got \(3,\)"),
        (lambda: PF.rnn(nn.Variable((T, N_IN)), h), ShapeError, "length, batch, features"),
        (lambda: PF.rnn(nn.Variable((T, N_IN)), h, batch_first=True), ShapeError, "batch, length, features"),
        (lambda: PF.lstm(nn.Variable((B, N_IN)), None, None, 4), ArgumentError, "the cell must be given h and c"),
    ):
        with pytest.raises(error, match=message):
            call()
