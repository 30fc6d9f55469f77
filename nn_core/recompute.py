"""Saving memory: outputs that are dropped after the forward pass and computed again in the backward pass."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from nn_core.engine.graph.modes import get_global_recompute as get_global_recompute
from nn_core.engine.graph.modes import recompute as recompute
from nn_core.engine.graph.modes import set_global_recompute as set_global_recompute

P = ParamSpec("P")
R = TypeVar("R")


def recompute_fn(recompute_: bool = True) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that it runs inside ``recompute(recompute_)``.

    Example:
        >>> @nn.recompute_fn()
        ... def block(x):
        ...     return F.tanh(PF.affine(x, 4))
        >>> block(nn.Variable((8, 4), need_grad=True)).shape
        (8, 4)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            with recompute(recompute_):
                return function(*args, **kwargs)

        return wrapped

    return decorate
