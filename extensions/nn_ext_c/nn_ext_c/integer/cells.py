"""The arithmetic of recurrent cells in integers: gates from a table, and states of more digits than the outputs have."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from nn_ext_c.integer.network import Node
from nn_ext_c.integer.numbers import HIGH, LOW, Array, Scale, clamped, round_half_away, shifted

#: Gates of a cell, in the order of the weights.
GATES: Final = {"LSTM": 4, "GRU": 3}
#: The gate that is a hyperbolic tangent, 2 sigmoid(2 a) - 1.
CANDIDATE: Final = 2
#: Binary digits after the point of what goes into a gate, of gates and states, and of places between two entries of the table.
INPUT_BITS: Final = 12
STATE_BITS: Final = 15
STEP_BITS: Final = 9
#: The largest number that goes into a gate; the sigmoid of it is 1 - 2 ** -11.
LARGEST: Final = 2**15 - 1
#: States stay below 2 ** 31: their largest number before the first step, and the steps, each of which adds at most 1.
FIRST_STATE: Final = 2**30
STEPS: Final = 2**14
#: The sigmoid of 0, 1/8, ... 8.
TABLE: Final = round_half_away(2**STATE_BITS / (1 + np.exp(-np.arange(65) / 8))).astype(np.int64)


def sigmoid(a: Array) -> Array:
    """Return the sigmoid of numbers, from a straight line between two entries of the table."""
    size = np.minimum(np.abs(a), LARGEST)
    place, part = size >> STEP_BITS, size & (2**STEP_BITS - 1)
    low, high = TABLE[place], TABLE[place + 1]
    found = low + (((high - low) * part + 2 ** (STEP_BITS - 1)) >> STEP_BITS)
    return np.asarray(np.where(a < 0, 2**STATE_BITS - found, found))


def _tanh(a: Array) -> Array:
    return 2 * sigmoid(a) - 2**STATE_BITS


def run_recurrent(node: Node, inputs: Sequence[Array], scales: Sequence[Scale]) -> list[Array]:
    """Return the results of all steps, and the last cell state if it is wanted, as int8.

    Args:
        node: of kind "recurrent".
        inputs: sequences, and the states before the first step that are not zeros, as distances from the integer for 0.
        scales: of the results.
    """
    data = node.data
    x, given = inputs[0], dict(zip(data["states"], inputs[1:], strict=True))
    y = np.zeros((*x.shape[:2], data["weight"].shape[1]), np.int64)
    h = given.get("h", np.zeros(y.shape[1:], np.int64))
    first = given.get("c" if data["cell"] == "LSTM" else "h", np.zeros(y.shape[1:], np.int64))
    multiplier, shift = data["start"]
    state = np.clip(shifted(first * multiplier, shift), -FIRST_STATE, FIRST_STATE)
    step = _lstm if data["cell"] == "LSTM" else _gru
    for t in _order(len(x), data["reverse"]):
        result, state = step(node, x[t], h, state)
        multiplier, shift = data["result"]
        y[t] = clamped(shifted(result * multiplier, shift) + scales[0].zero, LOW, HIGH)
        h = y[t] - scales[0].zero
    if data["last"] is None:
        return [y]
    multiplier, shift = data["last"]
    return [y, clamped(shifted(state * multiplier, shift) + scales[1].zero, LOW, HIGH)]


def _order(count: int, is_reversed: bool) -> Iterator[int]:
    return reversed(range(count)) if is_reversed else iter(range(count))


def _totals(node: Node, x: Array, h: Array) -> tuple[Array, Array]:
    """Return the inner products of each gate with x, to which the bias is added, and with the state before."""
    weight, bias = node.data["weight"], node.data["bias"]
    from_input = np.einsum("bk,ghk->gbh", x, weight[:, :, : x.shape[1]]) + bias[: len(weight), None]
    from_state = np.einsum("bk,ghk->gbh", h, weight[:, :, x.shape[1] :])
    return from_input, from_state


def _lstm(node: Node, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    totals = sum(_totals(node, x, h))
    i, f, g, o = shifted(totals * node.data["multiplier"][:, None], node.data["shift"])
    c = shifted(sigmoid(f) * c + sigmoid(i) * _tanh(g), STATE_BITS)
    return sigmoid(o) * _tanh(shifted(c, STATE_BITS - INPUT_BITS - 1)), c


def _gru(node: Node, x: Array, h: Array, state: Array) -> tuple[Array, Array]:
    data = node.data
    from_input, from_state = _totals(node, x, h)
    multiplier = data["multiplier"][:, None]
    r, z = sigmoid(shifted((from_input[:2] + from_state[:2]) * multiplier[:2], data["shift"]))
    inner = shifted((from_state[2] + data["bias"][3]) * multiplier[2], data["shift"])
    n = _tanh(shifted(from_input[2] * multiplier[2], data["shift"]) + shifted(inner * r, STATE_BITS))
    state = shifted((2**STATE_BITS - z) * n + z * state, STATE_BITS)
    return state, state
