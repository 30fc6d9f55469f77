"""Recurrent layers over whole sequences as modules; initial states that are not given are zero."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import nn_core.parametric_functions as PF
from nn_core.engine.error_messages.refusal import require_axes
from nn_core.initializer import Rng
from nn_core.layers.layer import Layer, checked
from nn_core.parametric_functions.initial import counted
from nn_core.parametric_functions.scope import Initializer


@dataclass(eq=False, repr=False)
class _Recurrent(Layer):
    """The fields that recurrent layers share."""

    n_units: int
    _: KW_ONLY
    num_layers: int = 1
    bidirectional: bool = False
    dropout: float = 0.0
    batch_first: bool = False
    output_state: bool = False
    w0_init: Initializer | None = None
    w_init: Initializer | None = None
    b_init: Initializer | None = None
    rng: Rng | None = None
    with_bias: bool = True
    fix_parameters: bool = False

    def __post_init__(self) -> None:
        counted("n_units", self.n_units, type(self).__name__)
        counted("num_layers", self.num_layers, type(self).__name__)

    def _run(self, layer: Any, x: Any, states: Sequence[Any], **further: Any) -> Any:
        """Run a parametric function over a sequence, from zeros where a state is None."""
        require_axes(type(self).__name__, ("batch", "length", "features") if self.batch_first else _AXES, x=x)
        settings = {name: value for name, value in self.settings().items() if name not in _OF_MODULES}
        y, *last = layer(x, *states, hidden_size=self.n_units, training=self.training, **settings, **further)
        return (y, *last) if self.output_state else y


_AXES = ("length", "batch", "features")
#: Fields that the parametric functions do not have.
_OF_MODULES = frozenset({"n_units", "output_state", "nonlinearity"})


@checked
@dataclass(eq=False, repr=False)
class RNN(_Recurrent):
    """Elman's recurrent network over a sequence.

    Args:
        n_units: Length of the state, H.
        num_layers: Number of layers.
        bidirectional: Also run backwards in time.
        dropout: Fraction of the outputs between layers that is dropped while the network trains.
        batch_first: Inputs and outputs have the axes of the batch and of the length in this order.
        output_state: Also return the last state.
        w0_init: Initial values of ``rnn/weight_l0``. Default: uniform within Glorot's limits.
        w_init: Initial values of ``rnn/weight``, of the further layers. Default: uniform within Glorot's limits.
        b_init: Initial values of ``rnn/bias``. Default: zeros.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.
        fix_parameters: Do not train the parameters.
        nonlinearity: "tanh" or "relu".

    Raises:
        ArgumentError: when `n_units` or `num_layers` is not positive.

    Example:
        >>> nn.layers.RNN(4)(nn.Variable((5, 8, 3))).shape  # 5 steps, batch 8
        (5, 8, 4)
    """

    _: KW_ONLY
    nonlinearity: str = "tanh"

    def call(self, x: Any, h: Any = None) -> Any:
        """Map shape (T, B, I) to (T, B, directions * H); `h`: initial state, shape (layers, directions, B, H)."""
        return self._run(PF.rnn, x, (h,), nonlinearity=self.nonlinearity)


@checked
@dataclass(eq=False, repr=False)
class GRU(_Recurrent):
    """Gated recurrent units over a sequence.

    Args:
        n_units: Length of the state, H.
        num_layers: Number of layers.
        bidirectional: Also run backwards in time.
        dropout: Fraction of the outputs between layers that is dropped while the network trains.
        batch_first: Inputs and outputs have the axes of the batch and of the length in this order.
        output_state: Also return the last state.
        w0_init: Initial values of ``gru/weight_l0``. Default: uniform within Glorot's limits.
        w_init: Initial values of ``gru/weight``, of the further layers. Default: uniform within Glorot's limits.
        b_init: Initial values of ``gru/bias``. Default: zeros.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.
        fix_parameters: Do not train the parameters.

    Raises:
        ArgumentError: when `n_units` or `num_layers` is not positive.

    References:
        Cho et al. (2014), Learning phrase representations using RNN encoder-decoder.

    Example:
        >>> layer = nn.layers.GRU(4, bidirectional=True, batch_first=True)
        >>> layer(nn.Variable((8, 5, 3))).shape
        (8, 5, 8)
    """

    def call(self, x: Any, h: Any = None) -> Any:
        """Map shape (T, B, I) to (T, B, directions * H); `h`: initial state, shape (layers, directions, B, H)."""
        return self._run(PF.gru, x, (h,))


@checked
@dataclass(eq=False, repr=False)
class LSTM(_Recurrent):
    """Long short-term memory over a sequence.

    Args:
        n_units: Length of the state, H.
        num_layers: Number of layers.
        bidirectional: Also run backwards in time.
        dropout: Fraction of the outputs between layers that is dropped while the network trains.
        batch_first: Inputs and outputs have the axes of the batch and of the length in this order.
        output_state: Also return the last outputs and the last memory.
        w0_init: Initial values of ``lstm/weight_l0``. Default: uniform within Glorot's limits.
        w_init: Initial values of ``lstm/weight``, of the further layers. Default: uniform within Glorot's limits.
        b_init: Initial values of ``lstm/bias``. Default: zeros.
        rng: Generator of the usual initial values.
        with_bias: Add a bias.
        fix_parameters: Do not train the parameters.

    Raises:
        ArgumentError: when `n_units` or `num_layers` is not positive.

    References:
        Hochreiter and Schmidhuber (1997), Long short-term memory.

    Example:
        >>> layer = nn.layers.LSTM(4, num_layers=2, output_state=True)
        >>> y, h, c = layer(nn.Variable((5, 8, 3)))  # 5 steps, batch 8
        >>> y.shape, h.shape
        ((5, 8, 4), (2, 1, 8, 4))
    """

    def call(self, x: Any, h: Any = None, c: Any = None) -> Any:
        """Map shape (T, B, I) to (T, B, directions * H); `h` and `c`: initial states, shape (layers, directions, B, H)."""
        return self._run(PF.lstm, x, (h, c))
