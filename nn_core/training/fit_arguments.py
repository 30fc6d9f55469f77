"""Checks of the arguments of `fit`, before anything is made, and its name in errors of what it calls."""

import operator
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError, NNCoreError
from nn_core.variable import Variable

_Check: TypeAlias = Callable[[Any], bool]
#: Functions and classes that `fit` gives its arguments to.
_INNER: Final = frozenset(
    {"Updater", "Trainer", "extend", "early_stop", "set_parameters", "DataIterator", "LossScale", "weight_decay"}
)


def _is_whole(value: Any, least: int, most: float = float("inf")) -> bool:
    with suppress(TypeError):
        return not isinstance(value, (bool, np.bool_)) and least <= operator.index(value) <= most
    return False


def _is_flag(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) or _is_whole(value, 0, 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_list_of_functions(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(callable, value))


def _is_list_of_extensions(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(callable(one) or isinstance(one, str) for one in value)


_FLAG: Final = (_is_flag, "True or False")
#: Whether an argument is right, and what it must be.
_CHECKS: Final[Mapping[str, tuple[_Check, str]]] = {
    "network": (lambda value: callable(value) and not isinstance(value, Variable), "a function or a module of the inputs"),
    "epochs": (lambda value: _is_number(value) and value > 0, "a number greater than 0"),
    "batch_size": (lambda value: _is_whole(value, 1), "a whole number of at least 1"),
    "patience": (lambda value: value is None or _is_whole(value, 1), "a whole number of at least 1, or None"),
    "seed": (lambda value: value is None or _is_whole(value, 0, 2**32 - 1), "a whole number from 0 to 2**32 - 1, or None"),
    "out": (lambda value: value is None or isinstance(value, (str, os.PathLike)), "the path of a folder, or None"),
    "schedule": (
        lambda value: value is None or callable(value) or hasattr(value, "get_learning_rate"),
        "a scheduler or a function of the iteration",
    ),
    "callbacks": (_is_list_of_functions, "a list of functions of epoch and values"),
    "extensions": (_is_list_of_extensions, "a list of extensions of the trainer, or triggers"),
    "clip_norm": (lambda value: value is None or (_is_number(value) and value > 0), "a number greater than 0, or None"),
    "weight_decay": (lambda value: value is None or _is_number(value), "a number, or None"),
    "loss_scale": (
        lambda value: value is None or _is_number(value) or hasattr(value, "scale"),
        "a LossScale, a number, or None",
    ),
    "accumulate": (lambda value: _is_whole(value, 1), "a whole number of at least 1"),
    **dict.fromkeys(("resume", "overwrite", "go_on", "fresh", "progress"), _FLAG),
}


def require_arguments(**given: Any) -> None:
    """Refuse arguments of `fit` that are of a wrong kind.

    Raises:
        ArgumentError: for the first one.
    """
    for name, value in given.items():
        is_right, what = _CHECKS.get(name, (lambda value: True, ""))
        if not is_right(value):
            raise ArgumentError(f"fit: {name} must be {what}, got {described(value)}")


@contextmanager
def told_as_fit() -> Iterator[None]:
    """Name `fit` in errors of what it calls with its arguments."""
    try:
        yield
    except NNCoreError as error:
        name, _, text = str(error).partition(": ")
        if name in _INNER:
            raise type(error)(f"fit: {text}") from None
        raise


def require_variables(result: Any, caller: str = "fit") -> Variable | tuple[Variable, ...]:
    """Return what a network has returned, several Variables as a tuple.

    Raises:
        ArgumentError: when it is neither a Variable nor some.
    """
    if isinstance(result, (tuple, list)) and result and all(isinstance(one, Variable) for one in result):
        return result[0] if len(result) == 1 else tuple(result)
    if not isinstance(result, Variable):
        raise ArgumentError(f"{caller}: network must return a Variable, or a tuple of some, got {described(result)}")
    return result
