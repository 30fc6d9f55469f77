"""Shape and gradient rules of recurrent networks over sequences, and of packing sequences of different lengths.

The gradient rule runs the network again, in functions that have gradients themselves, keeps what each step computed,
and then walks back through the steps (Werbos, 1990, "Backpropagation through time"). The three networks differ in one
`_Cell`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.choosing import chosen
from nn_core.operators.rules.registry import GradientCall, gradient, shape_rule
from nn_core.typing import Shape


@shape_rule("RNN")
def rnn_shape(
    x: Shape, h: Shape, weight_l0: Shape, weight: Shape | None, bias: Shape | None, *, nonlinearity: str, **args: Any
) -> tuple[Shape, ...]:
    """Return outputs, last states, trace, masks; weights have no axis for gates."""
    _check(x, (("h", h),), weight_l0, weight, bias, (), (), **args)
    return _outputs(x, (h,), 1, **args)


@shape_rule("LSTM")
def lstm_shape(
    x: Shape, h: Shape, c: Shape, weight_l0: Shape, weight: Shape | None, bias: Shape | None, **args: Any
) -> tuple[Shape, ...]:
    """Return outputs, last states, trace, masks."""
    _check(x, (("h", h), ("c", c)), weight_l0, weight, bias, (4,), (4,), **args)
    return _outputs(x, (h, c), 6, **args)


@shape_rule("GRU")
def gru_shape(
    x: Shape, h: Shape, weight_l0: Shape, weight: Shape | None, bias: Shape | None, **args: Any
) -> tuple[Shape, ...]:
    """Return outputs, last states, trace, masks; the bias has a part more than the weights."""
    _check(x, (("h", h),), weight_l0, weight, bias, (3,), (4,), **args)
    return _outputs(x, (h,), 5, **args)


def _check(
    x: Shape,
    states: Sequence[tuple[str, Shape]],
    weight_l0: Shape,
    weight: Shape | None,
    bias: Shape | None,
    gates: Shape,
    bias_gates: Shape,
    *,
    num_layers: int,
    bidirectional: bool,
    **_: Any,
) -> None:
    if len(x) != 3 or not x[0]:
        raise ShapeError(f"x must have shape (T, B, I) with at least one step, got {x}")
    n_directions = 2 if bidirectional else 1
    _check_states(x, states, num_layers, n_directions)
    n_hidden = states[0][1][3]
    if (weight is None) != (num_layers == 1):
        given = "None" if weight is None else f"shape {weight}"
        raise ShapeError(f"weight must be given if and only if num_layers is above 1, got {given} for {num_layers}")
    expected: list[tuple[str, Shape | None, Shape]] = [
        ("weight_l0", weight_l0, (n_directions, *gates, n_hidden, x[2] + n_hidden)),
        ("weight", weight, (num_layers - 1, n_directions, *gates, n_hidden, (n_directions + 1) * n_hidden)),
        ("bias", bias, (num_layers, n_directions, *bias_gates, n_hidden)),
    ]
    for name, shape, wanted in expected:
        if shape is not None and shape != wanted:
            raise ShapeError(f"{name} must have shape {wanted}, got {shape}")


def _check_states(x: Shape, states: Sequence[tuple[str, Shape]], num_layers: int, n_directions: int) -> None:
    for name, state in states:
        if state[:3] != (num_layers, n_directions, x[1]) or len(state) != 4 or state[3] != states[0][1][3]:
            n_hidden = states[0][1][3] if len(states[0][1]) == 4 else "H"
            raise ShapeError(f"{name} must have shape ({num_layers}, {n_directions}, {x[1]}, {n_hidden}), got {state}")


def _outputs(
    x: Shape,
    states: Sequence[Shape],
    n_saved: int,
    *,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    training: bool,
) -> tuple[Shape, ...]:
    n_directions, n_hidden = 2 if bidirectional else 1, states[0][3]
    n_outputs = n_hidden * n_directions
    trace = (num_layers, n_directions, *x[:2], n_saved * n_hidden) if training else (0,)
    masks = (num_layers - 1, *x[:2], n_outputs) if dropout and training and num_layers > 1 else (0,)
    return ((*x[:2], n_outputs), *states, trace, masks)


class _Cell(Protocol):
    """One step of a network. Products with the weights are (gates, B, H), states are (B, H)."""

    def forward(self, F: Any, from_input: Any, from_state: Any, states: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        """Return the new states (the output is the first), and what `backward` needs."""
        ...

    def backward(self, F: Any, saved: Any, dstates: Sequence[Any]) -> tuple[Any, Any, Sequence[Any]]:
        """Gradients of the two products, and of the states as far as they do not come through the product."""
        ...


@dataclass(frozen=True)
class _Elman:
    nonlinearity: str

    def forward(self, F: Any, from_input: Any, from_state: Any, states: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        (total,) = _entries(F, from_input + from_state)
        h = F.tanh(total) if self.nonlinearity == "tanh" else F.relu(total)
        return (h,), h

    def backward(self, F: Any, saved: Any, dstates: Sequence[Any]) -> tuple[Any, Any, Sequence[Any]]:
        if self.nonlinearity == "tanh":
            through = dstates[0] * (1.0 - saved * saved)
        else:
            through = chosen(F, F.greater_scalar(saved, val=0.0), dstates[0])
        dtotal = F.stack(through, axis=0)
        return dtotal, dtotal, (None,)


class _LSTM:
    def forward(self, F: Any, from_input: Any, from_state: Any, states: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        i, f, g, o = _entries(F, from_input + from_state)
        i, f, g, o = F.sigmoid(i), F.sigmoid(f), F.tanh(g), F.sigmoid(o)
        c = f * states[1] + i * g
        shown = F.tanh(c)
        return (o * shown, c), (i, f, g, o, shown, states[1])

    def backward(self, F: Any, saved: Any, dstates: Sequence[Any]) -> tuple[Any, Any, Sequence[Any]]:
        i, f, g, o, shown, old_c = saved
        dh, dc = dstates
        dc = dc + dh * o * (1.0 - shown * shown)
        dtotal = F.stack(
            dc * g * i * (1.0 - i), dc * old_c * f * (1.0 - f), dc * i * (1.0 - g * g), dh * shown * o * (1.0 - o),
            axis=0,
        )  # fmt: skip
        return dtotal, dtotal, (None, dc * f)


class _GRU:
    def forward(self, F: Any, from_input: Any, from_state: Any, states: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        r_input, z_input, n_input = _entries(F, from_input)
        r_state, z_state, n_state = _entries(F, from_state)
        r, z = F.sigmoid(r_input + r_state), F.sigmoid(z_input + z_state)
        n = F.tanh(n_input + r * n_state)
        return ((1.0 - z) * n + z * states[0],), (r, z, n, n_state, states[0])

    def backward(self, F: Any, saved: Any, dstates: Sequence[Any]) -> tuple[Any, Any, Sequence[Any]]:
        r, z, n, n_state, old_h = saved
        (dh,) = dstates
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dr, dz = dn * n_state * r * (1.0 - r), dh * (old_h - n) * z * (1.0 - z)
        return F.stack(dr, dz, dn, axis=0), F.stack(dr, dz, dn * r, axis=0), (dh * z,)


def _entries(F: Any, x: Any) -> Sequence[Any]:
    """Return the entries along the first axis."""
    parts = F.split(x, axis=0)
    return parts if isinstance(parts, (tuple, list)) else (parts,)


@gradient("RNN")
def rnn(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Weights and bias get an axis for their only gate."""
    weight_l0, weight, bias = _with_gate(F, g.weight_l0, 1), _with_gate(F, g.weight, 2), _with_gate(F, g.bias, 2)
    dx, (dh,), dweight_l0, dweight, dbias, _ = _through_time(
        F, g, _Elman(g.nonlinearity), (g.h,), weight_l0, weight, bias, None
    )
    return dx, dh, _like(F, dweight_l0, g.weight_l0), _like(F, dweight, g.weight), _like(F, dbias, g.bias)


def _with_gate(F: Any, array: Any, axis: int) -> Any:
    return None if array is None else F.reshape(array, shape=(*array.shape[:axis], 1, *array.shape[axis:]))


def _like(F: Any, array: Any, other: Any) -> Any:
    return None if array is None else F.reshape(array, shape=tuple(other.shape))


@gradient("LSTM")
def lstm(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Four gates and two states."""
    dx, (dh, dc), dweight_l0, dweight, dbias, _ = _through_time(F, g, _LSTM(), (g.h, g.c), g.weight_l0, g.weight, g.bias, None)
    return dx, dh, dc, dweight_l0, dweight, dbias


@gradient("GRU")
def gru(F: Any, g: GradientCall) -> tuple[Any, ...]:
    """Three gates; the last part of the bias belongs to the product with the state."""
    input_bias = state_bias = None
    if g.bias is not None:
        input_bias, state_bias = _part(F, g.bias, 2, 0, 3), _part(F, g.bias, 2, 3, 4)
        state_bias = F.pad(state_bias, pad_width=(2, 0, 0, 0))
    dx, (dh,), dweight_l0, dweight, dinput_bias, dstate_bias = _through_time(
        F, g, _GRU(), (g.h,), g.weight_l0, g.weight, input_bias, state_bias
    )
    dbias = None
    if dinput_bias is not None:
        dbias = F.concatenate(dinput_bias, _part(F, dstate_bias, 2, 2, 3), axis=2)
    return dx, dh, dweight_l0, dweight, dbias


def _part(F: Any, x: Any, axis: int, start: int, stop: int) -> Any:
    """Return the elements from start to stop on one axis."""
    starts, stops = [0] * x.ndim, list(x.shape)
    starts[axis], stops[axis] = start, stop
    return F.slice(x, start=tuple(starts), stop=tuple(stops), step=(1,) * x.ndim)


def _at(F: Any, x: Any, *place: int) -> Any:
    """x[place]."""
    rest = tuple(x.shape)[len(place) :]
    start, stop = (*place, *[0] * len(rest)), (*(n + 1 for n in place), *rest)
    return F.reshape(F.slice(x, start=start, stop=stop, step=(1,) * x.ndim), shape=rest)


class _Pass:
    """One layer in one direction: the forward pass with all that is kept for the backward pass, and that pass."""

    def __init__(
        self,
        F: Any,
        cell: _Cell,
        x: Any,
        states: Sequence[Any],
        weight: Any,
        biases: Sequence[Any],
        *,
        is_backwards: bool,
    ) -> None:
        input_bias, state_bias = biases
        self._F, self._cell, self._x = F, cell, x
        self._n_gates, self._n_hidden, width = weight.shape
        self._n_inputs = x.shape[2]
        self._input_weight = _part(F, weight, 2, 0, self._n_inputs)
        self._state_weight = _part(F, weight, 2, self._n_inputs, width)
        self._order = range(x.shape[0])[:: -1 if is_backwards else 1]
        self._old_h: dict[int, Any] = {}
        self._saved: dict[int, Any] = {}
        outputs: dict[int, Any] = {}
        from_input = self._from_input(input_bias)
        for t in self._order:
            self._old_h[t] = states[0]
            from_state = F.batch_matmul(states[0], self._state_weight, transpose_b=True)
            if state_bias is not None:
                from_state = from_state + F.reshape(state_bias, shape=(self._n_gates, 1, self._n_hidden))
            states, self._saved[t] = cell.forward(F, from_input[t], from_state, states)
            outputs[t] = states[0]
        self.output = F.stack(*(outputs[t] for t in range(x.shape[0])), axis=0)

    def _from_input(self, bias: Any) -> Sequence[Any]:
        """For each step the products of all gates with the input, (gates, B, H)."""
        F, (n_steps, n_batch, n_inputs) = self._F, self._x.shape
        rows = F.reshape(self._x, shape=(n_steps, 1, n_batch, n_inputs))
        products = F.batch_matmul(rows, self._input_weight, transpose_b=True)
        if bias is not None:
            products = products + F.reshape(bias, shape=(self._n_gates, 1, self._n_hidden))
        return _entries(F, products)

    def back(self, dy: Any, dstates: Sequence[Any]) -> tuple[Any, Sequence[Any], Any, Any, Any]:
        """Gradients of x, the first states, the weight, and the two biases."""
        F = self._F
        steps = _entries(F, dy)
        dinputs, dproducts = {}, {}
        for t in reversed(self._order):
            dstates = (dstates[0] + steps[t], *dstates[1:])
            dinputs[t], dproducts[t], dold = self._cell.backward(F, self._saved[t], dstates)
            dh = F.sum(F.batch_matmul(dproducts[t], self._state_weight), axes=(0,), keep_dims=False)
            dstates = (dh if dold[0] is None else dh + dold[0], *dold[1:])
        dinput, dproduct, old_h = (
            F.stack(*(found[t] for t in range(self._x.shape[0])), axis=0) for found in (dinputs, dproducts, self._old_h)
        )
        dx = F.sum(F.batch_matmul(dinput, self._input_weight), axes=(1,), keep_dims=False)
        dweight = F.concatenate(self._weight_gradient(dinput, self._x), self._weight_gradient(dproduct, old_h), axis=2)
        dinput_bias, dstate_bias = (F.sum(part, axes=(0, 2), keep_dims=False) for part in (dinput, dproduct))
        return dx, dstates, dweight, dinput_bias, dstate_bias

    def _weight_gradient(self, dproduct: Any, factor: Any) -> Any:
        """Return the sum over steps (T, gates, B, H) and samples of the outer products with a (T, B, n) factor."""
        F, n_rows = self._F, prod(factor.shape[:2])
        columns = F.reshape(F.transpose(dproduct, axes=(1, 0, 2, 3)), shape=(self._n_gates, n_rows, self._n_hidden))
        rows = F.reshape(factor, shape=(1, n_rows, factor.shape[2]))
        return F.batch_matmul(columns, rows, transpose_a=True)


def _through_time(
    F: Any,
    g: GradientCall,
    cell: _Cell,
    states: Sequence[Any],
    weight_l0: Any,
    weight: Any,
    input_bias: Any,
    state_bias: Any,
) -> tuple[Any, ...]:
    """Gradients of x, of all states, of the two weights and of the two biases."""
    n_layers, n_directions = g.num_layers, 2 if g.bidirectional else 1
    biases = (input_bias, state_bias)
    passes = _passes(F, g, cell, states, (weight_l0, weight), biases)
    dx, found = _back_through_layers(F, g, passes, states[0].shape[3])
    dstates = tuple(_gathered(F, [dfirst[n] for dfirst, *_ in found], (n_layers, n_directions)) for n in range(len(states)))
    dweights, *dbiases = (list(parts) for parts in zip(*(rest for _, *rest in found), strict=True))
    dweight_l0 = _gathered(F, dweights[:n_directions], (n_directions,))
    dweight = _gathered(F, dweights[n_directions:], (n_layers - 1, n_directions)) if weight is not None else None
    dgiven = (
        None if bias is None else _gathered(F, parts, (n_layers, n_directions))
        for bias, parts in zip(biases, dbiases, strict=True)
    )
    return dx, dstates, dweight_l0, dweight, *dgiven


def _passes(
    F: Any, g: GradientCall, cell: _Cell, states: Sequence[Any], weights: tuple[Any, Any], biases: tuple[Any, Any]
) -> list[list[_Pass]]:
    """Each layer in each direction, computed again."""
    n_layers, n_directions = g.num_layers, 2 if g.bidirectional else 1
    weight_l0, weight = weights
    passes: list[list[_Pass]] = []
    x = g.x
    for layer in range(n_layers):
        row = []
        for direction in range(n_directions):
            first = [_at(F, state, layer, direction) for state in states]
            matrices = _at(F, weight, layer - 1, direction) if layer else _at(F, weight_l0, direction)
            own = [None if bias is None else _at(F, bias, layer, direction) for bias in biases]
            row.append(_Pass(F, cell, x, first, matrices, own, is_backwards=direction == 1))
        passes.append(row)
        if layer < n_layers - 1:
            x = _masked(F, g, F.concatenate(*(one.output for one in row), axis=2), layer)
    return passes


def _back_through_layers(F: Any, g: GradientCall, passes: Sequence[Sequence[_Pass]], n_hidden: int) -> tuple[Any, list[Any]]:
    """Return the gradient of x, and what each layer gives in each direction: gradients of first states, weight and biases."""
    found: list[Any] = []
    dy = g.grads[0]
    for layer in reversed(range(g.num_layers)):
        dx, rests = None, []
        for direction, one in enumerate(passes[layer]):
            part = _part(F, dy, 2, direction * n_hidden, (direction + 1) * n_hidden)
            dlast = [_at(F, dstate, layer, direction) for dstate in g.grads[1:]]
            through, *rest = one.back(part, dlast)
            rests.append(rest)
            dx = through if dx is None else dx + through
        found = rests + found
        dy = _masked(F, g, dx, layer - 1) if layer else dx
    return dy, found


def _masked(F: Any, g: GradientCall, x: Any, layer: int) -> Any:
    """`x` under the mask of the dropout after a layer, if there was one."""
    return x * _at(F, g.mask, layer) if len(g.mask.shape) > 1 else x


def _gathered(F: Any, parts: Sequence[Any], leading: Shape) -> Any:
    return F.reshape(F.stack(*parts, axis=0), shape=(*leading, *parts[0].shape))


@shape_rule("PackPaddedSequence")
def pack_padded_sequence_shape(padded_sequence: Shape, lengths: Shape, *, batch_first: bool) -> tuple[Shape, ...]:
    """Return the first axis depends on the lengths: 0 until they are known."""
    if len(padded_sequence) < 2:
        raise ShapeError(f"padded_sequence must have at least 2 axes, got {len(padded_sequence)}")
    n_steps, n_batch = padded_sequence[:2][:: -1 if batch_first else 1]
    if lengths != (n_batch,):
        raise ShapeError(f"lengths must have one value for each sequence, shape ({n_batch},), got {lengths}")
    return (0, *padded_sequence[2:]), (n_steps,)


@gradient("PackPaddedSequence")
def pack_padded_sequence(F: Any, g: GradientCall) -> tuple[Any, None]:
    """Put each element back to its place; the padding gets zero."""
    shape = g.padded_sequence.shape
    n_steps = shape[1] if g.batch_first else shape[0]
    return _steps_first(F, F.bool_scatter(g.grad, _is_valid(F, g.lengths, n_steps)), g.batch_first), None


def _is_valid(F: Any, lengths: Any, n_steps: int) -> Any:
    """(T, B): 1 where a sequence has that step."""
    steps = F.reshape(F.arange(start=0.0, stop=float(n_steps)), shape=(n_steps, 1))
    return F.greater(F.reshape(lengths, shape=(1, lengths.shape[0])), steps)


def _steps_first(F: Any, x: Any, batch_first: bool) -> Any:
    """Exchange the first two axes if `batch_first`."""
    return F.transpose(x, axes=(1, 0, *range(2, x.ndim))) if batch_first else x


@shape_rule("PadPackedSequence")
def pad_packed_sequence_shape(
    packed_sequence: Shape, batch_sizes: Shape, *, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Shape, ...]:
    """Return the number of sequences depends on the batch sizes: 0 until they are known."""
    if not packed_sequence:
        raise ShapeError("packed_sequence must have at least one axis, got 0-d")
    if len(batch_sizes) != 1 or not batch_sizes[0]:
        raise ShapeError(f"batch_sizes must have one value for each step, got shape {batch_sizes}")
    (n_steps,) = batch_sizes
    if 0 <= total_length < n_steps:
        raise ArgumentError(f"total_length must be at least the number of steps {n_steps}, or -1, got {total_length}")
    n_steps = max(n_steps, total_length)
    return ((0, n_steps) if batch_first else (n_steps, 0)) + packed_sequence[1:], (0,)


@gradient("PadPackedSequence")
def pad_packed_sequence(F: Any, g: GradientCall) -> tuple[Any, None]:
    """Take the elements of the sequences, leave the padding."""
    dy = _steps_first(F, g.grad, g.batch_first)
    return F.bool_gather(dy, _is_valid(F, g.lengths, dy.shape[0])), None
