"""Recurrent networks: steps without memory of their own, and layers over sequences of different lengths."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from nn_core.ext import ArgumentError, F, ShapeError, Variable

#: State of a step and its weighted sums of inputs and of states -> new state; the first part is the output.
Cell = Callable[[tuple[Variable, ...], Variable, Variable], tuple[Variable, ...]]


def stateless_lstm(c_prev: Variable, x: Variable) -> tuple[Variable, Variable]:
    """Take one step of a long short-term memory whose weighted sums are given.

    c = tanh(a) s(i) + c_prev s(f), h = tanh(c) s(o)

    The channels of x are a, i, f and o of the first unit, then those of the second one, and so on.

    Args:
        c_prev: Cells before the step. Shape (B, n, ...).
        x: Weighted sums. Shape (b, 4 n, ...) with b <= B: samples from b on have ended, their cells stay.

    Returns:
        Cells c, shape (B, n, ...), and outputs h, shape (b, n, ...).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> c, h = stateless_lstm(nn.Variable((3, 5)), nn.Variable((2, 20)))
        >>> c.shape, h.shape
        ((3, 5), (2, 5))

    References:
        Hochreiter and Schmidhuber (1997), Long short-term memory; with the forget gate of Gers et al. (2000).
    """
    a, i, f, o = _gates("stateless_lstm", c_prev, x)
    c = F.tanh(a) * F.sigmoid(i) + _rows(c_prev, 0, x.shape[0]) * F.sigmoid(f)
    return _with_rest(c, c_prev), F.tanh(c) * F.sigmoid(o)


def stateless_slstm(c_prev1: Variable, c_prev2: Variable, x1: Variable, x2: Variable) -> tuple[Variable, Variable]:
    """Take one step of an LSTM over a binary tree (S-LSTM), which joins the states of two children.

    c = tanh(a1 + a2) s(i1 + i2) + c_prev1 s(f1) + c_prev2 s(f2), h = tanh(c) s(o1 + o2)

    Args:
        c_prev1: Cells of the first child. Shape (B, n, ...).
        c_prev2: Cells of the second child. Shape (B, n, ...).
        x1: Weighted sums of the first child, in the order of `stateless_lstm`. Shape (B, 4 n, ...).
        x2: Weighted sums of the second child. Shape (B, 4 n, ...).

    Returns:
        Cells c and outputs h, each of shape (B, n, ...).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> c, h = stateless_slstm(*[nn.Variable((3, 5)) for _ in range(2)], *[nn.Variable((3, 20)) for _ in range(2)])
        >>> c.shape, h.shape
        ((3, 5), (3, 5))

    References:
        Zhu et al. (2015), Long short-term memory over recursive structures.
    """
    if c_prev1.shape != c_prev2.shape or x1.shape != x2.shape or x1.shape[0] != c_prev1.shape[0]:
        raise ShapeError(
            "stateless_slstm: both children must have the same shapes, got cells "
            f"{c_prev1.shape} and {c_prev2.shape}, sums {x1.shape} and {x2.shape}"
        )
    a1, i1, f1, o1 = _gates("stateless_slstm", c_prev1, x1)
    a2, i2, f2, o2 = _gates("stateless_slstm", c_prev2, x2)
    c = F.tanh(a1 + a2) * F.sigmoid(i1 + i2) + c_prev1 * F.sigmoid(f1) + c_prev2 * F.sigmoid(f2)
    return c, F.tanh(c) * F.sigmoid(o1 + o2)


def _gates(function: str, c_prev: Variable, x: Variable) -> Sequence[Variable]:
    """Return the four interleaved parts of the channels of x."""
    units = c_prev.shape[1] if c_prev.ndim > 1 else 0
    if x.ndim != c_prev.ndim or x.shape[1:] != (4 * units, *c_prev.shape[2:]) or x.shape[0] > c_prev.shape[0]:
        raise ShapeError(
            f"{function}: x must have 4 channels for each of c_prev and no more rows, got {x.shape} and {c_prev.shape}"
        )
    parts: Sequence[Variable] = F.split(F.reshape(x, (x.shape[0], units, 4, *x.shape[2:])), axis=2)
    return parts


def n_step_lstm(
    n_layers: int,
    dropout_ratio: float,
    hx: Variable,
    cx: Variable,
    ws: Sequence[Sequence[Variable]],
    bs: Sequence[Sequence[Variable]],
    xs: Sequence[Variable],
    bidirectional: bool = False,
    train: bool = True,
) -> tuple[Variable, Variable, list[Variable]]:
    """Run layers of a long short-term memory over sequences of different lengths.

    i = s(W0 x + W4 h + b0 + b4), f = s(W1 x + W5 h + b1 + b5), o = s(W2 x + W6 h + b2 + b6), a = tanh(W3 x + W7 h + b3 + b7),
    c = f c + i a, h = o tanh(c)

    Args:
        n_layers: Number S of layers.
        dropout_ratio: Chance of an input of a layer to be dropped, except of the first layer, from 0 to below 1.
        hx: States before the first step. Shape (S D, B, N), D = 2 if `bidirectional`, else 1; row D layer + direction.
        cx: Cells, likewise.
        ws: For each layer and direction W0 to W7. Shape (N, I) for W0 to W3 of the first layer,
            (N, D N) for those of others, (N, N) for the rest.
        bs: For each layer and direction b0 to b7. Shape (N).
        xs: The steps, with fewer and fewer sequences as they end: shapes (B_1, I), (B_2, I), ... `transpose_sequence` makes
            them of sequences.
        bidirectional: Run in both directions of time and join the outputs. Backwards each sequence starts at its own end.
        train: Whether dropout takes place.

    Returns:
        States and cells after the last step of each sequence, of the shapes of hx and cx, and the outputs of the last layer,
        of shapes (B_t, D N).

    Raises:
        ShapeError: when the shapes do not fit, or a step has more sequences than the one before.
        ArgumentError: when the numbers of layers, weights or biases do not fit.

    Example:
        >>> hx, w, b = nn.Variable((1, 2, 3)), nn.Variable((3, 3)), nn.Variable((3,))
        >>> xs = [nn.Variable((2, 3)), nn.Variable((1, 3))]
        >>> hy, cy, ys = n_step_lstm(1, 0.0, hx, hx, [[w] * 8], [[b] * 8], xs)
        >>> hy.shape, [y.shape for y in ys]
        ((1, 2, 3), [(2, 3), (1, 3)])
    """
    run = _Layers("n_step_lstm", _lstm, 4, n_layers, dropout_ratio if train else 0.0, bidirectional)
    (hy, cy), ys = run((hx, cx), ws, bs, xs)
    return hy, cy, ys


def n_step_gru(
    n_layers: int,
    dropout_ratio: float,
    hx: Variable,
    ws: Sequence[Sequence[Variable]],
    bs: Sequence[Sequence[Variable]],
    xs: Sequence[Variable],
    bidirectional: bool = False,
    train: bool = True,
) -> tuple[Variable, list[Variable]]:
    """Run layers of gated recurrent units over sequences of different lengths.

    r = s(W0 x + W3 h + b0 + b3), z = s(W1 x + W4 h + b1 + b4), n = tanh(W2 x + b2 + r (W5 h + b5)), h = (1 - z) n + z h

    Args:
        n_layers: Number S of layers.
        dropout_ratio: Chance of an input of a layer to be dropped, except of the first layer, from 0 to below 1.
        hx: States before the first step. Shape (S D, B, N), D = 2 if `bidirectional`, else 1; row D layer + direction.
        ws: For each layer and direction W0 to W5. Shape (N, I) for W0 to W2 of the first layer,
            (N, D N) for those of others, (N, N) for the rest.
        bs: For each layer and direction b0 to b5. Shape (N).
        xs: The steps, as for `n_step_lstm`.
        bidirectional: Run in both directions of time and join the outputs.
        train: Whether dropout takes place.

    Returns:
        States after the last step of each sequence, of the shape of hx, and the outputs of the last layer, (B_t, D N).

    Raises:
        ShapeError: when the shapes do not fit, or a step has more sequences than the one before.
        ArgumentError: when the numbers of layers, weights or biases do not fit.

    Example:
        >>> w, b, xs = nn.Variable((3, 3)), nn.Variable((3,)), [nn.Variable((2, 3)), nn.Variable((1, 3))]
        >>> hy, ys = n_step_gru(1, 0.0, nn.Variable((1, 2, 3)), [[w] * 6], [[b] * 6], xs)
        >>> hy.shape, [y.shape for y in ys]
        ((1, 2, 3), [(2, 3), (1, 3)])
    """
    run = _Layers("n_step_gru", _gru, 3, n_layers, dropout_ratio if train else 0.0, bidirectional)
    (hy,), ys = run((hx,), ws, bs, xs)
    return hy, ys


def n_step_rnn(
    n_layers: int,
    dropout_ratio: float,
    hx: Variable,
    ws: Sequence[Sequence[Variable]],
    bs: Sequence[Sequence[Variable]],
    xs: Sequence[Variable],
    activation: str = "tanh",
    bidirectional: bool = False,
    train: bool = True,
) -> tuple[Variable, list[Variable]]:
    """Run layers of simple recurrent units over sequences of different lengths: h = f(W0 x + W1 h + b0 + b1).

    Args:
        n_layers: Number S of layers.
        dropout_ratio: Chance of an input of a layer to be dropped, except of the first layer, from 0 to below 1.
        hx: States before the first step. Shape (S D, B, N), D = 2 if `bidirectional`, else 1; row D layer + direction.
        ws: For each layer and direction W0, of shape (N, I) in the first layer and (N, D N) in others, and W1, (N, N).
        bs: For each layer and direction b0 and b1. Shape (N).
        xs: The steps, as for `n_step_lstm`.
        activation: f, "tanh" or "relu".
        bidirectional: Run in both directions of time and join the outputs.
        train: Whether dropout takes place.

    Returns:
        States after the last step of each sequence, of the shape of hx, and the outputs of the last layer, (B_t, D N).

    Raises:
        ShapeError: when the shapes do not fit, or a step has more sequences than the one before.
        ArgumentError: when the activation is neither, or the numbers of layers, weights or biases do not fit.

    Example:
        >>> w, b, xs = nn.Variable((3, 3)), nn.Variable((3,)), [nn.Variable((2, 3)), nn.Variable((1, 3))]
        >>> hy, ys = n_step_rnn(1, 0.0, nn.Variable((1, 2, 3)), [[w] * 2], [[b] * 2], xs)
        >>> hy.shape, [y.shape for y in ys]
        ((1, 2, 3), [(2, 3), (1, 3)])
    """
    functions: dict[str, Callable[[Variable], Variable]] = {"tanh": F.tanh, "relu": F.relu}
    if activation not in functions:
        raise ArgumentError(f"n_step_rnn: activation must be 'tanh' or 'relu', got {activation!r}")

    def cell(state: tuple[Variable, ...], x: Variable, h: Variable) -> tuple[Variable, ...]:
        return (functions[activation](x + h),)

    run = _Layers("n_step_rnn", cell, 1, n_layers, dropout_ratio if train else 0.0, bidirectional)
    (hy,), ys = run((hx,), ws, bs, xs)
    return hy, ys


def _lstm(state: tuple[Variable, ...], x: Variable, h: Variable) -> tuple[Variable, ...]:
    i, f, o, a = _parts(x + h, 4)
    c = F.sigmoid(f) * state[1] + F.sigmoid(i) * F.tanh(a)
    return F.sigmoid(o) * F.tanh(c), c


def _gru(state: tuple[Variable, ...], x: Variable, h: Variable) -> tuple[Variable, ...]:
    (x_r, x_z, x_n), (h_r, h_z, h_n) = _parts(x, 3), _parts(h, 3)
    z = F.sigmoid(x_z + h_z)
    n = F.tanh(x_n + F.sigmoid(x_r + h_r) * h_n)
    return (n + z * (state[0] - n),)


def _parts(x: Variable, count: int) -> list[Variable]:
    size = x.shape[1] // count
    return [F.slice(x, start=(0, n * size), stop=(x.shape[0], (n + 1) * size), step=(1, 1)) for n in range(count)]


def _rows(x: Variable, first: int, end: int) -> Variable:
    if (first, end) == (0, x.shape[0]):
        return x
    return F.slice(x, start=(first,) + (0,) * (x.ndim - 1), stop=(end, *x.shape[1:]), step=(1,) * x.ndim)


def _with_rest(new: Variable, old: Variable) -> Variable:
    """Return the rows of `new`, then those of `old` that it has not."""
    count = new.shape[0]
    return new if count == old.shape[0] else F.concatenate(new, _rows(old, count, old.shape[0]), axis=0)


class _Layers:
    """Layers of one kind of cell over steps with fewer and fewer rows."""

    def __init__(self, function: str, cell: Cell, n_gates: int, n_layers: int, dropout: float, bidirectional: bool) -> None:
        if not 0 <= dropout < 1:
            raise ArgumentError(f"{function}: dropout_ratio must be in [0, 1), got {dropout}")
        self._function = function
        self._cell = cell
        self._n_gates = n_gates
        self._n_layers = n_layers
        self._dropout = dropout
        self._n_directions = 2 if bidirectional else 1

    def __call__(
        self,
        states: tuple[Variable, ...],
        ws: Sequence[Sequence[Variable]],
        bs: Sequence[Sequence[Variable]],
        xs: Sequence[Variable],
    ) -> tuple[tuple[Variable, ...], list[Variable]]:
        self._check(states, ws, bs, xs)
        steps = list(xs)
        ends: list[tuple[Variable, ...]] = []
        for layer in range(self._n_layers):
            if layer and self._dropout:
                steps = [F.dropout(step, self._dropout) for step in steps]
            outputs = []
            for row in range(layer * self._n_directions, (layer + 1) * self._n_directions):
                start = tuple(F.reshape(_rows(state, row, row + 1), state.shape[1:]) for state in states)
                end, output = self._run(start, ws[row], bs[row], steps, backwards=row % self._n_directions == 1)
                ends.append(end)
                outputs.append(output)
            joined = zip(*outputs, strict=True)
            steps = [F.concatenate(*parts, axis=1) if len(parts) > 1 else parts[0] for parts in joined]
        return tuple(F.stack(*part, axis=0) for part in zip(*ends, strict=True)), steps

    def _run(
        self,
        state: tuple[Variable, ...],
        w: Sequence[Variable],
        b: Sequence[Variable],
        xs: Sequence[Variable],
        backwards: bool,
    ) -> tuple[tuple[Variable, ...], list[Variable]]:
        """One layer in one direction: the state after it, and the output of each step."""
        n = self._n_gates
        w_x, w_h = (F.transpose(F.concatenate(*part, axis=0), (1, 0)) for part in (w[:n], w[n:]))
        b_x, b_h = (F.concatenate(*part, axis=0) for part in (b[:n], b[n:]))
        sums = F.affine(F.concatenate(*xs, axis=0), w_x, b_x)
        edges = [0]
        for x in xs:
            edges.append(edges[-1] + x.shape[0])
        outputs = list(xs)
        for t in reversed(range(len(xs))) if backwards else range(len(xs)):
            now = tuple(_rows(part, 0, xs[t].shape[0]) for part in state)
            new = self._cell(now, _rows(sums, edges[t], edges[t + 1]), F.affine(now[0], w_h, b_h))
            outputs[t] = new[0]
            state = tuple(_with_rest(part, old) for part, old in zip(new, state, strict=True))
        return state, outputs

    def _check(
        self,
        states: tuple[Variable, ...],
        ws: Sequence[Sequence[Variable]],
        bs: Sequence[Sequence[Variable]],
        xs: Sequence[Variable],
    ) -> None:
        rows, count = self._n_layers * self._n_directions, 2 * self._n_gates
        for name, groups in (("ws", ws), ("bs", bs)):
            sizes = [len(group) for group in groups]
            if sizes != [count] * rows:
                raise ArgumentError(f"{self._function}: {name} must have {rows} lists of {count}, got lists of {sizes}")
        sizes = [x.shape[0] for x in xs]
        if not sizes or any(before < after for before, after in pairwise(sizes)) or sizes[-1] < 1:
            raise ShapeError(f"{self._function}: xs must have steps with fewer and fewer rows, got {sizes}")
        units = ws[0][-1].shape[0]
        for state in states:
            if state.shape != (rows, sizes[0], units):
                raise ShapeError(f"{self._function}: states must have shape {(rows, sizes[0], units)}, got {state.shape}")
