"""Tests of the operators of the topic recurrent."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import SHAPE_RULES
from nn_core.testing.operators import check_forward, check_gradient, check_table, run, run_gradient

rng = np.random.default_rng(24)
T, B, D, H = 3, 2, 2, 2  # steps, samples, inputs, states


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_table() -> None:
    check_table("recurrent")


def tanh_cell(x: np.ndarray, states: tuple, w: np.ndarray, b: np.ndarray) -> tuple:
    return (np.tanh(w @ np.concatenate((x, states[0])) + b),)


def relu_cell(x: np.ndarray, states: tuple, w: np.ndarray, b: np.ndarray) -> tuple:
    return (np.maximum(w @ np.concatenate((x, states[0])) + b, 0),)


def lstm_cell(x: np.ndarray, states: tuple, w: np.ndarray, b: np.ndarray) -> tuple:
    h, c = states
    i, f, g, o = (w[gate] @ np.concatenate((x, h)) + b[gate] for gate in range(4))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_cell(x: np.ndarray, states: tuple, w: np.ndarray, b: np.ndarray) -> tuple:
    (h,) = states
    r, z = (sigmoid(w[gate] @ np.concatenate((x, h)) + b[gate]) for gate in range(2))
    n = np.tanh(w[2][:, : len(x)] @ x + b[2] + r * (w[2][:, len(x) :] @ h + b[3]))
    return ((1 - z) * n + z * h,)


def unrolled(
    cell: Callable, x: np.ndarray, states: tuple, weight_l0: np.ndarray, weight: np.ndarray | None, bias: np.ndarray
) -> tuple:
    """The definition for one sample after the other: y and the last states."""
    n_layers, n_directions = states[0].shape[:2]
    last = tuple(np.empty_like(state) for state in states)
    for layer in range(n_layers):
        y = np.empty((*x.shape[:2], n_directions * states[0].shape[3]))
        for d, b in np.ndindex(n_directions, x.shape[1]):
            current = tuple(state[layer, d, b] for state in states)
            w = weight[layer - 1, d] if layer and weight is not None else weight_l0[d]
            for t in range(x.shape[0])[:: -1 if d else 1]:
                current = cell(x[t, b], current, w, bias[layer, d])
                y[t, b, d * len(current[0]) : (d + 1) * len(current[0])] = current[0]
            for array, value in zip(last, current, strict=True):
                array[layer, d, b] = value
        x = y
    return y, *last


# name, args, cell, gates of weights, gates of biases, number of states
CELLS: list[tuple[str, dict, Callable, tuple, tuple, int]] = [
    ("RNN", {"nonlinearity": "tanh"}, tanh_cell, (), (), 1),
    ("RNN", {"nonlinearity": "relu"}, relu_cell, (), (), 1),
    ("LSTM", {}, lstm_cell, (4,), (4,), 2),
    ("GRU", {}, gru_cell, (3,), (4,), 1),
]
NETWORKS = [(1, False), (1, True), (2, False), (3, True)]


def network_inputs(gates: tuple, bias_gates: tuple, n_states: int, n_layers: int, n_directions: int, n_batch: int = B) -> list:
    return [
        normal(T, n_batch, D),
        *(normal(n_layers, n_directions, n_batch, H) for _ in range(n_states)),
        normal(n_directions, *gates, H, D + H),
        normal(n_layers - 1, n_directions, *gates, H, n_directions * H + H) if n_layers > 1 else None,
        normal(n_layers, n_directions, *bias_gates, H),
    ]


@pytest.mark.parametrize(("n_layers", "bidirectional"), NETWORKS)
@pytest.mark.parametrize(("name", "settings", "cell", "gates", "bias_gates", "n_states"), CELLS)
def test_networks(
    name: str,
    settings: dict,
    cell: Callable,
    gates: tuple,
    bias_gates: tuple,
    n_states: int,
    n_layers: int,
    bidirectional: bool,
) -> None:
    inputs = network_inputs(gates, bias_gates, n_states, n_layers, 2 if bidirectional else 1)
    args = {**settings, "num_layers": n_layers, "bidirectional": bidirectional}

    def truth(x: np.ndarray, *rest: np.ndarray) -> tuple:
        return *unrolled(cell, x, rest[:n_states], *rest[n_states:]), None

    check_forward(name, inputs, truth, rtol=1e-9, atol=1e-11, **args)
    check_gradient(name, inputs, **args)


@pytest.mark.parametrize(("name", "settings", "cell", "gates", "bias_gates", "n_states"), CELLS)
def test_networks_without_bias(
    name: str, settings: dict, cell: Callable, gates: tuple, bias_gates: tuple, n_states: int
) -> None:
    *inputs, bias = network_inputs(gates, bias_gates, n_states, 2, 1)
    x, *rest = inputs
    expected = unrolled(cell, x, tuple(rest[:n_states]), *rest[n_states:], 0 * bias)
    results = run(name, *inputs, None, num_layers=2, **settings)
    for given, value in zip(results, expected, strict=False):
        np.testing.assert_allclose(given, value)
    check_gradient(name, [*inputs, None], wrt=range(len(inputs)), num_layers=2, **settings)


@pytest.mark.parametrize(("name", "settings", "cell", "gates", "bias_gates", "n_states"), CELLS)
def test_networks_over_no_samples(
    name: str, settings: dict, cell: Callable, gates: tuple, bias_gates: tuple, n_states: int
) -> None:
    inputs = network_inputs(gates, bias_gates, n_states, 1, 1, n_batch=0)
    y, h_n, *_ = run(name, *inputs, **settings)
    assert (y.shape, h_n.shape) == ((T, 0, H), (1, 1, 0, H))
    check_gradient(name, inputs, **settings)


@pytest.mark.parametrize(("name", "settings", "cell", "gates", "bias_gates", "n_states"), CELLS)
def test_networks_drop_outputs_between_layers(
    name: str, settings: dict, cell: Callable, gates: tuple, bias_gates: tuple, n_states: int
) -> None:
    inputs = network_inputs(gates, bias_gates, n_states, 2, 2)
    args = {**settings, "num_layers": 2, "bidirectional": True}
    *_, mask = run(name, *inputs, dropout=0.4, **args)
    assert mask.shape == (1, T, B, 2 * H)
    assert set(np.unique(mask)) == {0, 1 / 0.6}
    x, *rest = inputs
    lower, *_ = unrolled(cell, x, tuple(state[:1] for state in rest[:n_states]), rest[n_states], None, rest[-1][:1])
    upper, *_ = unrolled(
        cell, lower * mask[0], tuple(state[1:] for state in rest[:n_states]), rest[n_states + 1][0], None, rest[-1][1:]
    )
    np.testing.assert_allclose(run(name, *inputs, dropout=0.4, **args)[0], upper)
    check_gradient(name, inputs, dropout=0.4, **args)
    *_, mask = run(name, *inputs, dropout=0.4, training=False, **args)
    assert mask.size == 0


def test_lstm_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")
    x, h, c, w0, w, b = network_inputs((4,), (4,), 2, 2, 2)
    network = torch.nn.LSTM(D, H, num_layers=2, bidirectional=True).double()
    with torch.no_grad():
        for layer, direction in np.ndindex(2, 2):
            weight = w0[direction] if layer == 0 else w[layer - 1, direction]
            n_inputs = weight.shape[-1] - H
            suffix = f"l{layer}" + ("_reverse" if direction else "")
            getattr(network, f"weight_ih_{suffix}").copy_(torch.tensor(weight[..., :n_inputs].reshape(4 * H, -1)))
            getattr(network, f"weight_hh_{suffix}").copy_(torch.tensor(weight[..., n_inputs:].reshape(4 * H, -1)))
            getattr(network, f"bias_ih_{suffix}").copy_(torch.tensor(b[layer, direction].reshape(-1)))
            getattr(network, f"bias_hh_{suffix}").zero_()
        y, (h_n, c_n) = network(torch.tensor(x), (torch.tensor(h.reshape(4, B, H)), torch.tensor(c.reshape(4, B, H))))
    given = run("LSTM", x, h, c, w0, w, b, num_layers=2, bidirectional=True)
    for result, expected in zip(given, (y, h_n, c_n), strict=False):
        np.testing.assert_allclose(result.reshape(expected.shape), expected.numpy())


SHAPES: dict[str, tuple] = {
    "RNN": ((3, 2, 4), (1, 1, 2, 5), (1, 5, 9), None, (1, 1, 5)),
    "LSTM": ((3, 2, 4), (1, 1, 2, 5), (1, 1, 2, 5), (1, 4, 5, 9), None, (1, 1, 4, 5)),
    "GRU": ((3, 2, 4), (1, 1, 2, 5), (1, 3, 5, 9), None, (1, 1, 4, 5)),
}


@pytest.mark.parametrize(
    ("name", "position", "shape", "message"),
    [
        ("RNN", 0, (3, 2), r"x must have shape \(T, B, I\) with at least one step, got \(3, 2\)"),
        ("GRU", 0, (0, 2, 4), r"x must have shape \(T, B, I\) with at least one step, got \(0, 2, 4\)"),
        ("RNN", 1, (1, 2, 2, 5), r"h must have shape \(1, 1, 2, 5\), got \(1, 2, 2, 5\)"),
        ("RNN", 1, (2, 5), r"h must have shape \(1, 1, 2, H\), got \(2, 5\)"),
        ("LSTM", 2, (1, 1, 2, 6), r"c must have shape \(1, 1, 2, 5\), got \(1, 1, 2, 6\)"),
        ("RNN", 2, (1, 5, 8), r"weight_l0 must have shape \(1, 5, 9\), got \(1, 5, 8\)"),
        ("LSTM", 3, (1, 3, 5, 9), r"weight_l0 must have shape \(1, 4, 5, 9\), got \(1, 3, 5, 9\)"),
        ("GRU", 4, (1, 1, 3, 5), r"bias must have shape \(1, 1, 4, 5\), got \(1, 1, 3, 5\)"),
        (
            "RNN",
            3,
            (1, 1, 5, 10),
            r"weight must be given if and only if num_layers is above 1, got shape \(1, .* for 1",
        ),
    ],
)
def test_networks_refuse_unfitting_shapes(name: str, position: int, shape: tuple, message: str) -> None:
    shapes = list(SHAPES[name])
    shapes[position] = shape
    args: dict[str, Any] = {"num_layers": 1, "dropout": 0.0, "bidirectional": False, "training": True}
    with pytest.raises(ShapeError, match=message):
        SHAPE_RULES[name](*shapes, **args, **({"nonlinearity": "tanh"} if name == "RNN" else {}))


PACKING = [([3, 2, 1], 3), ([4, 4, 1], 5), ([2, 0, 0], 2), ([3], 3)]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("lengths", "n_steps"), PACKING)
def test_packing(lengths: list, n_steps: int, batch_first: bool) -> None:
    lengths = [length for length in lengths if length]  # packing refuses others
    x = normal(n_steps, len(lengths), 2)
    packed = [x[t, b] for t in range(n_steps) for b, length in enumerate(lengths) if t < length]
    sizes = [sum(length > t for length in lengths) for t in range(n_steps)]
    x = x.swapaxes(0, 1) if batch_first else x
    check_forward(
        "PackPaddedSequence",
        [x, np.array(lengths)],
        (np.array(packed), np.array(sizes)),
        dtypes=("float64",),
        batch_first=batch_first,
    )
    check_gradient("PackPaddedSequence", [x, np.array(lengths)], wrt=(0,), batch_first=batch_first)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("total_length", [-1, 6])
@pytest.mark.parametrize(("lengths", "n_steps"), PACKING)
def test_padding_undoes_packing(lengths: list, n_steps: int, total_length: int, batch_first: bool) -> None:
    sizes = np.array([sum(length > t for length in lengths) for t in range(n_steps)])
    packed = normal(sum(lengths), 2)
    args = {"batch_first": batch_first, "padding_value": -1.5, "total_length": total_length}
    padded, found = run("PadPackedSequence", packed, sizes, **args)
    present = [length for length in lengths if length]
    assert found.tolist() == present
    padded = padded.swapaxes(0, 1) if batch_first else padded
    assert padded.shape == (max(n_steps, total_length), len(present), 2)
    for b, length in enumerate(present):
        assert (padded[length:, b] == -1.5).all()
    np.testing.assert_array_equal(run("PackPaddedSequence", padded, np.array(present))[0], packed)
    check_gradient("PadPackedSequence", [packed, sizes], wrt=(0,), **args)


def test_packing_refuses() -> None:
    x = normal(3, 2)
    with pytest.raises(ArgumentError, match=r"pack_padded_sequence: lengths must not increase, got \[1, 2\]"):
        run("PackPaddedSequence", x, np.array([1, 2]))
    with pytest.raises(ArgumentError, match=r"lengths must be from 1 to the 3 steps, got \[4, 2\]"):
        run("PackPaddedSequence", x, np.array([4, 2]))
    with pytest.raises(ArgumentError, match=r"lengths must be from 1 to the 3 steps, got \[2, 0\]"):
        run("PackPaddedSequence", x, np.array([2, 0]))
    rule = SHAPE_RULES["PackPaddedSequence"]
    with pytest.raises(ShapeError, match="padded_sequence must have at least 2 axes, got 1"):
        rule((3,), (3,), batch_first=False)
    with pytest.raises(ShapeError, match=r"lengths must have one value for each sequence, shape \(2,\), got \(3,\)"):
        rule((3, 2), (3,), batch_first=False)


def test_padding_refuses() -> None:
    with pytest.raises(ArgumentError, match=r"batch_sizes must not increase and sum to .*, 3, got \[1, 2\]"):
        run("PadPackedSequence", normal(3), np.array([1, 2]))
    with pytest.raises(ArgumentError, match=r"batch_sizes must not increase and sum to .*, 3, got \[2, 2\]"):
        run("PadPackedSequence", normal(3), np.array([2, 2]))
    rule = SHAPE_RULES["PadPackedSequence"]
    args = {"batch_first": False, "padding_value": 0.0, "total_length": -1}
    with pytest.raises(ShapeError, match="packed_sequence must have at least one axis, got 0-d"):
        rule((), (3,), **args)
    with pytest.raises(ShapeError, match=r"batch_sizes must have one value for each step, got shape \(3, 1\)"):
        rule((4,), (3, 1), **args)
    with pytest.raises(ArgumentError, match="total_length must be at least the number of steps 3, or -1, got 2"):
        rule((4,), (3,), **{**args, "total_length": 2})


def test_gradients_of_last_states_alone() -> None:
    """The gradients of y and of the last states add up."""
    inputs = network_inputs((4,), (4,), 2, 1, 1)
    zeros = [np.zeros((T, B, H)), np.zeros((1, 1, B, H)), np.zeros((1, 1, B, H))]
    dh = normal(1, 1, B, H)
    through_state = run_gradient("LSTM", *inputs, grads=[zeros[0], dh, zeros[2]])
    dy = zeros[0].copy()
    dy[-1] = dh[0, 0]
    through_output = run_gradient("LSTM", *inputs, grads=[dy, zeros[1], zeros[2]])
    for given, expected in zip(through_state, through_output, strict=True):
        if expected is not None:
            np.testing.assert_allclose(given, expected)
