"""Callables that run before and after each function: given to one forward or backward, or set for all of them."""

from collections.abc import Callable
from typing import TypeAlias

from nn_core.graph.node import Node, mutated

Hook: TypeAlias = Callable[[Node], object]

PRE_HOOKS: dict[str, Hook] = {}
POST_HOOKS: dict[str, Hook] = {}


def set_function_pre_hook(key: str, function_pre_hook: Hook) -> None:
    """Call `function_pre_hook(function)` before every function that runs, until it is unset under `key`."""
    PRE_HOOKS[key] = function_pre_hook
    mutated()


def unset_function_pre_hook(key: str) -> None:
    """Remove the hook that was set under `key`."""
    PRE_HOOKS.pop(key, None)
    mutated()


def set_function_post_hook(key: str, function_post_hook: Hook) -> None:
    """Call `function_post_hook(function)` after every function that has run, until it is unset under `key`."""
    POST_HOOKS[key] = function_post_hook
    mutated()


def unset_function_post_hook(key: str) -> None:
    """Remove the hook that was set under `key`."""
    POST_HOOKS.pop(key, None)
    mutated()


def active_hooks(pre: Hook | None, post: Hook | None) -> tuple[list[Hook], list[Hook]] | None:
    """The hooks to run before and after each function, or None when there are none at all."""
    if pre is None and post is None and not PRE_HOOKS and not POST_HOOKS:
        return None
    before = [*PRE_HOOKS.values(), *([pre] if pre else [])]
    after = [*([post] if post else []), *POST_HOOKS.values()]
    return before, after
