"""The modes in which functions are called: at once or later, with gradients or without, to be computed again or not."""

from contextlib import AbstractContextManager
from typing import Final

from nn_core.refusal import checked_flag
from nn_core.state import Mode

AUTO_FORWARD: Final[Mode[bool]] = Mode("auto_forward", False)
NO_GRAD: Final[Mode[bool]] = Mode("no_grad", False)
RECOMPUTE: Final[Mode[bool]] = Mode("recompute", False)


def auto_forward(auto: bool = True) -> AbstractContextManager[bool]:
    """Compute functions at the moment they are called, inside a ``with`` block (dynamic graphs)."""
    return AUTO_FORWARD.scope(checked_flag("auto_forward", auto))


def set_auto_forward(auto: bool) -> None:
    """Compute functions at the moment they are called, from now on."""
    AUTO_FORWARD.set_default(checked_flag("auto_forward", auto))


def get_auto_forward() -> bool:
    """Whether functions are computed at the moment they are called."""
    return AUTO_FORWARD.get()


def no_grad(no_grad_: bool = True) -> AbstractContextManager[bool]:
    """Take parameters as constants, inside a ``with`` block; functions that are computed as they are called keep no graph.

    Gradients pass through the functions of a static graph to inputs that need one.
    """
    return NO_GRAD.scope(checked_flag("no_grad", no_grad_))


def get_no_grad() -> bool:
    """Whether parameters are taken as constants now."""
    return NO_GRAD.get()


def stops_gradients() -> bool:
    """Whether functions that are called now need no gradient, whatever their inputs say."""
    return NO_GRAD.get() and AUTO_FORWARD.get()


def recompute(recompute_: bool = True) -> AbstractContextManager[bool]:
    """Mark the outputs of functions built inside a ``with`` block to be dropped and computed again in backward()."""
    return RECOMPUTE.scope(checked_flag("recompute", recompute_))


def set_global_recompute(recompute: bool) -> None:
    """Mark the outputs of all functions built from now on to be dropped and computed again in backward()."""
    RECOMPUTE.set_default(checked_flag("recompute", recompute))


def get_global_recompute() -> bool:
    """Whether outputs of functions are marked to be computed again."""
    return RECOMPUTE.get()
