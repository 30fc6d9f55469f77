"""Frozen parameters: a layer asks for a parameter to train each time it is called, and gets such a one as it is."""

import weakref
from collections.abc import Iterable
from typing import Final

from nn_core.variable import Variable

#: The frozen parameters, and whether each was trained before.
FROZEN: Final[weakref.WeakKeyDictionary[Variable, bool]] = weakref.WeakKeyDictionary()


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
