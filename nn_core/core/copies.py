"""Copies of modules."""

import copy
from typing import TYPE_CHECKING, Final

from nn_core.errors import ArgumentError

if TYPE_CHECKING:
    from nn_core.core.module import Module

_MODES: Final = ("share", "copy", "init")


def copied(module: "Module", mode: str) -> "Module":
    """Return a module like another one; see ``Module.copy``."""
    if not isinstance(mode, str) or mode not in _MODES:
        raise ArgumentError(f"Module.copy: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    twin = copy.deepcopy(module)
    if mode == "share":
        own = module.get_parameters()
        for name, parameter in twin.get_parameters().items():
            parameter.data = own[name].data
    elif mode == "init":
        twin.clear_parameters()
    return twin
