"""Frozen parameters: a layer asks for a parameter to train each time it is called, and gets such a one as it is."""

import weakref
from collections.abc import Iterable
from typing import Final

from nn_core.logger import logger
from nn_core.variable import Variable

#: The frozen parameters, and whether each was trained before.
FROZEN: Final[weakref.WeakKeyDictionary[Variable, bool]] = weakref.WeakKeyDictionary()
#: Holds something as soon as the message about parameters that are trained again was given.
_HAS_TOLD: Final[list[bool]] = []


def freeze(parameters: Iterable[Variable]) -> None:
    """Let parameters need no gradient, whatever layers ask for."""
    for parameter in parameters:
        FROZEN.setdefault(parameter, parameter.need_grad)
        parameter.need_grad = False


def unfreeze(parameters: Iterable[Variable]) -> None:
    """Let frozen parameters be as they were before; others stay as they are."""
    for parameter in parameters:
        if FROZEN.pop(parameter, False):
            parameter.need_grad = True


def warn_of_thawing(path: str) -> None:
    """Log once per process that a parameter with ``need_grad = False`` is trained again because a layer has asked for it."""
    if _HAS_TOLD:
        return
    _HAS_TOLD.append(True)
    logger.warning(
        "need_grad = False holds until a layer asks for the parameter again, as one now does for %r, which is trained from "
        "here on (this is logged once)\n"
        "  hint: nn.freeze_parameters({name: parameter}) lasts",
        path,
    )
