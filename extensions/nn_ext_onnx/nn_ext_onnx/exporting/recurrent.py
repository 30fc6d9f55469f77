"""Recurrent networks, as the operators of ONNX, and sequences of different lengths."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from nn_ext_onnx.exporting.registry import Call, converter
from nn_ext_onnx.exporting.values import BOOL, INT, Value

#: The gates of ONNX by their places here: LSTM has i, o, f, c for i, f, g, o, and GRU z, r, h for r, z, n.
_GATES: Final = {"RNN": (0,), "LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}


@converter("RNN", "LSTM", "GRU")
def _recurrent(call: Call) -> list[Value]:
    n_states = 2 if call.name == "LSTM" else 1
    n_layers, n_directions = call.args["num_layers"], 2 if call.args["bidirectional"] else 1
    x, hidden = call.x, call.shapes[1][-1]
    finals: list[list[Value]] = [[] for _ in range(n_states)]
    for layer in range(n_layers):
        states = [call[1 + k].slice(0, layer, layer + 1).squeeze(0) for k in range(n_states)]
        weights = _weights(call, n_states, layer, hidden)
        y, *last = _layer(call, x, weights, _bias(call, n_states, layer, hidden), states, hidden)
        x = y.transpose([0, 2, 1, 3]).reshape((*call.shape[:2], n_directions * hidden))
        for collected, state in zip(finals, last, strict=True):
            collected.append(state.unsqueeze(0))
    return [x, *(call.graph.op("Concat", *states, axis=0) for states in finals)]


def _layer(
    call: Call, x: Value, weights: Sequence[Value], bias: Value | None, states: Sequence[Value], hidden: int
) -> list[Value]:
    is_both = call.args["bidirectional"]
    settings = {"direction": "bidirectional" if is_both else "forward", "hidden_size": hidden}
    if call.name == "GRU":
        settings["linear_before_reset"] = 1
    if call.name == "RNN":
        name = "Tanh" if call.args["nonlinearity"] == "tanh" else "Relu"
        settings["activations"] = [name] * (2 if is_both else 1)
    dtypes = [x.dtype] * (1 + len(states))
    return call.graph.ops(call.name, x, *weights, bias, None, *states, dtypes=dtypes, **settings)


def _weights(call: Call, n_states: int, layer: int, hidden: int) -> list[Value]:
    """W (D, gates * H, I) and R (D, gates * H, H) of a layer, from (D, gates, H, I + H)."""
    first = 1 + n_states
    if layer == 0:
        weight, shape = call[first], call.shapes[first]
        n_inputs = shape[-1] - hidden
    else:
        weight, shape = call[first + 1].slice(0, layer - 1, layer).squeeze(0), call.shapes[first + 1][1:]
        n_inputs = shape[-1] - hidden
    axes = len(shape) - 1
    parts = [weight.slice(axes, 0, n_inputs), weight.slice(axes, n_inputs, n_inputs + hidden)]
    if call.name == "RNN":
        return parts
    n_gates = shape[1]
    return [
        part.take(_GATES[call.name], 1).reshape((shape[0], n_gates * hidden, size))
        for part, size in zip(parts, (n_inputs, hidden), strict=True)
    ]


def _bias(call: Call, n_states: int, layer: int, hidden: int) -> Value | None:
    """Return the biases of inputs and states, (D, 2 * gates * H), from (layers, D, gates, H); GRU has one more gate of the
    state.
    """
    given = call.optional(3 + n_states)
    if given is None:
        return None
    bias = given.slice(0, layer, layer + 1).squeeze(0)
    n_directions = 2 if call.args["bidirectional"] else 1
    if call.name == "RNN":
        return call.graph.op("Concat", bias, call.graph.constant(np.zeros((n_directions, hidden))), axis=1)
    gates = _GATES[call.name]
    zeros = call.graph.constant(np.zeros((n_directions, len(gates), hidden)))
    if call.name == "GRU":
        zeros = call.graph.op("Concat", zeros.slice(1, 0, 2), bias.slice(1, 3, 4), axis=1)
    both = call.graph.op("Concat", bias.take(gates, 1), zeros, axis=1)
    return both.reshape((n_directions, 2 * len(gates) * hidden))


@converter("PackPaddedSequence")
def _pack_padded_sequence(call: Call) -> list[Value]:
    x = call.x.transpose([1, 0, *range(2, call.ndim)]) if call.args["batch_first"] else call.x
    n_steps = call.shape[1] if call.args["batch_first"] else call.shape[0]
    is_valid = call.arange(n_steps).unsqueeze(1).op("Less", call[1], dtype=BOOL)
    packed = x.op("GatherND", is_valid.op("NonZero", dtype=INT).transpose([1, 0]))
    return [packed, is_valid.cast(INT).reduce("ReduceSum", [1], False)]


@converter("PadPackedSequence")
def _pad_packed_sequence(call: Call) -> list[Value]:
    sizes, n_steps = call[1], call.shapes[1][0]
    graph = call.graph
    n_sequences = sizes.reduce("ReduceMax", [0], False)
    numbers = graph.op("Range", graph.constant(0, INT), n_sequences, graph.constant(1, INT))
    is_valid = numbers.op("Less", sizes.unsqueeze(1), dtype=BOOL)
    features = call.shape[1:]
    total = max(n_steps, call.args["total_length"])
    shape = graph.op("Concat", graph.constant([total], INT), n_sequences.unsqueeze(0), graph.constant(features, INT), axis=0)
    base = graph.op("Expand", graph.constant(float(call.args["padding_value"])), shape)
    places = is_valid.op("NonZero", dtype=INT).transpose([1, 0])
    y = base.op("ScatterND", places, call.x)
    y = y.transpose([1, 0, *range(2, len(features) + 2)]) if call.args["batch_first"] else y
    return [y, is_valid.cast(INT).reduce("ReduceSum", [0], False)]
