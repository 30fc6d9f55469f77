"""Callables that run before and after each function: given to one forward or backward, or set for all of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.engine.graph.node import Node, invalidate
from nn_core.errors import ArgumentError

if TYPE_CHECKING:
    from nn_core.function import Function

#: A hook as programs write it: it is called with the function.
Hook: TypeAlias = Callable[["Function"], object]
#: A hook as the engine calls it.
NodeHook: TypeAlias = Callable[[Node], object]

PRE_HOOKS: dict[str, Hook] = {}
POST_HOOKS: dict[str, Hook] = {}


@fitted
def set_function_pre_hook(key: str, function_pre_hook: Hook) -> None:
    """Call `function_pre_hook(function)` before every function that runs, until it is unset under `key`.

    Example:
        >>> nn.set_function_pre_hook("names", lambda function: print(function.info.type_name))
        >>> y = F.tanh(nn.Variable.from_numpy_array([0.5]))
        >>> y.forward()
        Tanh
        >>> nn.unset_function_pre_hook("names")
    """
    _require_callable(function_pre_hook)
    # plans and traces run without asking for hooks: `invalidate` ends those that do
    PRE_HOOKS[key] = function_pre_hook
    invalidate()


@fitted
def unset_function_pre_hook(key: str) -> None:
    """Remove the hook that was set under `key`.

    Example:
        >>> nn.set_function_pre_hook("names", print)
        >>> nn.unset_function_pre_hook("names")
    """
    PRE_HOOKS.pop(key, None)
    invalidate()


@fitted
def set_function_post_hook(key: str, function_post_hook: Hook) -> None:
    """Call `function_post_hook(function)` after every function that has run, until it is unset under `key`.

    Example:
        >>> nn.set_function_post_hook("names", lambda function: print(function.info.type_name))
        >>> y = F.tanh(nn.Variable.from_numpy_array([0.5]))
        >>> y.forward()
        Tanh
        >>> nn.unset_function_post_hook("names")
    """
    _require_callable(function_post_hook)
    POST_HOOKS[key] = function_post_hook
    invalidate()


@fitted
def unset_function_post_hook(key: str) -> None:
    """Remove the hook that was set under `key`.

    Example:
        >>> nn.set_function_post_hook("names", print)
        >>> nn.unset_function_post_hook("names")
    """
    POST_HOOKS.pop(key, None)
    invalidate()


def active_hooks(
    pre: Hook | None, post: Hook | None, *, is_backward: bool = False
) -> tuple[list[NodeHook], list[NodeHook]] | None:
    """Return the hooks to run before and after each function, or None when there are none at all.

    A hook that was set for all passes is called in a backward pass by its method `backward`, if it has one.
    """
    if pre is None and post is None and not PRE_HOOKS and not POST_HOOKS:
        return None
    for hook in (pre, post):
        if hook is not None:
            _require_callable(hook)
    before = [*PRE_HOOKS.values(), *([] if pre is None else [pre])]
    after = [*([] if post is None else [post]), *_set_for_all(is_backward)]
    return [_on_node(hook) for hook in before], [_on_node(hook) for hook in after]


def _set_for_all(is_backward: bool) -> list[Hook]:
    return [getattr(hook, "backward", hook) if is_backward else hook for hook in POST_HOOKS.values()]


def _on_node(hook: Hook) -> NodeHook:
    return lambda node: hook(node.as_function())


def _require_callable(hook: Hook) -> None:
    if not callable(hook):
        raise ArgumentError(f"hook: must be callable or None, got {described(hook)}")
