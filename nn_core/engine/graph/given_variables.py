"""Checks of what functions and layers of plugins return, which would otherwise fail where nobody names the plugin."""

from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import FunctionType
from typing import Any

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.node import Value
from nn_core.errors import PluginError


@cache
def giving_variables(target: Callable[..., Any], label: str) -> Callable[..., Any]:
    """Return a function of a plugin, refused where it is given Variables or NdArrays and returns none.

    One without such inputs may compute anything, such as a tree of classes from their frequencies.

    Args:
        target: The function.
        label: Its name and that of the plugin, for the message.
    """

    if not isinstance(target, FunctionType):  # a class makes objects
        return target

    @wraps(target)
    def checked(*args: Any, **kwargs: Any) -> Any:
        result = target(*args, **kwargs)
        if not _has_variables(result) and _has_variables((*args, *kwargs.values())):
            raise PluginError(f"{label}: must return Variables, got {described(result)}")
        return result

    return checked


def _has_variables(result: Any) -> bool:
    if isinstance(result, (Value, NdArray)):
        return True
    parts = result.values() if isinstance(result, Mapping) else result if isinstance(result, (tuple, list)) else ()
    return any(_has_variables(part) for part in parts)
