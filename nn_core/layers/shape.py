"""Changes of shape as modules."""

from collections.abc import Sequence
from dataclasses import dataclass

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.layers.layer import Layer, checked


@checked
@dataclass(eq=False, repr=False)
class Flatten(Layer):
    """All axes of a sample as one.

    Args:
        start_axis: First axis to join.
        end_axis: Last axis to join.

    Example:
        >>> nn.layers.Flatten()(nn.Variable((8, 3, 4, 4))).shape
        (8, 48)
    """

    start_axis: int = 1
    end_axis: int = -1

    def call(self, x: Operand) -> Operand:
        """Map shape (N, D_1, ..., D_m) to (N, D_1 ... D_m)."""
        return F.flatten(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class Reshape(Layer):
    """Samples of another shape.

    Args:
        shape: Shape of a sample, without the axis of the batch; -1 for the length that follows from the others.

    Example:
        >>> nn.layers.Reshape((3, 4, 4))(nn.Variable((8, 48))).shape
        (8, 3, 4, 4)
    """

    shape: Sequence[int]

    def call(self, x: Operand) -> Operand:
        """Map shape (N, D_1, ..., D_m) to (N, *shape)."""
        return F.reshape(x, (x.shape[0], *self.shape))
