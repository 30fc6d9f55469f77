"""Texts of exceptions that anybody may have written: neither a message nor a class may do more than be read."""

from nn_core.errors import NNCoreError


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
    """Return the message of an exception after the name of its class, which errors of nn_core do without."""
    message = message_of(error)
    if issubclass(type(error), NNCoreError):
        return message
    return f"{class_name(error)}: {message}" if message else class_name(error)


def reason_of(error: BaseException) -> str:
    """Return the first line of `text_of`, for a table."""
    return text_of(error).partition("\n")[0]
