"""Random functions as modules."""

from dataclasses import dataclass

import nn_core.functions as F
from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError
from nn_core.functions.operand import Operand
from nn_core.layers.layer import Layer, checked


@checked
@dataclass(eq=False, repr=False)
class Dropout(Layer):
    """Dropout while the network trains: each element is 0 with probability `p`, and divided by 1 - p otherwise.

    Args:
        p: Probability, at least 0 and less than 1.
        seed: Seed of the draws of this layer; -1: the keys that follow ``nn_core.seed``.

    Raises:
        ArgumentError: when `p` is outside of its range.

    Example:
        >>> layer = nn.layers.Dropout(0.3)
        >>> x = nn.Variable((8, 20))
        >>> layer(x) is x, layer.eval()(x) is x
        (False, True)
    """

    p: float = 0.5
    seed: int = -1

    def __post_init__(self) -> None:
        if not isinstance(self.p, (int, float)) or not 0 <= self.p < 1:
            raise ArgumentError(f"Dropout: p must be at least 0 and less than 1, got {described(self.p)}")

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.dropout(x, **self.settings()) if self.training and self.p else x
