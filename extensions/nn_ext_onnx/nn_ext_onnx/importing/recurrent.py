"""Recurrent networks: as functions of nn_core where these compute the same, else written out step by step."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, operator
from nn_ext_onnx.importing.values import UnsupportedError

_ACTIVATIONS: Final[dict[str, Callable[[nn.Variable], nn.Variable]]] = {
    "sigmoid": F.sigmoid,
    "tanh": F.tanh,
    "relu": F.relu,
    "softplus": F.softplus,
    "softsign": F.softsign,
}
_DEFAULTS: Final = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}
_GATES: Final = {"RNN": 1, "GRU": 3, "LSTM": 4}


class Recurrence:
    """The settings and inputs of a recurrent operator; x is (T, B, I)."""

    def __init__(self, node: Node) -> None:
        self.node, self.kind = node, node.kind
        self.is_batch_first = bool(node.attr("layout", 0))
        if node.x.ndim != 3 or len(node[2].shape) != 3:
            raise UnsupportedError(f"an input of shape {node.x.shape} and weights of shape {node[2].shape}")
        self.x = F.transpose(node.x, (1, 0, 2)) if self.is_batch_first else node.x
        self.n_steps, self.n_batch = self.x.shape[:2]
        self.n_directions, _, self.hidden = node[2].shape
        self._require_shapes()
        self.direction = node.attr("direction", "forward")
        if (self.direction == "bidirectional") != (self.n_directions == 2):
            raise UnsupportedError(f"direction {self.direction!r} with {self.n_directions} weights")
        self.activations = self._activations()
        if node.attr("input_forget", 0):
            raise UnsupportedError("input_forget")
        lengths = node.optional(4)
        self.lengths = None if lengths is None else np.asarray(node.array(4))
        if self.lengths is not None and (self.lengths == self.n_steps).all():
            self.lengths = None

    def _require_shapes(self) -> None:
        """Refuse weights, biases and states of other shapes than the operator defines, which might fit by chance."""
        d, n, h = self.n_directions, _GATES[self.kind], self.hidden
        state = (self.n_batch, d, h) if self.is_batch_first else (d, self.n_batch, h)
        defined = {1: (d, n * h, self.x.shape[2]), 2: (d, n * h, h), 3: (d, 2 * n * h), 4: (self.n_batch,), 5: state}
        if self.kind == "LSTM":
            defined |= {6: state, 7: (d, 3 * h)}
        for place, shape in defined.items():
            given = self.node.optional(place)
            if given is not None and tuple(given.shape) != shape:
                raise UnsupportedError(f"an input of shape {tuple(given.shape)} in the place of one of shape {shape}")

    def _activations(self) -> list[list[str]]:
        """Return the names for each direction."""
        usual = _DEFAULTS[self.kind]
        given = [name.lower() for name in self.node.attr("activations") or usual * self.n_directions]
        unknown = any(name not in _ACTIVATIONS for name in given)
        if unknown or self.node.attr("activation_alpha") or self.node.attr("clip"):
            raise UnsupportedError(f"activations {given} with their settings")
        return [given[d * len(usual) : (d + 1) * len(usual)] for d in range(self.n_directions)]

    def state(self, index: int) -> nn.Variable:
        """Return an initial state (D, B, H)."""
        given = self.node.optional(index)
        if given is None:
            return nn.Variable.from_numpy_array(np.zeros((self.n_directions, self.n_batch, self.hidden), np.float32))
        return F.transpose(given.variable, (1, 0, 2)) if self.is_batch_first else given.variable

    def results(self, y: nn.Variable, *states: nn.Variable) -> list[nn.Variable]:
        """Y (T, D, B, H) and states (D, B, H) in the layout of the model."""
        if self.is_batch_first:
            y = F.transpose(y, (2, 0, 1, 3))
            states = tuple(F.transpose(state, (1, 0, 2)) for state in states)
        return [y, *states]

    @property
    def is_native(self) -> bool:
        """Whether a function of nn_core computes the same."""
        usual = all(names == _DEFAULTS[self.kind] for names in self.activations)
        if self.kind == "RNN":
            usual = usual or all(names == ["relu"] for names in self.activations)
        if self.kind == "GRU":
            usual = usual and bool(self.node.attr("linear_before_reset", 0))
        peepholes = self.kind == "LSTM" and self.node.optional(7) is not None
        return usual and not peepholes and self.lengths is None and self.direction != "reverse"

    def gates(self, index: int, order: Sequence[int]) -> nn.Variable:
        """W or R as (D, gates, H, columns) in the order of nn_core."""
        weight, n = self.node.variable(index), _GATES[self.kind]
        shaped = F.reshape(weight, (self.n_directions, n, self.hidden, weight.shape[-1]))
        return _picked(shaped, order)

    def biases(self) -> tuple[nn.Variable, nn.Variable] | None:
        """Of inputs and states, each (D, gates, H), in the order of the model."""
        if self.node.optional(3) is None:
            return None
        n = _GATES[self.kind]
        both = F.reshape(self.node.variable(3), (self.n_directions, 2 * n, self.hidden))
        return _picked(both, range(n)), _picked(both, range(n, 2 * n))


def _picked(x: nn.Variable, order: Sequence[int]) -> nn.Variable:
    """Gates along axis 1 in another order."""
    return F.gather(x, nn.Variable.from_numpy_array(np.asarray(list(order), np.int64)), axis=1)


#: The gates of nn_core, i f g o and r z n, by their places in ONNX, i o f c and z r h.
_ORDER: Final = {"RNN": (0,), "LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}


@operator("RNN", "LSTM", "GRU")
def _recurrent(node: Node) -> list[nn.Variable]:
    recurrence = Recurrence(node)
    return _native(recurrence) if recurrence.is_native else written_out(recurrence)


def _native(r: Recurrence) -> list[nn.Variable]:
    order = _ORDER[r.kind]
    weight = F.concatenate(r.gates(1, order), r.gates(2, order), axis=3)
    bias = _native_bias(r, order)
    states = [F.reshape(r.state(5), (1, r.n_directions, r.n_batch, r.hidden))]
    if r.kind == "LSTM":
        states.append(F.reshape(r.state(6), (1, r.n_directions, r.n_batch, r.hidden)))
    if r.kind == "RNN":
        weight = F.reshape(weight, (r.n_directions, r.hidden, weight.shape[-1]))
    settings: dict[str, Any] = {"num_layers": 1, "bidirectional": r.n_directions == 2}
    if r.kind == "RNN":
        settings["nonlinearity"] = r.activations[0][0]
    function = {"RNN": F.rnn, "LSTM": F.lstm, "GRU": F.gru}[r.kind]
    y, *last = function(r.x, *states, weight, None, bias, **settings)
    y = F.transpose(F.reshape(y, (r.n_steps, r.n_batch, r.n_directions, r.hidden)), (0, 2, 1, 3))
    return r.results(y, *(F.reshape(state, (r.n_directions, r.n_batch, r.hidden)) for state in last))


def _native_bias(r: Recurrence, order: Sequence[int]) -> nn.Variable | None:
    both = r.biases()
    if both is None:
        return None
    of_input, of_state = (_picked(bias, order) for bias in both)
    if r.kind == "GRU":
        summed = _picked(of_input + of_state, (0, 1))
        bias = F.concatenate(summed, _picked(of_input, (2,)), _picked(of_state, (2,)), axis=1)
    else:
        bias = of_input + of_state
    shape = (1, r.n_directions, r.hidden) if r.kind == "RNN" else (1, *bias.shape)
    return F.reshape(bias, shape)


#: The product of inputs (T, B, I), or of a state (B, H), with the weights of all gates.
Product: TypeAlias = Callable[[nn.Variable], nn.Variable]


def written_out(r: Recurrence, products: Callable[[int], Sequence[Product]] | None = None) -> list[nn.Variable]:
    """Write each step as functions; steps after the end of a sequence change nothing and give zeros.

    Args:
        r: the recurrence.
        products: for a direction the products of its inputs and of its states with weights that are not those of `r`.
    """
    outputs, finals = [], []
    for d in range(r.n_directions):
        cell = _Cell(r, d, None if products is None else products(d))
        is_backwards = r.direction == "reverse" or d == 1
        steps: list[Any] = [None] * r.n_steps
        states = [F.reshape(_one(r.state(5), d), (r.n_batch, r.hidden))]
        if r.kind == "LSTM":
            states.append(F.reshape(_one(r.state(6), d), (r.n_batch, r.hidden)))
        for t in reversed(range(r.n_steps)) if is_backwards else range(r.n_steps):
            new = cell.step(t, states)
            states, steps[t] = _masked(r, t, new, states)
        outputs.append(F.stack(*steps, axis=0))
        finals.append(states)
    last = [F.stack(*[states[k] for states in finals], axis=0) for k in range(len(finals[0]))]
    return r.results(F.stack(*outputs, axis=1), *last)


def _masked(r: Recurrence, t: int, new: list[nn.Variable], old: list[nn.Variable]) -> tuple[list[nn.Variable], nn.Variable]:
    if r.lengths is None:
        return new, new[0]
    valid = nn.Variable.from_numpy_array((t < r.lengths).astype(np.float32))
    kept = [F.where(valid, a, b) for a, b in zip(new, old, strict=True)]
    return kept, F.where(valid, new[0], F.constant(0.0, new[0].shape))


def _part(x: nn.Variable, place: int) -> nn.Variable:
    return F.slice(x, start=[place, *[0] * (x.ndim - 1)], stop=[place + 1, *x.shape[1:]], step=[1] * x.ndim)


def _one(x: nn.Variable, place: int) -> nn.Variable:
    return F.reshape(_part(x, place), x.shape[1:])


class _Cell:
    """One direction of a recurrence, one step at a time."""

    def __init__(self, r: Recurrence, d: int, products: Sequence[Product] | None) -> None:
        self.r, node = r, r.node
        both = None if node.optional(3) is None else F.reshape(_one(node.variable(3), d), (2, -1))
        b, self.c = (None, None) if both is None else (_one(both, 0), _one(both, 1))
        if products is None:
            w, self.u = (F.transpose(_one(node.variable(k), d), (1, 0)) for k in (1, 2))
            self.from_inputs = F.affine(r.x, w, b, base_axis=2)
            self.product: Product = lambda h: F.affine(h, self.u)
        else:
            of_inputs, self.product = products
            self.from_inputs = of_inputs(r.x) if b is None else of_inputs(r.x) + b
        self.f = [_ACTIVATIONS[name] for name in r.activations[d]]
        self.p = None
        if r.kind == "LSTM" and node.optional(7) is not None:
            self.p = F.reshape(_one(node.variable(7), d), (3, r.hidden))

    def step(self, t: int, states: list[nn.Variable]) -> list[nn.Variable]:
        """Return the states after one more step."""
        return {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.r.kind](_one(self.from_inputs, t), states)

    def _from_state(self, h: nn.Variable) -> nn.Variable:
        y = self.product(h)
        return y if self.c is None else y + self.c

    def _gate(self, total: nn.Variable, k: int) -> nn.Variable:
        h = self.r.hidden
        return F.slice(total, start=[0, k * h], stop=[total.shape[0], (k + 1) * h], step=[1, 1])

    def _rnn(self, from_input: nn.Variable, states: list[nn.Variable]) -> list[nn.Variable]:
        return [self.f[0](from_input + self._from_state(states[0]))]

    def _gru(self, from_input: nn.Variable, states: list[nn.Variable]) -> list[nn.Variable]:
        h, n = states[0], self.r.hidden
        from_state = self._from_state(h)
        update, reset = (self.f[0](self._gate(from_input, k) + self._gate(from_state, k)) for k in (0, 1))
        if self.r.node.attr("linear_before_reset", 0):
            rest = reset * self._gate(from_state, 2)
        else:
            u = F.slice(self.u, start=[0, 2 * n], stop=[n, 3 * n], step=[1, 1])
            c = None if self.c is None else F.slice(self.c, start=[2 * n], stop=[3 * n], step=[1])
            rest = F.affine(reset * h, u, c)
        candidate = self.f[1](self._gate(from_input, 2) + rest)
        return [(1 - update) * candidate + update * h]

    def _lstm(self, from_input: nn.Variable, states: list[nn.Variable]) -> list[nn.Variable]:
        h, c = states
        total = from_input + self._from_state(h)
        i, o, f, g = (self._gate(total, k) for k in range(4))
        if self.p is not None:
            i, f = i + _one(self.p, 0) * c, f + _one(self.p, 2) * c
        new = self.f[0](f) * c + self.f[0](i) * self.f[1](g)
        if self.p is not None:
            o = o + _one(self.p, 1) * new
        return [self.f[0](o) * self.f[2](new), new]
