"""A kernel made of several, each for calls that the ones before it refuse."""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner


class FirstOf:
    """The first of some kernels that takes a call.

    Args:
        kernels: At least one, the best first. The choice refuses a call if the last one does.
    """

    def __init__(self, *kernels: Kernel) -> None:
        self._kernels: Final = kernels

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what no kernel takes."""
        refusal = None
        for kernel in self._kernels:
            refusal = kernel.refuse(call)
            if refusal is None:
                return None
        return refusal

    def layout(self, call: Call) -> str:
        """Return that of the chosen kernel."""
        layout = getattr(self._chosen(call), "layout", None)
        return "contiguous" if layout is None else str(layout(call))

    def forward(self, call: Call) -> Runner:
        """By the chosen kernel."""
        return self._chosen(call).forward(call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """By the chosen kernel."""
        return self._chosen(call).backward(call, wanted)

    def _chosen(self, call: Call) -> Kernel:
        return next(kernel for kernel in self._kernels if kernel.refuse(call) is None)
