"""Recurrent layers over whole sequences, and the LSTM cell for one step."""

from typing import Any

import numpy as np

import nn_core.functions as F
from nn_core.engine.error_messages.refusal import door, fitted_methods
from nn_core.errors import ArgumentError, ShapeError
from nn_core.functions.operand import Operand
from nn_core.initializer import Rng
from nn_core.parametric_functions.affine import affine
from nn_core.parametric_functions.initial import ZEROS, glorot, trained
from nn_core.parametric_functions.scope import Initializer, layer, parameter_scope
from nn_core.parametric_functions.sequences import initial_states, run_with_lengths, steps_first
from nn_core.typing import Shape
from nn_core.variable import Variable

_PARAMETERS = [
    ("weight_l0", "Weight of the first layer.", "(directions, gates, H, I + H)", True),
    ("weight", "Weight of the further layers.", "(layers - 1, directions, gates, H, directions * H + H)", True),
    ("bias", "Bias.", "(layers, directions, gates, H)", True),
]


@layer("rnn", [(name, text, shape.replace(", gates", ""), t) for name, text, shape, t in _PARAMETERS])
def rnn(
    x: Operand,
    h: Operand | None = None,
    w0_init: Initializer | None = None,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    num_layers: int = 1,
    nonlinearity: str = "tanh",
    dropout: float = 0.0,
    bidirectional: bool = False,
    training: bool = True,
    rng: Rng | None = None,
    with_bias: bool = True,
    fix_parameters: bool = False,
    name: str | None = None,
    *,
    batch_first: bool = False,
    lengths: Operand | None = None,
    hidden_size: int | None = None,
) -> tuple[Any, Any]:
    """Elman's recurrent network over a sequence, in any number of layers.

    Args:
        x: Sequence. Shape (T, B, I), or (B, T, I) if `batch_first`.
        h: Initial state. Shape (layers, directions, B, H). Default: zeros.
        w0_init: Initial weight of the first layer. Default: uniform within Glorot's limits.
        w_init: Initial weight of the further layers. Default: uniform within Glorot's limits.
        num_layers: Number of layers; left at 1, it is that of `h`, if that is given.
        nonlinearity: "tanh" or "relu".
        dropout: Part of the outputs between layers that is dropped.
        bidirectional: Also run backwards in time.
        training: Keep what the gradient needs.
        batch_first: The first axis of `x` and of the outputs is that of the sequences.
        lengths: Number of steps of each sequence; the rest is padding, which is not read, and whose outputs are zeros. The
            last states are those after so many steps, and a backward direction begins there. Shape (B,).
        hidden_size: Features of the state, H, where no initial state is given.

    Returns:
        The outputs of the last layer, shape (T, B, directions * H) or, if `batch_first`, (B, T, directions * H),
        and the last states, shape of `h`.

    Example:
        >>> x, h = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4))  # 5 steps, batch 8
        >>> y, h_n = PF.rnn(x, h)
        >>> y.shape, h_n.shape
        ((5, 8, 4), (1, 1, 8, 4))
    """
    x = steps_first("rnn", x, batch_first)
    (h,) = initial_states("rnn", x, {"h": h}, num_layers, bidirectional, hidden_size)
    num_layers = _layers_of("rnn", x, h, num_layers)
    weights = _weights(x, h, None, num_layers, bidirectional, (w0_init, w_init, b_init), rng, with_bias, fix_parameters)
    if lengths is None:
        y, h_n = F.rnn(x, h, *weights, num_layers, nonlinearity, dropout, bidirectional, training)
    else:

        def run(x: Any, states: Any, w: Any, b: Any) -> Any:
            return F.rnn(x, states[0], w, None, b, 1, nonlinearity, 0.0, False, training)

        y, h_n = run_with_lengths("rnn", run, x, [h], weights, lengths, dropout if training else 0.0)
    return (F.transpose(y, (1, 0, 2)) if batch_first else y), h_n


@layer("gru", [*_PARAMETERS[:2], ("bias", "Bias.", "(layers, directions, 4, H)", True)])
def gru(
    x: Operand,
    h: Operand | None = None,
    w0_init: Initializer | None = None,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    num_layers: int = 1,
    dropout: float = 0.0,
    bidirectional: bool = False,
    training: bool = True,
    rng: Rng | None = None,
    with_bias: bool = True,
    fix_parameters: bool = False,
    name: str | None = None,
    *,
    batch_first: bool = False,
    lengths: Operand | None = None,
    hidden_size: int | None = None,
) -> tuple[Any, Any]:
    """Gated recurrent units over a sequence, in any number of layers.

    Args:
        x: Sequence. Shape (T, B, I), or (B, T, I) if `batch_first`.
        h: Initial state. Shape (layers, directions, B, H). Default: zeros.
        w0_init: Initial weight of the first layer. Default: uniform within Glorot's limits.
        w_init: Initial weight of the further layers. Default: uniform within Glorot's limits.
        num_layers: Number of layers; left at 1, it is that of `h`, if that is given.
        dropout: Part of the outputs between layers that is dropped.
        bidirectional: Also run backwards in time.
        training: Keep what the gradient needs.
        batch_first: The first axis of `x` and of the outputs is that of the sequences.
        lengths: Number of steps of each sequence; the rest is padding, which is not read, and whose outputs are zeros. The
            last states are those after so many steps, and a backward direction begins there. Shape (B,).
        hidden_size: Features of the state, H, where no initial state is given.

    Returns:
        The outputs of the last layer, shape (T, B, directions * H) or, if `batch_first`, (B, T, directions * H),
        and the last states, shape of `h`.

    References:
        Cho et al. (2014), Learning phrase representations using RNN encoder-decoder.

    Example:
        >>> x, h = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4))  # 5 steps, batch 8
        >>> y, h_n = PF.gru(x, h)
        >>> y.shape, h_n.shape
        ((5, 8, 4), (1, 1, 8, 4))
    """
    x = steps_first("gru", x, batch_first)
    (h,) = initial_states("gru", x, {"h": h}, num_layers, bidirectional, hidden_size)
    num_layers = _layers_of("gru", x, h, num_layers)
    weights = _weights(x, h, 3, num_layers, bidirectional, (w0_init, w_init, b_init), rng, with_bias, fix_parameters)
    if lengths is None:
        y, h_n = F.gru(x, h, *weights, num_layers, dropout, bidirectional, training)
    else:

        def run(x: Any, states: Any, w: Any, b: Any) -> Any:
            return F.gru(x, states[0], w, None, b, 1, 0.0, False, training)

        y, h_n = run_with_lengths("gru", run, x, [h], weights, lengths, dropout if training else 0.0)
    return (F.transpose(y, (1, 0, 2)) if batch_first else y), h_n


@layer("lstm", _PARAMETERS)
def lstm(
    x: Operand,
    h: Operand | None = None,
    c: Operand | None = None,
    w0_init: Initializer | int | None = None,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    num_layers: int = 1,
    dropout: float = 0.0,
    bidirectional: bool = False,
    training: bool = True,
    rng: Rng | None = None,
    with_bias: bool = True,
    fix_parameters: bool = False,
    name: str | None = None,
    *,
    batch_first: bool = False,
    lengths: Operand | None = None,
    hidden_size: int | None = None,
) -> Any:
    """Long short-term memory over a sequence, in any number of layers.

    Args:
        x: Sequence. Shape (T, B, I), or (B, T, I) if `batch_first`.
        h: Initial outputs. Shape (layers, directions, B, H). Default: zeros.
        c: Initial memory. Shape of `h`. Default: zeros.
        w0_init: Initial weight of the first layer. Default: uniform within Glorot's limits.
        w_init: Initial weight of the further layers. Default: uniform within Glorot's limits.
        num_layers: Number of layers; left at 1, it is that of `h`, if that is given.
        dropout: Part of the outputs between layers that is dropped.
        bidirectional: Also run backwards in time.
        training: Keep what the gradient needs.
        batch_first: The first axis of `x` and of the outputs is that of the sequences.
        lengths: Number of steps of each sequence; the rest is padding, which is not read, and whose outputs are zeros. The
            last states are those after so many steps, and a backward direction begins there. Shape (B,).
        hidden_size: Features of the state, H, where no initial state is given.

    Returns:
        The outputs of the last layer, shape (T, B, directions * H) or, if `batch_first`, (B, T, directions * H),
        and the last outputs and memory, shape of `h`.

    Notes:
        With an integer, the size of the state, in place of `w0_init` this is `lstm_cell`, as in old programs.

    References:
        Hochreiter and Schmidhuber (1997), Long short-term memory.

    Example:
        >>> x, h = nn.Variable((5, 8, 3)), nn.Variable((1, 1, 8, 4))  # 5 steps, batch 8
        >>> y, h_n, c_n = PF.lstm(x, h, nn.Variable(h.shape))
        >>> y.shape, c_n.shape
        ((5, 8, 4), (1, 1, 8, 4))
    """
    if isinstance(w0_init, int):
        if h is None or c is None:
            raise ArgumentError("lstm: the cell must be given h and c, got None")
        return _step(x, h, c, w0_init, w_init, b_init, fix_parameters)
    x = steps_first("lstm", x, batch_first)
    h, c = initial_states("lstm", x, {"h": h, "c": c}, num_layers, bidirectional, hidden_size)
    num_layers = _layers_of("lstm", x, h, num_layers)
    weights = _weights(x, h, 4, num_layers, bidirectional, (w0_init, w_init, b_init), rng, with_bias, fix_parameters)
    if lengths is None:
        y, h_n, c_n = F.lstm(x, h, c, *weights, num_layers, dropout, bidirectional, training)
    else:

        def run(x: Any, states: Any, w: Any, b: Any) -> Any:
            return F.lstm(x, states[0], states[1], w, None, b, 1, 0.0, False, training)

        y, h_n, c_n = run_with_lengths("lstm", run, x, [h, c], weights, lengths, dropout if training else 0.0)
    return (F.transpose(y, (1, 0, 2)) if batch_first else y), h_n, c_n


@layer("lstm", [("affine/W", "Weight.", "(I + H, 4, H)", True), ("affine/b", "Bias.", "(4, H)", True)])
def lstm_cell(
    x: Operand,
    h: Operand,
    c: Operand,
    state_size: int,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    name: str | None = None,
) -> tuple[Operand, Operand]:
    """One step of a long short-term memory.

    i, o, f, g = split((x, h) W + b), c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').

    Args:
        x: Input. Shape (B, I).
        h: Last output. Shape (B, H).
        c: Last memory. Shape (B, H).
        state_size: H.

    Returns:
        The new output and the new memory, shape (B, H).

    References:
        Hochreiter and Schmidhuber (1997), Long short-term memory; Gers et al. (1999), Learning to forget.

    Example:
        >>> h, c = nn.Variable((8, 4)), nn.Variable((8, 4))
        >>> h, c = PF.lstm_cell(nn.Variable((8, 3)), h, c, 4)
        >>> h.shape, c.shape
        ((8, 4), (8, 4))
    """
    return _step(x, h, c, state_size, w_init, b_init, fix_parameters)


def _step(
    x: Operand,
    h: Operand,
    c: Operand,
    state_size: int,
    w_init: Initializer | None,
    b_init: Initializer | None,
    fix_parameters: bool,
) -> tuple[Operand, Operand]:
    xh = F.concatenate(x, h, axis=1)
    gates: Any = affine(xh, (4, state_size), w_init=w_init, b_init=b_init, fix_parameters=fix_parameters)
    i, o, f, g = F.split(gates, axis=1)
    c_next: Any = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(c_next), c_next


@fitted_methods()
class LSTMCell:
    """A long short-term memory that keeps its state between calls.

    Args:
        batch_size: Number of samples.
        state_size: Length of the state.
        h: First output. Default: zeros.
        c: First memory. Default: zeros.
        name: Name of a scope around the parameters.

    Example:
        >>> cell = PF.LSTMCell(batch_size=8, state_size=4)
        >>> for x in [nn.Variable((8, 3)) for _ in range(5)]:
        ...     y = cell(x)
        >>> y.shape
        (8, 4)
    """

    @door
    def __init__(
        self,
        batch_size: int,
        state_size: int,
        h: Variable | None = None,
        c: Variable | None = None,
        name: str | None = None,
    ) -> None:
        shape = (batch_size, state_size)
        for given, what in ((h, "h"), (c, "c")):
            if given is not None and given.shape != shape:
                raise ShapeError(f"LSTMCell: {what} must have the shape {shape}, got {given.shape}")
        self.batch_size = batch_size
        self.state_size = state_size
        self.name = name
        self.h = _zeros(shape) if h is None else h
        self.c = _zeros(shape) if c is None else c

    def __call__(
        self,
        x: Variable,
        w_init: Initializer | None = None,
        b_init: Initializer | None = None,
        fix_parameters: bool = False,
    ) -> Variable:
        """Take one step.

        Args:
            x: Input. Shape (B, I).
            w_init: Initial weight. Default: uniform within Glorot's limits.
            b_init: Initial bias. Default: zeros.
            fix_parameters: Do not train the parameters.

        Returns:
            The new output, shape (B, H); it is also kept as `h`.
        """
        with parameter_scope(self.name or ""):
            self.h, self.c = lstm_cell(x, self.h, self.c, self.state_size, w_init, b_init, fix_parameters)
        return self.h

    def reset_state(self) -> None:
        """Set the output and the memory to zero."""
        self.h.data.zero()
        self.c.data.zero()


def _zeros(shape: tuple[int, int]) -> Variable:
    variable = Variable(shape)
    variable.data.zero()
    return variable


def _layers_of(function: str, x: Operand, h: Operand, num_layers: int) -> int:
    """Return the number of layers, which is that of the states.

    Raises:
        ShapeError: when x or h has another number of axes, or another number of layers than 1, the default, is given for
            states of other layers.
    """
    n_states = h.shape[0]
    if num_layers not in (1, n_states):
        raise ShapeError(f"{function}: num_layers must be 1 or the first length of h, got {num_layers} and {n_states}")
    return n_states


def _weights(
    x: Operand,
    h: Operand,
    n_gates: int | None,
    num_layers: int,
    bidirectional: bool,
    initializers: tuple[Initializer | None, Initializer | None, Initializer | None],
    rng: Rng | None,
    with_bias: bool,
    fix_parameters: bool,
) -> tuple[Variable, Variable | None, Variable | None]:
    """Weight of the first layer, of the others, and bias, with an axis of gates unless there is only one."""
    n_inputs, n_hidden = x.shape[2], h.shape[3]
    n_directions = 2 if bidirectional else 1
    gates: Shape = () if n_gates is None else (n_gates,)
    w0_init, w_init, b_init = initializers
    w0_init = _two_parts(n_inputs, n_hidden, rng) if w0_init is None else w0_init
    w_init = _two_parts(n_directions * n_hidden, n_hidden, rng) if w_init is None else w_init
    b_init = ZEROS if b_init is None else b_init
    w0 = trained("weight_l0", (n_directions, *gates, n_hidden, n_inputs + n_hidden), w0_init, fix_parameters)
    w = b = None
    if num_layers > 1:
        w_shape = (num_layers - 1, n_directions, *gates, n_hidden, (n_directions + 1) * n_hidden)
        w = trained("weight", w_shape, w_init, fix_parameters)
    if with_bias:
        # The GRU has a bias for the recurrent part of its candidate as well.
        biases = (4,) if n_gates == 3 else gates
        b = trained("bias", (num_layers, n_directions, *biases, n_hidden), b_init, fix_parameters)
    return w0, w, b


def _two_parts(n_inputs: int, n_hidden: int, rng: Rng | None) -> Initializer:
    """Glorot's limits for the columns of the inputs and for those of the state, each on its own."""

    def initial(shape: Shape) -> np.ndarray[Any, Any]:
        parts = [glorot(n, n_hidden, rng=rng)((*shape[:-1], n)) for n in (n_inputs, n_hidden)]
        return np.concatenate(parts, axis=-1)

    return initial
