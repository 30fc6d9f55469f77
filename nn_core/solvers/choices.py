"""The parameters that solvers have chosen, for messages about those that no solver changes, and those that two do."""

import weakref
from collections.abc import Iterator, Sequence
from typing import Final

from nn_core.engine.graph.parameter_sources import HasParameters, leaves_of
from nn_core.engine.runtime.holders import SCOPES, modules_with_parameters
from nn_core.logger import logger
from nn_core.variable import Variable

#: More parameters than this are not listed.
_LISTED: Final = 4
#: The parameters that any solver has, or has had.
CHOSEN: Final[weakref.WeakSet[Variable]] = weakref.WeakSet()


#: The solvers that have chosen.
CHOOSERS: Final[weakref.WeakSet[HasParameters]] = weakref.WeakSet()


def warn_of_shared(name: str, own: HasParameters) -> None:
    """Log that a solver, which took the parameters of a loss by itself, shares some with another one."""
    others = {variable for solver in list(CHOOSERS) if solver is not own for variable in solver.get_parameters().values()}
    shared = [key for key, variable in own.get_parameters().items() if variable in others]
    if shared:
        logger.warning(
            "%s.minimize: a solver that was given no parameters takes those of the loss, got some that another solver has: "
            "%s\n  hint: set_parameters() gives each solver its own",
            name,
            _listed(shared),
        )


class Latecomers:
    """Looks, when a solver updates for the first time, for parameters that were made after it had chosen its own."""

    def __init__(self) -> None:
        self._known = weakref.WeakSet(variable for _, variable in _all_parameters())

    def warn(self, solver: str) -> None:
        """Log that there are some whose gradients are computed."""
        names = [name for name, variable in _all_parameters() if variable not in self._known and _is_forgotten(variable)]
        if not names:
            return
        logger.warning(
            "%s.update: the solver must have all parameters to train, got gradients of others, made after set_parameters(): "
            "%s\n  hint: call set_parameters() when all layers have been called",
            solver,
            _listed(names),
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _is_forgotten(variable: Variable) -> bool:
    grad = variable.storage.made_grad
    return variable.need_grad and variable not in CHOSEN and grad is not None and not grad.is_unwritten


def _all_parameters() -> Iterator[tuple[str, Variable]]:
    for scope in SCOPES:
        yield from ((name, found) for name, found in leaves_of(scope) if isinstance(found, Variable))
    for _, parameters in modules_with_parameters():
        yield from parameters.items()
