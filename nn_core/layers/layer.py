"""Base class of the layers of this package."""

import functools
from dataclasses import fields
from typing import Any, Final, TypeVar

from nn_core.core.module import Module
from nn_core.engine.error_messages.refusal import door
from nn_core.errors import SignatureError
from nn_core.parametric_functions.scope import OneLayer

_L = TypeVar("_L", bound=type)

_HINT: Final = "the first input decides how many inputs a layer has; name all other arguments"


class Layer(Module):
    """A module whose fields are the arguments of one function; subclasses are dataclasses and define ``call``."""

    _kind_of_scope = OneLayer

    def settings(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in getattr(self, "__dataclass_fields__", ())}


def checked(layer: _L) -> _L:
    """Decorate a dataclass: a call of its constructor that does not fit is a SignatureError, with a suggestion.

    Few arguments can be given by position, because other libraries begin with the number of inputs, which would be taken for
    something else.
    """
    constructor: Any = door(vars(layer)["__init__"])
    n_positional = sum(not field.kw_only for field in fields(layer))

    @functools.wraps(constructor)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            constructor(self, *args, **kwargs)
        except SignatureError as error:
            if len(args) <= n_positional:
                raise
            raise SignatureError(f"{error}\n  hint: {_HINT}") from None

    setattr(layer, "__init__", init)  # noqa: B010  # mypy refuses an assignment
    return layer
