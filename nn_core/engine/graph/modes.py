"""The modes in which functions are called: at once or later, with gradients or without, to be computed again or not."""

from contextlib import AbstractContextManager
from typing import Final

from nn_core.engine.error_messages.refusal import checked_flag, fitted
from nn_core.engine.runtime.context_values import Mode

AUTO_FORWARD: Final[Mode[bool]] = Mode("auto_forward", False)
NO_GRAD: Final[Mode[bool]] = Mode("no_grad", False)
RECOMPUTE: Final[Mode[bool]] = Mode("recompute", False)


def auto_forward(auto: bool = True) -> AbstractContextManager[bool]:
    """Compute functions at the moment they are called, inside a ``with`` block (dynamic graphs).

    Example:
        >>> x = nn.Variable.from_numpy_array([1.0, 2.0])
        >>> with nn.auto_forward():
        ...     y = F.sum(x * x)  # computed here
        >>> y.item()
        5.0
    """
    return AUTO_FORWARD.scope(checked_flag("auto_forward", auto))


@fitted
def set_auto_forward(auto: bool) -> None:
    """Compute functions at the moment they are called, from now on.

    Example:
        >>> nn.set_auto_forward(True)
        >>> F.sum(nn.Variable.from_numpy_array([1.0, 2.0])).item()
        3.0
        >>> nn.set_auto_forward(False)
    """
    AUTO_FORWARD.set_default(checked_flag("auto_forward", auto))


def get_auto_forward() -> bool:
    """Return whether functions are computed at the moment they are called.

    Example:
        >>> with nn.auto_forward():
        ...     print(nn.get_auto_forward())
        True
    """
    return AUTO_FORWARD.get()


def no_grad(no_grad_: bool = True) -> AbstractContextManager[bool]:
    """Take parameters as constants, inside a ``with`` block; functions that are computed as they are called keep no graph.

    Gradients pass through the functions of a static graph to inputs that need one.

    Example:
        >>> with nn.no_grad():
        ...     y = PF.affine(nn.Variable((8, 4)), 3, name="frozen")
        >>> y.need_grad
        False
    """
    return NO_GRAD.scope(checked_flag("no_grad", no_grad_))


def get_no_grad() -> bool:
    """Return whether parameters are taken as constants now."""
    return NO_GRAD.get()


def stops_gradients() -> bool:
    """Return whether functions that are called now need no gradient, whatever their inputs say."""
    # a static graph may be run with gradients later; in one the mode only makes parameters constants
    return NO_GRAD.get() and AUTO_FORWARD.get()


def recompute(recompute_: bool = True) -> AbstractContextManager[bool]:
    """Mark the outputs of functions built inside a ``with`` block to be dropped and computed again in backward().

    Around a whole network, some are kept where that saves memory: so only a segment at a time is computed again.

    Example:
        >>> x = nn.Variable((8, 4), need_grad=True)
        >>> with nn.recompute():
        ...     h = F.tanh(x)
        >>> h.recompute
        True
    """
    return RECOMPUTE.scope(checked_flag("recompute", recompute_))


@fitted
def set_global_recompute(recompute: bool) -> None:
    """Mark the outputs of all functions built from now on to be dropped and computed again in backward().

    Example:
        >>> nn.set_global_recompute(True)
        >>> F.tanh(nn.Variable((8, 4))).recompute
        True
        >>> nn.set_global_recompute(False)
    """
    RECOMPUTE.set_default(checked_flag("recompute", recompute))


def get_global_recompute() -> bool:
    """Return whether outputs of functions are marked to be computed again."""
    return RECOMPUTE.get()
