"""The table of reference kernels, by function name."""

from collections.abc import Callable
from typing import Any, TypeAlias

from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.registrations import registering

#: ``kernel(xp, *inputs, **args) -> output or tuple of outputs``; see docs/design/0001-operator-contract.md.
ReferenceKernel: TypeAlias = Callable[..., Any]

KERNELS: dict[str, ReferenceKernel] = {}


@fitted
def kernel(*names: str) -> Callable[[ReferenceKernel], ReferenceKernel]:
    """Register the decorated function as the reference kernel of each function in `names`.

    Raises:
        PluginError: when one of them has a reference kernel.

    Example:
        >>> from nn_core.ext import kernel
        >>> @kernel("demo.Swish")
        ... def swish(xp, x, *, beta):
        ...     return x / (1 + xp.exp(-beta * x))
        >>> swish(np, np.zeros(2), beta=1.0).tolist()
        [0.0, 0.0]
    """
    return registering(KERNELS, "reference kernel", names)
