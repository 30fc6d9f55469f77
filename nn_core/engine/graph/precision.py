"""Half precision rounds once: functions made of others, and gradient rules, compute in float32 inside."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final, ParamSpec, TypeVar

from nn_core.context import Context, context_scope, get_current_context
from nn_core.engine.dispatch.blame import PluginCall
from nn_core.engine.dispatch.registry import REGISTRY
from nn_core.operators.rules.registry import ROUND_ONCE, GradientCall, GradientRule
from nn_core.operators.spec.model import FunctionSpec

P = ParamSpec("P")
R = TypeVar("R")

#: Dtypes in which intermediate results would overflow, or lose most of their digits.
NARROW: Final = ("float16", "bfloat16")


@functools.lru_cache(maxsize=256)
def wide_context(context: Context) -> Context:
    """Return `context` with float32 in place of half precision."""
    return context.in_dtype("float32") if context.dtype in NARROW else context


def widens(spec: FunctionSpec, context: Context) -> bool:
    """Return whether the gradient rule of a function computes in float32, though the function computes in half precision."""
    return context.dtype in NARROW and spec.name not in ROUND_ONCE


def graph_of_rule(F: Any, rule: GradientRule, spec: FunctionSpec, call: GradientCall) -> Any:
    """Build the gradients of a function as parts of a graph; in half precision they are float32."""
    context = get_current_context()
    added = REGISTRY.added(spec.name)
    wide = wide_context(context) if widens(spec, context) else context
    with PluginCall(added.plugin, f"the gradient rule of F.{added.key}") if added else nullcontext():
        if wide is context:
            return rule(F, call)
        with context_scope(wide):
            return rule(F, call)


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that calls several others: in half precision all of them compute in float32.

    So does the last one: the result is float32, as that of a sum or a mean in half precision.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        context = get_current_context()
        if context.dtype not in NARROW:
            return function(*args, **kwargs)
        with context_scope(wide_context(context)):
            return function(*args, **kwargs)

    return call
