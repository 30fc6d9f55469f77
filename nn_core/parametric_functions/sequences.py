"""Helpers of recurrent layers: initial states, the order of axes, sequences of different lengths."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import nn_core.functions as F
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import checked_count, require_axes
from nn_core.errors import ArgumentError, ShapeError
from nn_core.variable import Variable

#: Added to a gate, it makes the sigmoid 0 or 1 to the last bit.
_SHUT: Final = 1e4

#: A layer in one direction: sequence, states, weight and bias to outputs and last states.
Layer = Callable[[Any, Sequence[Any], Any, Any], Sequence[Any]]


def steps_first(function: str, x: Any, batch_first: bool) -> Any:
    """Return the sequences with the axis of time in front."""
    axes = ("batch", "length", "features") if batch_first else ("length", "batch", "features")
    require_axes(function, axes, x=x)
    return F.transpose(x, (1, 0, 2)) if batch_first else x


def initial_states(
    function: str, x: Any, states: dict[str, Any], num_layers: int, bidirectional: bool, hidden_size: int | None
) -> list[Any]:
    """Return the states, zeros for those that are None.

    Raises:
        ArgumentError: when all are None and the number of features of the state is not given.
        ShapeError: when `hidden_size` is not that of the states.
    """
    given = next((state for state in states.values() if state is not None), None)
    if given is not None:
        require_axes(
            function, ("layers", "directions", "batch", "features"), **{k: s for k, s in states.items() if s is not None}
        )
        if hidden_size not in (None, given.shape[3]):
            raise ShapeError(f"{function}: hidden_size must be the last length of h, got {hidden_size} and {given.shape[3]}")
        shape = given.shape
    elif hidden_size is None:
        raise ArgumentError(f"{function}: without h, hidden_size must be given, got None")
    else:
        n_directions = 2 if bidirectional else 1
        shape = (num_layers, n_directions, x.shape[1], checked_count(f"{function}: hidden_size", hidden_size))
    zeros = [F.constant(0.0, shape) if isinstance(x, Variable) else _array(x, np.zeros(shape, np.float32))]
    return [zeros[0] if state is None else state for state in states.values()]


def run_with_lengths(
    function: str,
    run: Layer,
    x: Any,
    states: Sequence[Any],
    weights: tuple[Any, Any, Any],
    lengths: Any,
    dropout: float,
) -> list[Any]:
    """Run a recurrent network over sequences of different lengths.

    Layers and directions run one by one. A backward direction begins at the last step of each sequence. Outputs after the
    last step are zeros, and the last states are those after it; without steps they are the initial ones.

    Args:
        function: Name of the layer, for errors.
        run: Runs one layer in one direction.
        x: Shape (T, B, I).
        states: Each of shape (layers, directions, B, H).
        weights: Of the first layer, of the others or None, and biases or None.
        lengths: Number of steps of each sequence. Shape (B,).
        dropout: Part of the outputs between layers that is dropped.
    """
    if lengths.shape != (x.shape[1],):
        raise ShapeError(f"{function}: lengths must have the shape {(x.shape[1],)}, got {lengths.shape}")
    first, further, bias = weights
    places = _Places(lengths, x.shape[0], x.shape[1])
    ends: list[list[Any]] = []
    for number in range(states[0].shape[0]):
        if number and dropout > 0:
            x = F.dropout(x, dropout)
        begin = [state[number : number + 1] for state in states]
        b = None if bias is None else bias[number : number + 1]
        x, last = _both_directions(run, x, begin, further[number - 1] if number else first, b, places)
        ends.append(last)
    return [x, *(F.reshape(F.concatenate(*of_state, axis=0), states[0].shape) for of_state in zip(*ends, strict=True))]


def _both_directions(
    run: Layer, x: Any, states: Sequence[Any], weight: Any, bias: Any, places: "_Places"
) -> tuple[Any, list[Any]]:
    """Return outputs and last states of one layer; the states, weights and biases have an axis of directions."""
    outputs, ends = [], []
    for direction in range(weight.shape[0]):
        own = slice(direction, direction + 1)
        begin = [state[:, own] for state in states]
        given = places.cleared(places.turned(x) if direction else x)
        y, *memory = _held(run, given, begin, weight[own], None if bias is None else bias[:, own], places)
        y = places.cleared(y)
        ends.append([places.last(y, begin[0]), *memory])
        outputs.append(places.turned(y) if direction else y)
    joined = [F.concatenate(*parts, axis=1) for parts in zip(*ends, strict=True)]
    return F.concatenate(*outputs, axis=2), joined


def _held(run: Layer, x: Any, states: Sequence[Any], weight: Any, bias: Any, places: "_Places") -> Sequence[Any]:
    """Return outputs and memory; that of LSTM keeps its value after the last step, as a further input shuts its gates."""
    if len(states) == 1:
        return run(x, states, weight, bias)[:1]
    shut = np.zeros((*weight.shape[:3], 1), np.float32)
    shut[:, 0], shut[:, 1] = -_SHUT, _SHUT  # the input's and the memory's gate
    n_inputs = x.shape[2]
    widened = F.concatenate(weight[..., :n_inputs], _array(x, shut), weight[..., n_inputs:], axis=3)
    y, _, c = run(F.concatenate(x, places.is_padding, axis=2), states, widened, bias)
    return y, c


class _Places:
    """The places of the steps of sequences of different lengths."""

    def __init__(self, lengths: Any, n_steps: int, n_batch: int) -> None:
        steps = _array(lengths, np.arange(n_steps, dtype=np.float32).reshape(1, n_steps))
        length = F.reshape(lengths, (n_batch, 1))
        is_padding = F.greater_equal(steps, length)  # (B, T)
        backwards = F.where(is_padding, F.broadcast(steps, (n_batch, n_steps)), length - 1 - steps)
        self.is_padding = F.reshape(F.transpose(is_padding, (1, 0)), (n_steps, n_batch, 1))
        self._backwards = backwards
        self._last = F.maximum_scalar(length - 1, 0.0)
        self._is_empty = F.reshape(F.less_equal_scalar(length, 0.0), (n_batch,))

    def cleared(self, x: Any) -> Any:
        """x of shape (T, B, E) with zeros for padding, whatever is there."""
        return F.bool_fill(x, F.broadcast(self.is_padding, x.shape), 0.0)

    def turned(self, x: Any) -> Any:
        """x of shape (T, B, E) with the steps of each sequence in the opposite order; padding stays."""
        return F.transpose(F.gather(F.transpose(x, (1, 0, 2)), self._backwards, axis=1, batch_dims=1), (1, 0, 2))

    def last(self, y: Any, initial: Any) -> Any:
        """Return the last step of each sequence, or the initial state where there is none; shape (1, 1, B, H)."""
        found = F.gather(F.transpose(y, (1, 0, 2)), self._last, axis=1, batch_dims=1)
        shape = (y.shape[1], y.shape[2])
        chosen = F.where(self._is_empty, F.reshape(initial, shape), F.reshape(found, shape))
        return F.reshape(chosen, (1, 1, *shape))


def _array(like: Any, values: np.ndarray[Any, Any]) -> Any:
    """`values` as what `like` is, a Variable or an NdArray."""
    return (NdArray if isinstance(like, NdArray) else Variable).from_numpy_array(values)
