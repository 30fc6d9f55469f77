"""Base class of the layers of this package."""

from typing import Any, TypeVar

from nn_core.core.module import Module
from nn_core.engine.error_messages.refusal import door

_L = TypeVar("_L", bound=type)


class Layer(Module):
    """A module whose fields are the arguments of one function; subclasses are dataclasses and define ``call``."""

    def settings(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in getattr(self, "__dataclass_fields__", ())}


def checked(layer: _L) -> _L:
    """Decorate a dataclass: a call of its constructor that does not fit is a SignatureError, with a suggestion."""
    constructor: Any = vars(layer)["__init__"]
    setattr(layer, "__init__", door(constructor))  # noqa: B010  # mypy refuses an assignment
    return layer
