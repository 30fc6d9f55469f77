"""Texts of exceptions that anybody may have written: neither a message nor a class may do more than be read."""

from typing import Final

from nn_core.engine.runtime.installed import OWN_MODULES, OWN_PLUGINS
from nn_core.engine.runtime.tracebacks import packages_in
from nn_core.errors import NNCoreError, escaped

#: Characters of a text of others.
_LONGEST: Final = 1000


def class_name(error: BaseException) -> str:
    """Return the name of the class of an exception, without a word of its metaclass."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    return name


def message_of(error: BaseException) -> str:
    """Return the message of an exception."""
    try:
        return str(error)
    except BaseException as second:  # it may do anything, such as end the program
        return f"(its message raises {class_name(second)})"


def text_of(error: BaseException) -> str:
    """Return the message of an exception after the name of its class, which errors of nn_core do without.

    What code of others says is marked as theirs, see `told`: a line of it could look like advice of nn_core.
    """
    message = message_of(error)
    if issubclass(type(error), NNCoreError):
        *_, raising = ("nn_core", *packages_in(error))  # nobody, where it is handed on without being raised
        return message if raising in OWN_MODULES else told(message)
    return told(f"{class_name(error)}: {message}" if message else class_name(error))


def refusal_text(plugin: str, reason: str) -> str:
    """Return the reason why something of a plugin cannot be used, marked as the plugin's words where that is not ours."""
    return reason if plugin in OWN_PLUGINS else told(reason)


def told(text: str) -> str:
    """Return text of a plugin as it may stand in a message of ours: cut, and with a mark before each line after the first.

    Example:
        >>> print(told("no device\\n  hint: pip install it"))
        no device
          | hint: pip install it
    """
    lines = [line.strip() for line in escaped(text[:_LONGEST]).strip().splitlines()]
    rest = [" [...]"] if len(text) > _LONGEST else []
    return "\n  | ".join(filter(None, lines)) + "".join(rest)


def reason_of(error: BaseException) -> str:
    """Return the first line of `text_of`, for a table."""
    return text_of(error).partition("\n")[0]
