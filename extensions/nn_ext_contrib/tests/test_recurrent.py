"""Recurrent functions against loops over each sequence, and their gradients against central differences."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError

C = F.contrib

RNG = np.random.default_rng


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(w, b, x, state):
    h, c = state
    i, f, o = (sigmoid(w[k] @ x + w[k + 4] @ h + b[k] + b[k + 4]) for k in range(3))
    c = f * c + i * np.tanh(w[3] @ x + w[7] @ h + b[3] + b[7])
    return o * np.tanh(c), c


def gru(w, b, x, state):
    (h,) = state
    r, z = (sigmoid(w[k] @ x + w[k + 3] @ h + b[k] + b[k + 3]) for k in range(2))
    return ((1 - z) * np.tanh(w[2] @ x + b[2] + r * (w[5] @ h + b[5])) + z * h,)


def rnn(w, b, x, state):
    return (np.tanh(w[0] @ x + w[1] @ state[0] + b[0] + b[1]),)


def over_time(cell, w, b, state, steps, backwards):
    """The final state, and the outputs in the order of the steps."""
    found = []
    for x in steps[::-1] if backwards else steps:
        state = cell(w, b, x, state)
        found.append(state[0])
    return state, found[::-1] if backwards else found


def one_sequence(cell, directions, states, ws, bs, steps):
    """Final states by row, and the outputs, of one sequence; `states` are by row too."""
    ends = []
    for layer in range(len(ws) // directions):
        joined = []
        for d in range(directions):
            row = layer * directions + d
            state, found = over_time(cell, ws[row], bs[row], [part[row] for part in states], steps, backwards=d == 1)
            ends.append(state)
            joined.append(found)
        steps = [np.concatenate(parts) for parts in zip(*joined, strict=True)]
    return ends, steps


def by_sequence(cell, directions, states, ws, bs, xs):
    """Final states, and the outputs of each step, computed one sequence at a time."""
    ends, outputs = [], []
    for n in range(len(xs[0])):
        steps = [x[n] for x in xs if len(x) > n]
        own_ends, own_outputs = one_sequence(cell, directions, [state[:, n] for state in states], ws, bs, steps)
        ends.append(own_ends)
        outputs.append(own_outputs)
    ys = [np.stack([steps[t] for steps in outputs if len(steps) > t]) for t in range(len(xs))]
    return [np.stack([[row[k] for row in own] for own in ends], axis=1) for k in range(len(states))], ys


KINDS = {"lstm": (C.n_step_lstm, lstm, 8, 2), "gru": (C.n_step_gru, gru, 6, 1), "rnn": (C.n_step_rnn, rnn, 2, 1)}


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_over_ragged_sequences(check, kind, bidirectional):
    function, cell, count, n_states = KINDS[kind]
    rng, layers, directions, units = RNG(5), 2, 1 + bidirectional, 2
    rows = layers * directions
    xs = [rng.normal(size=(rows_of_step, 3)) for rows_of_step in (3, 3, 2, 1)]
    states = [rng.normal(size=(rows, 3, units)) for _ in range(n_states)]
    ws, bs = [], []
    for row in range(rows):
        width = 3 if row < directions else directions * units
        ws += [rng.normal(size=(units, width if k < count // 2 else units)) for k in range(count)]
        bs += [rng.normal(size=units) for _ in range(count)]

    def parted(arrays):
        states, rest = arrays[:n_states], arrays[n_states:]
        n = rows * count
        grouped = [[rest[start + row * count :][:count] for row in range(rows)] for start in (0, n)]
        return states, *grouped, rest[2 * n :]

    def ours(*variables):
        states, ws, bs, xs = parted(variables)
        return function(layers, 0.5, *states, ws, bs, xs, bidirectional=bidirectional, train=False)

    check(ours, lambda *arrays: by_sequence(cell, directions, *parted(arrays)), *states, *ws, *bs, *xs, gradient=False)
    fixed = [nn.Variable.from_numpy_array(a) for a in (*ws, *bs)]
    some = [*states, ws[0], ws[-1], bs[0], bs[-1], xs[0], xs[-1]]

    def with_some(*moved):
        given = dict(zip((0, len(ws) - 1, len(ws), len(ws) + len(bs) - 1), moved[n_states : n_states + 4], strict=True))
        weights = [given.get(k, v) for k, v in enumerate(fixed)]
        return ours(*moved[:n_states], *weights, moved[-2], *map(nn.Variable.from_numpy_array, xs[1:-1]), moved[-1])

    def expected(*moved):
        all_w = [*ws, *bs]
        for k, value in zip((0, len(ws) - 1, len(ws), len(all_w) - 1), moved[n_states : n_states + 4], strict=True):
            all_w[k] = value
        return by_sequence(cell, directions, *parted([*moved[:n_states], *all_w, moved[-2], *xs[1:-1], moved[-1]]))

    check(with_some, expected, *some, places=1)


def test_relu_networks(check):
    x, w, u, b = (RNG(n).normal(size=shape) for n, shape in enumerate([(2, 3), (2, 3), (2, 2), (2,)]))
    h = RNG(9).normal(size=(1, 2, 2))

    def expected(h, x, w, u, b):
        y = np.maximum(x @ w.T + h[0] @ u.T + 2 * b, 0)
        return y[None], y

    check(lambda h, x, w, u, b: C.n_step_rnn(1, 0.0, h, [[w, u]], [[b, b]], [x], activation="relu"), expected, h, x, w, u, b)


def test_dropout_is_between_layers_and_in_training_only():
    nn.seed(1)
    x, h = nn.Variable.from_numpy_array(np.ones((1, 200))), nn.Variable.from_numpy_array(np.zeros((2, 1, 200)))
    one, b = nn.Variable.from_numpy_array(np.eye(200)), nn.Variable.from_numpy_array(np.zeros(200))
    found = []
    for layers, train in ((1, True), (2, True), (2, False)):
        _, (y,) = C.n_step_rnn(
            layers, 0.5, F.slice(h, stop=(layers, 1, 200)), [[one, one]] * layers, [[b, b]] * layers, [x], "relu", train=train
        )
        y.forward()
        found.append(y.d.copy())
    assert set(np.unique(found[0])) == set(np.unique(found[2])) == {1.0}
    assert set(np.unique(found[1])) == {0.0, 2.0} and 60 < (found[1] == 0).sum() < 140


def test_a_step_of_an_lstm(check):
    c_prev, x = RNG(0).normal(size=(3, 2, 2)), RNG(1).normal(size=(2, 8, 2))

    def expected(c_prev, x):
        a, i, f, o = (x[:, k::4] for k in range(4))
        c = np.concatenate([np.tanh(a) * sigmoid(i) + c_prev[:2] * sigmoid(f), c_prev[2:]])
        return c, np.tanh(c[:2]) * sigmoid(o)

    check(C.stateless_lstm, expected, c_prev, x)


def test_a_step_of_an_lstm_over_a_tree(check):
    c1, c2, x1, x2 = (RNG(n).normal(size=shape) for n, shape in enumerate([(2, 3), (2, 3), (2, 12), (2, 12)]))

    def expected(c1, c2, x1, x2):
        (a1, i1, f1, o1), (a2, i2, f2, o2) = ([x[:, k::4] for k in range(4)] for x in (x1, x2))
        c = np.tanh(a1 + a2) * sigmoid(i1 + i2) + c1 * sigmoid(f1) + c2 * sigmoid(f2)
        return c, np.tanh(c) * sigmoid(o1 + o2)

    check(C.stateless_slstm, expected, c1, c2, x1, x2)


def test_a_static_graph_follows_other_batch_sizes():
    w, b, h = (nn.Variable.from_numpy_array(RNG(n).normal(size=s)) for n, s in enumerate([(2, 2), (2,), (1, 3, 2)]))
    x = [nn.Variable.from_numpy_array(RNG(9 + n).normal(size=(3 - n, 2))) for n in range(2)]
    hy, ys = C.n_step_rnn(1, 0.0, h, [[w, w]], [[b, b]], x)
    nn.forward_all([hy, *ys])
    numbers = x[0].d[:2].copy(), x[1].d[:1].copy(), h.d[:, :2].copy()
    before = hy.d[:, :1].copy(), ys[1].d[:1].copy()
    for variable, values in zip((*x, h), numbers, strict=True):
        variable.reset_shape(values.shape, force=True)
        variable.d = values
    nn.forward_all([hy, *ys])
    assert [y.shape for y in ys] == [(2, 2), (1, 2)]
    np.testing.assert_allclose(ys[1].d, before[1], rtol=1e-6)
    np.testing.assert_allclose(hy.d[:, :1], before[0], rtol=1e-6)


V = nn.Variable


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: C.stateless_lstm(V((2, 3)), V((2, 11))), ShapeError, "x must have 4 channels for each of c_prev"),
        (lambda: C.stateless_lstm(V((2, 3)), V((3, 12))), ShapeError, "and no more rows"),
        (lambda: C.stateless_slstm(V((2, 3)), V((2, 4)), V((2, 12)), V((2, 12))), ShapeError, "both children must have"),
        (lambda: run(xs=[V((1, 3)), V((2, 3))]), ShapeError, r"xs must have steps with fewer and fewer rows, got \[1, 2\]"),
        (lambda: run(xs=[]), ShapeError, "xs must have steps"),
        (lambda: run(hx=V((1, 3, 2))), ShapeError, r"states must have shape \(1, 2, 2\), got \(1, 3, 2\)"),
        (lambda: run(ws=[[V((2, 3))]]), ArgumentError, r"ws must have 1 lists of 2, got lists of \[1\]"),
        (lambda: run(activation="gelu"), ArgumentError, "activation must be 'tanh' or 'relu', got 'gelu'"),
        (lambda: run(dropout_ratio=1.0), ArgumentError, r"dropout_ratio must be in \[0, 1\), got 1.0"),
    ],
)
def test_wrong_calls_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def run(**changed):
    given = {
        "n_layers": 1, "dropout_ratio": 0.0, "hx": V((1, 2, 2)), "ws": [[V((2, 3)), V((2, 2))]], "bs": [[V((2,)), V((2,))]],
        "xs": [V((2, 3))],
    }  # fmt: skip
    return C.n_step_rnn(**{**given, **changed})
