"""Calls of the generated functions that do not fit their signature, and the signature that `help` and `inspect` show."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from nn_core.engine.error_messages.refusal import surplus_arguments, unknown_keyword
from nn_core.errors import SignatureError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.operators.spec.signature import signature


def show_signatures(functions: Mapping[str, Any], specs: Sequence[FunctionSpec]) -> None:
    """Let `inspect.signature` and `help` show the signatures of the specification for the functions named as in `specs`."""
    for spec in specs:
        functions[spec.api].__signature__ = signature(spec)


def refuse(spec: FunctionSpec, surplus: Sequence[object], unknown: Mapping[str, object]) -> NoReturn:
    """Raise the error of a call with arguments that the function of `spec` does not take."""
    public = signature(spec)
    if unknown:
        raise SignatureError(f"{spec.api}: {unknown_keyword(public, next(iter(unknown)))}")
    n_taken = sum(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in public.parameters.values())
    raise SignatureError(f"{spec.api}: {surplus_arguments(public, n_taken + len(surplus))}")
