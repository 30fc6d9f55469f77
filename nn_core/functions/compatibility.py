"""Names that programs expect in ``nn_core.functions`` beside the functions themselves."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from nn_core.context import get_current_context
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.graph.modes import get_auto_forward

__all__ = ["function_api", "get_auto_forward", "get_current_context"]

Result = TypeVar("Result")


@fitted
def function_api(func: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function so that it gets the current context as its first argument.

    Args:
        func: Takes a Context, then whatever its callers pass.

    Returns:
        The function without the first argument, with the name and docstring of `func`.

    Example:
        >>> @function_api
        ... def backend(ctx):
        ...     return ctx.backend
    """

    @functools.wraps(func)
    def function(*args: Any, **kwargs: Any) -> Result:
        return func(get_current_context(), *args, **kwargs)

    return function
