"""Callables that run before and after each parameter that any solver changes."""

from collections.abc import Callable
from typing import TypeAlias

from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.errors import ArgumentError

Hook: TypeAlias = Callable[[], object]

PRE_HOOKS: dict[str, Hook] = {}
POST_HOOKS: dict[str, Hook] = {}


@fitted
def set_solver_pre_hook(key: str, solver_pre_hook: Hook) -> None:
    """Call `solver_pre_hook()` before each change of a parameter or its gradient by a solver, until it is unset.

    Example:
        >>> nn.set_solver_pre_hook("say", lambda: print("before a parameter"))
        >>> nn.unset_solver_pre_hook("say")
    """
    PRE_HOOKS[key] = solver_pre_hook


@fitted
def unset_solver_pre_hook(key: str) -> None:
    """Remove the hook that was set under `key`.

    Example:
        >>> nn.set_solver_pre_hook("say", print)
        >>> nn.unset_solver_pre_hook("say")
    """
    PRE_HOOKS.pop(key, None)


@fitted
def set_solver_post_hook(key: str, solver_post_hook: Hook) -> None:
    """Call `solver_post_hook()` after each change of a parameter or its gradient by a solver, until it is unset.

    Example:
        >>> nn.set_solver_post_hook("say", lambda: print("after a parameter"))
        >>> nn.unset_solver_post_hook("say")
    """
    POST_HOOKS[key] = solver_post_hook


@fitted
def unset_solver_post_hook(key: str) -> None:
    """Remove the hook that was set under `key`.

    Example:
        >>> nn.set_solver_post_hook("say", print)
        >>> nn.unset_solver_post_hook("say")
    """
    POST_HOOKS.pop(key, None)


def active_hooks(pre: Hook | None, post: Hook | None) -> tuple[list[Hook], list[Hook]] | None:
    """Return the hooks to run before and after each parameter, or None when there are none at all."""
    if pre is None and post is None and not PRE_HOOKS and not POST_HOOKS:
        return None
    for hook in (pre, post):
        if hook is not None and not callable(hook):
            raise ArgumentError(f"hook: must be callable or None, got {described(hook)}")
    before = [*PRE_HOOKS.values(), *([] if pre is None else [pre])]
    after = [*([] if post is None else [post]), *POST_HOOKS.values()]
    return before, after
