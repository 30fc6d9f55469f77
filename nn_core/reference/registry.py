"""The table of reference kernels, by function name."""

from collections.abc import Callable
from typing import Any, TypeAlias

from nn_core.errors import PluginError

#: ``kernel(xp, *inputs, **args) -> output or tuple of outputs``; see docs/design/0001-operator-contract.md.
ReferenceKernel: TypeAlias = Callable[..., Any]

KERNELS: dict[str, ReferenceKernel] = {}


def kernel(*names: str) -> Callable[[ReferenceKernel], ReferenceKernel]:
    """Register the decorated function as the reference kernel of each function in `names`."""

    def decorate(function: ReferenceKernel) -> ReferenceKernel:
        for name in names:
            if name in KERNELS:
                raise PluginError(
                    f"{name}: a function has one reference kernel, got a second one from {function.__module__}"
                )
            KERNELS[name] = function
        return function

    return decorate
