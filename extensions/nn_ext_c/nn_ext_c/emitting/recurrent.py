"""Recurrent networks, written out step by step; equal steps share one function of C."""

from typing import Final

from nn_ext_c.emitting.activation import SIGMOID
from nn_ext_c.emitting.linear import matmul
from nn_ext_c.emitting.registry import Call, copied, emitter, reshaped
from nn_ext_c.program import Value

_GATES: Final = {"RNN": 1, "LSTM": 4, "GRU": 3}


@emitter("RNN", "LSTM", "GRU")
def _recurrent(call: Call) -> list[Value]:
    n_states = 2 if call.name == "LSTM" else 1
    directions = 2 if call.args["bidirectional"] else 1
    n_steps, n_batch, _ = call.shape
    hidden = call[1].shape[-1]
    x = call.x
    finals = [call.program.new(call[1].shape) for _ in range(n_states)]
    for layer in range(call.args["num_layers"]):
        y = call.program.new((n_steps, n_batch, directions * hidden))
        for direction in range(directions):
            states = [call[1 + k].pick(0, layer).pick(0, direction) for k in range(n_states)]
            last = _direction(call, x, y.at(2, direction * hidden, hidden), layer, direction, states)
            for final, state in zip(finals, last, strict=True):
                copied(call.program, call.name, state, final.pick(0, layer).pick(0, direction))
        x = y
    return [x, *finals][: len(call.output_shapes)]


def _direction(call: Call, x: Value, y: Value, layer: int, direction: int, states: list[Value]) -> list[Value]:
    """All steps of one direction of a layer; their results go into y."""
    n_steps, _, n_inputs = x.shape
    first = 3 if call.name == "LSTM" else 2
    weight = (call[first] if layer == 0 else call[first + 1].pick(0, layer - 1)).pick(0, direction)
    n_gates, hidden = _GATES[call.name], states[0].shape[-1]
    weight = reshaped(call.program, call.name, weight, (n_gates, hidden, n_inputs + hidden))
    bias = call.optional(first + 2)
    own_bias = None if bias is None else bias.pick(0, layer).pick(0, direction)
    parts = [weight.at(2, 0, n_inputs), weight.at(2, n_inputs, hidden)]
    for number in range(n_steps):
        place = n_steps - 1 - number if direction else number
        states = _step(call, x.pick(0, place), states, parts, own_bias)
        copied(call.program, call.name, states[0], y.pick(0, place))
    return states


def _step(call: Call, x: Value, states: list[Value], parts: list[Value], bias: Value | None) -> list[Value]:
    """Return the states after one step."""
    from_input, from_state = (
        matmul(call, value.insert(0), part.transpose((0, 2, 1))) for value, part in zip((x, states[0]), parts, strict=True)
    )  # (gates, batch, hidden)
    if bias is not None:
        bias = bias.insert(0) if call.name == "RNN" else bias
        given = bias.at(0, 0, from_input.shape[0])
        from_input = call.map("a + b", from_input, given.insert(1))
    if call.name == "GRU":
        return [_gru(call, from_input, from_state, states[0], None if bias is None else bias.pick(0, 3))]
    total = call.map("a + b", from_input, from_state)
    if call.name == "RNN":
        expression = "tanhf(a)" if call.args["nonlinearity"] == "tanh" else "a < 0.0f ? 0.0f : a"
        return [call.map(expression, total.pick(0, 0))]
    input_gate, forget_gate, output_gate = (call.map(SIGMOID, total.pick(0, gate)) for gate in (0, 1, 3))
    candidate = total.pick(0, 2)
    c = call.map("a * b + c * tanhf(d)", forget_gate, states[1], input_gate, candidate)
    return [call.map("a * tanhf(b)", output_gate, c), c]


def _gru(call: Call, from_input: Value, from_state: Value, h: Value, bias: Value | None) -> Value:
    reset, update = (
        call.map("1.0f / (1.0f + expf(-(a + b)))", from_input.pick(0, gate), from_state.pick(0, gate)) for gate in (0, 1)
    )
    inner = from_state.pick(0, 2)
    inner = inner if bias is None else call.map("a + b", inner, bias)
    candidate = call.map("tanhf(a + b * c)", from_input.pick(0, 2), reset, inner)
    return call.map("(1.0f - a) * b + a * c", update, candidate, h)
