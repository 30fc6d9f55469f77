"""Reads of functions that have not run: an error that names the function, or zeros in programs of NNabla."""

from typing import Any, Final

import numpy as np

from nn_core.engine.arrays.leases import UNCOMPUTED
from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.graph.node import Node, Value
from nn_core.errors import GraphError
from nn_core.logger import logger
from nn_core.settings import is_nnabla_program

#: The warnings that were logged: one for each function that was read before it had run.
_LOGGED: Final[set[str]] = set()


def is_uncomputed(synced: SyncedArray) -> bool:
    """Return whether nobody has written the values yet: neither the function that computes them nor the program."""
    return synced.lease is UNCOMPUTED and synced.pending_fill is None


def require_values(node: Node, value: Value) -> None:
    """Refuse a pass in which a function reads a variable that nobody has written to.

    Where an unchanged program of NNabla runs, the variable gets zeros instead, and this is logged.

    Raises:
        GraphError: when `value`, which no function of the pass computes, was unlinked from a function that has not run.
    """
    if not is_uncomputed(value.storage.data.synced):
        return
    text = (
        f"forward: an input of {node.spec.api} must be computed before it is read, got a variable of shape "
        f"{value.plain_shape} that was unlinked from a function which has not run"
    )
    hint = "call forward() on the variable that it was unlinked from first, or build the graph inside nn_core.auto_forward()"
    if not is_nnabla_program():
        raise GraphError(f"{text}\n  hint: {hint}")
    if text not in _LOGGED:
        _LOGGED.add(text)
        logger.warning("%s; it is read as zeros (this is logged once)\n  hint: %s", text, hint)
    value.storage.data.zero()


def unwritten(value: Value, what: str, hint: str) -> np.ndarray[Any, Any]:
    """Refuse to show `what` of a variable whose function has not run.

    Returns:
        Zeros of its shape, which cannot be written to, where an unchanged program of NNabla runs; this is logged.

    Raises:
        GraphError: in every other program.
    """
    made_by = "a function" if value.producer is None else repr(value.producer)
    text = f"{what}: a variable of shape {value.plain_shape} must be computed before this is read, got the output of {made_by}"
    if not is_nnabla_program():
        raise GraphError(f"{text}, which has not run\n  hint: {hint}")
    if text not in _LOGGED:
        _LOGGED.add(text)
        logger.warning("%s, which has not run; it is read as zeros (this is logged once)", text)
    zeros = np.zeros(value.plain_shape, np.float32)
    zeros.flags.writeable = False
    return zeros


def warn_of_no_gradient(name: str) -> None:
    """Say, once for each name, that backward() computes no gradient of a leaf that needs none."""
    which = f"variable {name!r}" if name else "the variable"
    text = f"Variable.g: {which} must need a gradient for backward() to compute it, got need_grad=False: zeros are read"
    if text not in _LOGGED:
        _LOGGED.add(text)
        logger.warning("%s\n  hint: nn.Variable(shape, need_grad=True), or x.need_grad = True", text)
