"""Imperative calls: with an NdArray among its inputs a call computes at once and gives NdArrays.

For a single function `nn_core.engine.graph.apply` sees to that. What calls several functions (composites, parametric
functions, operators) decides it here once, before the first of them: otherwise some would extend a graph that nobody
computes, and the others would read its values.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from nn_core.engine.arrays.leases import UNCOMPUTED
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import FOREIGN, raise_refusal, require_fit, speak_for
from nn_core.engine.graph.modes import AUTO_FORWARD, NO_GRAD
from nn_core.errors import GraphError
from nn_core.variable import Variable

P = ParamSpec("P")
R = TypeVar("R")


def array_of(value: Any, function: str) -> Any:
    """Return the NdArray of a Variable, which must have been computed; everything else as it is.

    Raises:
        GraphError: when the function that computes the Variable has not run.
    """
    if not isinstance(value, Variable):
        return value
    array = value.storage.data
    if array.synced.lease is UNCOMPUTED:
        raise GraphError(
            f"{function}: a Variable beside an NdArray must be computed before the call, got the output of "
            f"{value.parent!r}, which has not run\n"
            "  hint: call forward() on the Variable first, or pass Variables only to extend its graph"
        )
    return array


def as_one_kind(function: str, *values: Any) -> tuple[Any, ...]:
    """`values`; if there is an NdArray among them, with the NdArrays of the Variables in place of these."""
    if any(isinstance(value, NdArray) for value in values):
        return tuple([array_of(value, function) for value in values])
    return values


def one_kind(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that calls several others: with an NdArray among its arguments the whole call is imperative.

    Variables among the arguments are replaced by their NdArrays then, and Variables that the function itself brings in,
    as parameters, are used without building a graph.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if has_ndarray(args) or (kwargs and has_ndarray(kwargs.values())):
                return call_at_once(function, *args, **kwargs)
            return function(*args, **kwargs)
        except FOREIGN as error:
            speak_for(function, error)
            raise_refusal(function, args, kwargs, error)
        except TypeError as error:
            speak_for(function, error)
            require_fit(function, args, kwargs)
            raise

    return call


def has_ndarray(values: Iterable[Any]) -> bool:
    """Return whether one of `values` is an NdArray."""
    return NdArray in map(type, values)


def call_at_once(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call `function` with NdArrays in place of Variables, and return its results as NdArrays."""
    name = function.__name__
    arrays: Any = [array_of(value, name) for value in args]
    named: Any = {key: array_of(value, name) for key, value in kwargs.items()}
    # parameters that the function brings in are Variables: with them too it computes at once, and keeps nothing for gradients
    with NO_GRAD.scope(True), AUTO_FORWARD.scope(True):
        results: Any = function(*arrays, **named)
    if isinstance(results, (list, tuple)):
        return type(results)(array_of(result, name) for result in results)  # type: ignore[return-value]  # as R, in NdArrays
    arrayed: R = array_of(results, name)
    return arrayed
