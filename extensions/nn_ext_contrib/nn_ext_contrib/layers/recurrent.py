"""Recurrent layers: single steps, and whole sequences of different lengths. N samples, I features, U units."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nn_core.ext import PF, F, ShapeError, Variable, initializer, parametric_function_api
from nn_ext_contrib.functions.checks import require_ndim
from nn_ext_contrib.layers.parameters import ZEROS, Initializer, trained, weight

_LSTM = [
    ("upward/affine/W", "Weight of the inputs; the gates of a unit are neighbours: a, i, f, o.", "(I, 4 U)", True),
    ("upward/affine/b", "Bias.", "(4 U)", True),
    ("lateral/affine/W", "Weight of the outputs.", "(U, 4 U)", True),
]


def _zeros(x: Variable, units: int) -> Variable:
    return F.constant(0.0, (x.shape[0], units))


def _lstm_sums(
    function: str, c: Variable | None, h: Variable | None, x: Variable, units: int, settings: dict[str, Any]
) -> tuple[Variable, Variable, Variable]:
    """Cells and outputs, zeros if not given, and the weighted sums of the gates."""
    require_ndim(function, "x", x, 2, "(N, I)")
    c, h = (_zeros(x, units) if state is None else state for state in (c, h))
    if c.shape[1:] != (units,) or h.shape[1:] != (units,) or min(c.shape[0], h.shape[0]) < x.shape[0]:
        raise ShapeError(
            f"{function}: c and h must have {units} units and no fewer rows than x, got {c.shape}, {h.shape} and {x.shape}"
        )
    if h.shape[0] > x.shape[0]:  # sequences that have ended
        h = F.slice(h, start=(0, 0), stop=(x.shape[0], units), step=(1, 1))
    bare = {key: value for key, value in settings.items() if key != "b_init"}
    sums = PF.affine(x, 4 * units, **settings, name="upward") + PF.affine(
        h, 4 * units, with_bias=False, **bare, name="lateral"
    )
    return c, h, sums


@parametric_function_api("stateless_lstm", _LSTM)
def stateless_lstm(
    c: Variable | None,
    h: Variable | None,
    x: Variable,
    n_units: int,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> tuple[Variable, Variable]:
    """Take one step of a long short-term memory; see `F.contrib.stateless_lstm`.

    Args:
        c: Cells before the step; None: zeros. Shape (N', U) with N' >= N: samples from N on have ended.
        h: Outputs of the step before; None: zeros. Shape (N', U).
        x: Input. Shape (N, I).
        n_units: Number U of units.

    Returns:
        Cells, shape (N', U), and outputs, shape (N, U).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> c, h = stateless_lstm(None, None, nn.Variable((3, 4)), 5, name="l")
        >>> c, h = stateless_lstm(c, h, nn.Variable((2, 4)), 5, name="l")
        >>> c.shape, h.shape
        ((3, 5), (2, 5))
    """
    settings = {"w_init": w_init, "b_init": b_init, "fix_parameters": fix_parameters, "rng": rng}
    c, _, sums = _lstm_sums("stateless_lstm", c, h, x, n_units, settings)
    new_c, new_h = F.contrib.stateless_lstm(c, sums)
    return new_c, new_h


@parametric_function_api(
    "peephole_lstm", [*_LSTM, ("peep_i/affine/W", "Weight of the cells for i; likewise peep_f and peep_o.", "(U, U)", True)]
)
def peephole_lstm(
    c: Variable | None,
    h: Variable | None,
    x: Variable,
    n_units: int,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> tuple[Variable, Variable]:
    """Take one step of a long short-term memory whose gates see the cells.

    c' = tanh(a) s(i + c P_i) + c s(f + c P_f), h' = tanh(c') s(o + c' P_o)

    Args:
        c: Cells before the step; None: zeros. Shape (N, U).
        h: Outputs of the step before; None: zeros. Shape (N, U).
        x: Input. Shape (N, I).
        n_units: Number U of units.

    Returns:
        Cells and outputs, each of shape (N, U).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> c, h = peephole_lstm(None, None, nn.Variable((3, 4)), 5)
        >>> c.shape, h.shape
        ((3, 5), (3, 5))

    References:
        Gers and Schmidhuber (2000), Recurrent nets that time and count; here the weights of the cells are full matrices.
    """
    settings = {"w_init": w_init, "b_init": b_init, "fix_parameters": fix_parameters, "rng": rng}
    c, _, sums = _lstm_sums("peephole_lstm", c, h, x, n_units, settings)
    if c.shape[0] != x.shape[0]:
        raise ShapeError(f"peephole_lstm: c must have a row for each of x, got {c.shape} and {x.shape}")
    a, i, f, o = F.split(F.reshape(sums, (x.shape[0], n_units, 4)), axis=2)

    def peep(cells: Variable, name: str) -> Variable:
        return PF.affine(cells, n_units, 1, w_init, None, fix_parameters, rng, with_bias=False, name=name)

    new = F.tanh(a) * F.sigmoid(i + peep(c, "peep_i")) + c * F.sigmoid(f + peep(c, "peep_f"))
    return new, F.tanh(new) * F.sigmoid(o + peep(new, "peep_o"))


@parametric_function_api(
    "stateless_gru",
    [
        ("W_r/affine/W", "Weight of the inputs for r; likewise W_z, and W for the candidate.", "(I, U)", True),
        ("W_r/affine/b", "Bias, likewise.", "(U)", True),
        ("U_r/affine/W", "Weight of the state for r; likewise U_z, and U for the candidate.", "(U, U)", True),
        ("U_r/affine/b", "Bias, likewise.", "(U)", True),
    ],
)
def stateless_gru(
    h: Variable | None,
    x: Variable,
    n_units: int,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> Variable:
    """Take one step of gated recurrent units whose gate multiplies the state before the weight.

    r = s(x W_r + h U_r), z = s(x W_z + h U_z), n = tanh(x W + (r h) U), h' = (1 - z) h + z n, each with biases

    Args:
        h: State before the step; None: zeros. Shape (N, U).
        x: Input. Shape (N, I).
        n_units: Number U of units.

    Returns:
        The new state. Shape (N, U).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> stateless_gru(None, nn.Variable((3, 4)), 5).shape
        (3, 5)

    References:
        Cho et al. (2014), Learning phrase representations using RNN encoder-decoder.

    Notes:
        In `F.contrib.n_step_gru` z has the opposite role.
    """
    require_ndim("stateless_gru", "x", x, 2, "(N, I)")
    h = _zeros(x, n_units) if h is None else h
    if h.shape != (x.shape[0], n_units):
        raise ShapeError(f"stateless_gru: h must have shape {(x.shape[0], n_units)}, got {h.shape}")

    def affine(inp: Variable, name: str) -> Variable:
        return PF.affine(inp, n_units, 1, w_init, b_init, fix_parameters, rng, name=name)

    r, z = (F.sigmoid(affine(x, f"W_{gate}") + affine(h, f"U_{gate}")) for gate in "rz")
    return h + z * (F.tanh(affine(x, "W") + affine(r * h, "U")) - h)


_N_STEP = [
    ("w0_0", "Weight 0 of row 0; w<row>_<k> for the weights of a layer and direction.", "(U, I), (U, D U) or (U, U)", True),
    ("b0_0", "Biases, likewise.", "(U)", True),
]


class _Sequences:
    """Sequences of any order as steps with fewer and fewer rows, with parameters for layers over them."""

    def __init__(self, function: str, xs: Sequence[Variable], n_layers: int, n_units: int, bidirectional: bool) -> None:
        lengths = [x.shape[0] if x.ndim == 2 else 0 for x in xs]
        if not lengths or min(lengths) < 1 or len({x.shape[1] for x in xs}) != 1:
            raise ShapeError(f"{function}: xs must be sequences of shape (L, I) with L >= 1, got {[x.shape for x in xs]}")
        self._order = np.argsort(-np.array(lengths), kind="stable")
        self._inverse = np.argsort(self._order)
        self._n_directions = 2 if bidirectional else 1
        self._rows, self._n_units, self._n_features = n_layers * self._n_directions, n_units, xs[0].shape[1]
        self.steps = F.contrib.transpose_sequence([xs[n] for n in self._order])

    def parameters(
        self,
        n_gates: int,
        w_init: Initializer | None,
        b_init: Initializer | None,
        fix_parameters: bool,
        rng: initializer.Rng | None,
    ) -> tuple[list[list[Variable]], list[list[Variable]]]:
        """Weights and biases of all layers and directions."""
        units, ws, bs = self._n_units, [], []
        for row in range(self._rows):
            below = self._n_features if row < self._n_directions else self._n_directions * units
            sizes = [below] * n_gates + [units] * n_gates
            ws.append(
                [weight(f"w{row}_{k}", (units, n), (n, units), w_init, rng, fix_parameters) for k, n in enumerate(sizes)]
            )
            bs.append([trained(f"b{row}_{k}", (units,), b_init, ZEROS, fix_parameters) for k in range(2 * n_gates)])
        return ws, bs

    def start(self, state: Variable | None) -> Variable:
        """Return a state in the order of the steps; zeros if none is given."""
        if state is None:
            return F.constant(0.0, (self._rows, len(self._order), self._n_units))
        return self._reordered(state, self._order)

    def end(self, state: Variable) -> Variable:
        """Return a state in the order of the sequences."""
        return self._reordered(state, self._inverse)

    def outputs(self, ys: Sequence[Variable]) -> list[Variable]:
        """Return outputs of steps as sequences in their order."""
        found = F.contrib.transpose_sequence(ys)
        return [found[n] for n in self._inverse]

    @staticmethod
    def _reordered(state: Variable, order: "np.ndarray[Any, Any]") -> Variable:
        return state if (np.diff(order) == 1).all() else F.gather(state, Variable.from_numpy_array(order), axis=1)


def _n_step(
    function: Callable[..., tuple[Any, ...]],
    n_gates: int,
    states: Sequence[Variable | None],
    sequences: _Sequences,
    initial: tuple[Initializer | None, Initializer | None, bool, initializer.Rng | None],
) -> tuple[Any, ...]:
    ws, bs = sequences.parameters(n_gates, *initial)
    *ends, ys = function(*map(sequences.start, states), ws, bs, sequences.steps)
    return (*map(sequences.end, ends), sequences.outputs(ys))


@parametric_function_api("n_step_lstm", _N_STEP)
def n_step_lstm(
    hx: Variable | None,
    cx: Variable | None,
    xs: Sequence[Variable],
    n_layers: int,
    n_units: int,
    dropout: float = 0.0,
    bidirectional: bool = False,
    train: bool = True,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> tuple[Variable, Variable, list[Variable]]:
    """Run layers of a long short-term memory over sequences of any lengths and order; see `F.contrib.n_step_lstm`.

    Args:
        hx: States before the first step; None: zeros. Shape (n_layers D, B, U), D = 2 if `bidirectional`, else 1.
        cx: Cells, likewise.
        xs: B sequences. Shapes (L_b, I).
        n_layers: Number of layers.
        n_units: Number U of units.
        dropout: Chance of an input of a layer to be dropped, except of the first layer, from 0 to below 1.
        bidirectional: Run in both directions of time and join the outputs.
        train: Whether dropout takes place.

    Returns:
        States and cells after the last step of each sequence, and the outputs of the last layer, of shapes (L_b, D U).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> hy, cy, ys = n_step_lstm(None, None, [nn.Variable((2, 3)), nn.Variable((4, 3))], 1, 5, bidirectional=True)
        >>> hy.shape, [y.shape for y in ys]
        ((2, 2, 5), [(2, 10), (4, 10)])
    """
    function = partial(F.contrib.n_step_lstm, n_layers, dropout, bidirectional=bidirectional, train=train)
    sequences = _Sequences("n_step_lstm", xs, n_layers, n_units, bidirectional)
    hy, cy, ys = _n_step(function, 4, (hx, cx), sequences, (w_init, b_init, fix_parameters, rng))
    return hy, cy, ys


@parametric_function_api("n_step_gru", _N_STEP)
def n_step_gru(
    hx: Variable | None,
    xs: Sequence[Variable],
    n_layers: int,
    n_units: int,
    dropout: float = 0.0,
    bidirectional: bool = False,
    train: bool = True,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> tuple[Variable, list[Variable]]:
    """Run layers of gated recurrent units over sequences of any lengths and order; see `F.contrib.n_step_gru`.

    Args:
        hx: States before the first step; None: zeros. Shape (n_layers D, B, U), D = 2 if `bidirectional`, else 1.
        xs: B sequences. Shapes (L_b, I).
        n_layers: Number of layers.
        n_units: Number U of units.
        dropout: Chance of an input of a layer to be dropped, except of the first layer, from 0 to below 1.
        bidirectional: Run in both directions of time and join the outputs.
        train: Whether dropout takes place.

    Returns:
        States after the last step of each sequence, and the outputs of the last layer, of shapes (L_b, D U).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> hy, ys = n_step_gru(None, [nn.Variable((2, 3)), nn.Variable((4, 3))], 2, 5)
        >>> hy.shape, [y.shape for y in ys]
        ((2, 2, 5), [(2, 5), (4, 5)])
    """
    function = partial(F.contrib.n_step_gru, n_layers, dropout, bidirectional=bidirectional, train=train)
    sequences = _Sequences("n_step_gru", xs, n_layers, n_units, bidirectional)
    hy, ys = _n_step(function, 3, (hx,), sequences, (w_init, b_init, fix_parameters, rng))
    return hy, ys


@parametric_function_api("n_step_rnn", _N_STEP)
def n_step_rnn(
    hx: Variable | None,
    xs: Sequence[Variable],
    n_layers: int,
    n_units: int,
    activation: str = "tanh",
    dropout: float = 0.0,
    bidirectional: bool = False,
    train: bool = True,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> tuple[Variable, list[Variable]]:
    """Run layers of simple recurrent units over sequences of any lengths and order; see `F.contrib.n_step_rnn`.

    Args:
        hx: States before the first step; None: zeros. Shape (n_layers D, B, U), D = 2 if `bidirectional`, else 1.
        xs: B sequences. Shapes (L_b, I).
        n_layers: Number of layers.
        n_units: Number U of units.
        activation: "tanh" or "relu".
        dropout: Chance of an input of a layer to be dropped, except of the first layer, from 0 to below 1.
        bidirectional: Run in both directions of time and join the outputs.
        train: Whether dropout takes place.

    Returns:
        States after the last step of each sequence, and the outputs of the last layer, of shapes (L_b, D U).

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when the activation is neither.

    Example:
        >>> hy, ys = n_step_rnn(None, [nn.Variable((2, 3)), nn.Variable((4, 3))], 1, 5, "relu")
        >>> hy.shape, [y.shape for y in ys]
        ((1, 2, 5), [(2, 5), (4, 5)])
    """
    function = partial(
        F.contrib.n_step_rnn, n_layers, dropout, activation=activation, bidirectional=bidirectional, train=train
    )
    sequences = _Sequences("n_step_rnn", xs, n_layers, n_units, bidirectional)
    hy, ys = _n_step(function, 1, (hx,), sequences, (w_init, b_init, fix_parameters, rng))
    return hy, ys
