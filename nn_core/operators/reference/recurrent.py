"""Reference kernels of recurrent networks over sequences, and of packing sequences of different lengths.

Shapes: x (T, B, I), states (layers, directions, B, H), weights (directions, gates, H, I + H) whose last axis is first
the input, then the state. The inputs of all steps are multiplied at once; what depends on the state runs step by step.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

from nn_core.errors import ArgumentError
from nn_core.operators.reference import philox
from nn_core.operators.reference.precision import widen
from nn_core.operators.reference.registry import kernel
from nn_core.typing import Array, Namespace

#: ``step(from_input, from_state, states) -> (states, saved)``: the products of all gates, (B, gates, H), and the state
#: arrays; `saved` goes to the trace.
_Step: TypeAlias = Callable[[Array, Array, tuple[Array, ...]], tuple[tuple[Array, ...], tuple[Array, ...]]]


@kernel("RNN")
def rnn(
    xp: Namespace,
    x: Array,
    h: Array,
    weight_l0: Array,
    weight: Array | None,
    bias: Array | None,
    *,
    nonlinearity: str,
    **args: Any,
) -> tuple[Array, ...]:
    """h' = f(W x + U h + b) (Elman, 1990)."""
    weight_l0 = xp.expand_dims(weight_l0, axis=1)
    weight = None if weight is None else xp.expand_dims(weight, axis=2)
    bias = None if bias is None else xp.expand_dims(bias, axis=2)
    return _layers(xp, partial(_elman_step, xp, nonlinearity), x, (h,), weight_l0, weight, bias, None, **args)


def _elman_step(
    xp: Namespace, nonlinearity: str, from_input: Array, from_state: Array, states: tuple[Array, ...]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    total = (from_input + from_state)[:, 0]
    h = xp.tanh(total) if nonlinearity == "tanh" else xp.maximum(total, 0)
    return (h,), (h,)


@kernel("LSTM")
def lstm(
    xp: Namespace,
    x: Array,
    h: Array,
    c: Array,
    weight_l0: Array,
    weight: Array | None,
    bias: Array | None,
    **args: Any,
) -> tuple[Array, ...]:
    """Gates i, f, g, o; c' = f c + i g, h' = o tanh(c') (Hochreiter and Schmidhuber, 1997; Gers et al., 2000)."""
    return _layers(xp, partial(_lstm_step, xp), x, (h, c), weight_l0, weight, bias, None, **args)


def _lstm_step(
    xp: Namespace, from_input: Array, from_state: Array, states: tuple[Array, ...]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    total = from_input + from_state
    input_gate, forget_gate, output_gate = (_sigmoid(xp, total[:, gate]) for gate in (0, 1, 3))
    candidate = xp.tanh(total[:, 2])
    c = forget_gate * states[1] + input_gate * candidate
    h = output_gate * xp.tanh(c)
    return (h, c), (input_gate, forget_gate, candidate, output_gate, c, h)


@kernel("GRU")
def gru(
    xp: Namespace, x: Array, h: Array, weight_l0: Array, weight: Array | None, bias: Array | None, **args: Any
) -> tuple[Array, ...]:
    """Gates r, z; n = tanh(W x + b + r (U h + b')), h' = (1 - z) n + z h (Cho et al., 2014)."""
    input_bias = state_bias = None
    if bias is not None:
        input_bias, zeros = bias[:, :, :3], xp.zeros_like(bias[:, :, :2])
        state_bias = xp.concat((zeros, bias[:, :, 3:]), axis=2)
    return _layers(xp, partial(_gru_step, xp), x, (h,), weight_l0, weight, input_bias, state_bias, **args)


def _gru_step(
    xp: Namespace, from_input: Array, from_state: Array, states: tuple[Array, ...]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    reset = _sigmoid(xp, from_input[:, 0] + from_state[:, 0])
    update = _sigmoid(xp, from_input[:, 1] + from_state[:, 1])
    candidate = xp.tanh(from_input[:, 2] + reset * from_state[:, 2])
    h = (1 - update) * candidate + update * states[0]
    return (h,), (reset, update, candidate, from_state[:, 2], h)


def _sigmoid(xp: Namespace, x: Array) -> Array:
    return (xp.tanh(x / 2) + 1) / 2


def _layers(
    xp: Namespace,
    step: _Step,
    x: Array,
    states: tuple[Array, ...],
    weight_l0: Array,
    weight: Array | None,
    input_bias: Array | None,
    state_bias: Array | None,
    *,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    training: bool,
    key: Array,
) -> tuple[Array, ...]:
    """Output of the last layer, last states, the trace, and the masks of the dropout between layers."""
    x, weight_l0 = widen(xp, x), widen(xp, weight_l0)
    weight = None if weight is None else widen(xp, weight)
    n_directions = 2 if bidirectional else 1
    n_steps, n_batch = x.shape[:2]
    shape = (num_layers - 1, n_steps, n_batch, n_directions * states[0].shape[-1])
    masks = _masks(xp, key, shape, dropout if training else 0.0, x.dtype)
    last: list[tuple[Array, ...]] = []
    traces: list[Array] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(n_directions):
            at = (layer, direction)
            output, final, trace = _run(
                xp,
                step,
                x,
                tuple(widen(xp, state[at]) for state in states),
                _weight_at(weight_l0, weight, layer, direction),
                [None if bias is None else widen(xp, bias[at]) for bias in (input_bias, state_bias)],
                direction == 1,
            )
            outputs.append(output)
            traces.append(trace)
            last.append(final)
        x = xp.concat(outputs, axis=-1)
        if masks.ndim > 1 and layer < num_layers - 1:
            x = x * masks[layer]
    return (x, *_last_states(xp, last, states), _stacked_traces(xp, traces if training else [], num_layers, x.dtype), masks)


def _weight_at(weight_l0: Array, weight: Array | None, layer: int, direction: int) -> Array:
    return weight_l0[direction] if weight is None or layer == 0 else weight[layer - 1, direction]


def _last_states(xp: Namespace, last: list[tuple[Array, ...]], states: tuple[Array, ...]) -> Iterator[Array]:
    """For each kind of state those after the last step, of all layers and directions, in the shape of the first ones."""
    for own, first in zip(zip(*last, strict=True), states, strict=True):
        yield xp.reshape(xp.stack(own), first.shape)


def _stacked_traces(xp: Namespace, traces: list[Array], num_layers: int, dtype: Any) -> Array:
    """Return the traces by layer and direction; nothing where there are none."""
    if not traces:
        return xp.zeros((0,), dtype=dtype)
    return xp.reshape(xp.stack(traces), (num_layers, len(traces) // num_layers, *traces[0].shape))


def _masks(xp: Namespace, key: Array, shape: tuple[int, ...], dropout: float, dtype: Any) -> Array:
    """Return the factors of the dropout between layers; nothing where there is none."""
    if not dropout or not shape[0]:
        return xp.zeros((0,), dtype=dtype)
    is_kept = xp.reshape(philox.uniform(xp, key, prod(shape)), shape) >= dropout
    return (is_kept / (1 - dropout)).astype(dtype)


def _run(
    xp: Namespace,
    step: _Step,
    x: Array,
    states: tuple[Array, ...],
    weight: Array,
    biases: Sequence[Array | None],
    is_backwards: bool,
) -> tuple[Array, tuple[Array, ...], Array]:
    """One layer in one direction: the outputs in the order of x, the last states, and the trace."""
    n_gates, n_hidden, _ = weight.shape
    n_inputs = x.shape[-1]
    input_bias, state_bias = biases
    flat = xp.reshape(weight, (n_gates * n_hidden, -1))
    from_input = xp.reshape(xp.matmul(x, flat[:, :n_inputs].T), (*x.shape[:2], n_gates, n_hidden))
    from_input = from_input if input_bias is None else from_input + input_bias
    steps = []
    for t in reversed(range(x.shape[0])) if is_backwards else range(x.shape[0]):
        from_state = xp.reshape(xp.matmul(states[0], flat[:, n_inputs:].T), (x.shape[1], n_gates, n_hidden))
        from_state = from_state if state_bias is None else from_state + state_bias
        states, saved = step(from_input[t], from_state, states)
        steps.append(xp.concat(saved, axis=-1))
    trace = xp.stack(steps[::-1] if is_backwards else steps)
    return trace[..., -n_hidden:], states, trace


@kernel("PackPaddedSequence")
def pack_padded_sequence(xp: Namespace, padded_sequence: Array, lengths: Array, *, batch_first: bool) -> tuple[Array, Array]:
    """Return the valid elements, one step after the other, and how many sequences each step has."""
    x = xp.moveaxis(padded_sequence, 0, 1) if batch_first else padded_sequence
    if bool(xp.any(lengths[1:] > lengths[:-1])):
        raise ArgumentError(f"pack_padded_sequence: lengths must not increase, got {lengths.tolist()}")
    # Nothing packed would tell of a sequence without elements among others; all are 0 in networks built before their values.
    shortest = 1 if bool(xp.any(lengths > 0)) else 0
    if bool(xp.any((lengths < shortest) | (lengths > x.shape[0]))):
        raise ArgumentError(f"pack_padded_sequence: lengths must be from 1 to the {x.shape[0]} steps, got {lengths.tolist()}")
    is_valid = xp.arange(x.shape[0])[:, None] < lengths
    return x[is_valid], xp.sum(is_valid, axis=1)


@kernel("PadPackedSequence")
def pad_packed_sequence(
    xp: Namespace,
    packed_sequence: Array,
    batch_sizes: Array,
    *,
    batch_first: bool,
    padding_value: float,
    total_length: int,
) -> tuple[Array, Array]:
    """Return the sequences next to each other, filled up to one length, and their lengths."""
    n_sequences, n_steps = int(xp.max(batch_sizes)), batch_sizes.shape[0]
    if bool(xp.any(batch_sizes[1:] > batch_sizes[:-1])) or int(xp.sum(batch_sizes)) != packed_sequence.shape[0]:
        raise ArgumentError(
            "pad_packed_sequence: batch_sizes must not increase and sum to the first length of packed_sequence, "
            f"{packed_sequence.shape[0]}, got {batch_sizes.tolist()}"
        )
    is_valid = xp.arange(n_sequences) < batch_sizes[:, None]
    x = xp.full((n_steps, n_sequences, *packed_sequence.shape[1:]), padding_value, dtype=packed_sequence.dtype)
    x[is_valid] = packed_sequence
    if total_length > n_steps:
        rest = (total_length - n_steps, *x.shape[1:])
        x = xp.concat((x, xp.full(rest, padding_value, dtype=x.dtype)), axis=0)
    return (xp.moveaxis(x, 0, 1) if batch_first else x), xp.sum(is_valid, axis=0)
