"""Mistakes that have no effect in NNabla: refused, unless a program that was written for it runs unchanged."""

from typing import Final

from nn_core.errors import NNCoreError
from nn_core.logger import logger
from nn_core.settings import is_nnabla_program

#: The messages that were logged.
_TOLD: Final[set[str]] = set()


def overlook(error: NNCoreError, instead: str) -> None:
    """Raise `error`; in the mode for unchanged programs log its text once, followed by `instead`, which says what happens.

    Raises:
        NNCoreError: `error`, outside of that mode.
    """
    if not is_nnabla_program():
        raise error
    text = f"{str(error).splitlines()[0]}, {instead}"
    if text not in _TOLD:
        _TOLD.add(text)
        logger.warning("%s", text)
