"""A kernel of ``F.abs`` for NumPy arrays; it takes float32 and leaves the rest to the kernel that is there."""

from collections.abc import Sequence

import numpy as np

from nn_core.ext import Array, Call, Refusal, Runner


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
