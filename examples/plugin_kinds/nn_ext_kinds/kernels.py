"""An operator, and a kernel of ``F.abs`` for NumPy arrays, which leaves what is not float32 to others."""

from collections.abc import Sequence

import numpy as np

from nn_core.ext import Array, Call, Namespace, Refusal, Runner, Shape, ShapeError, kernel, shape_rule


@shape_rule("kinds.CountPositive")
def count_positive_shape(x: Shape) -> tuple[Shape, ...]:
    """Shape (N,)."""
    if len(x) != 2:
        raise ShapeError(f"x must have 2 dimensions, got {x}")
    return (x[:1],)


@kernel("kinds.CountPositive")
def count_positive(xp: Namespace, x: Array) -> Array:
    """Compute the reference."""
    return xp.sum((x > 0).astype(x.dtype), axis=1)


class Abs:
    """See `nn_core.ext.Kernel`."""

    def refuse(self, call: Call) -> Refusal | None:
        """Take float32 only."""
        return None if call.dtype == "float32" else Refusal("takes float32 only")

    def forward(self, call: Call) -> Runner:
        """y = |x|."""

        def run(*arrays: Array) -> None:
            x, y = arrays
            np.abs(x, out=y)

        return run

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None
