"""The door ``nn_core.solver``: the base class of solvers, their states, and all methods."""

import functools
from collections.abc import Callable
from typing import ParamSpec

from nn_core.errors import ArgumentError
from nn_core.solvers import *  # noqa: F403  # the same names under NNabla's other door
from nn_core.solvers import __all__ as _methods
from nn_core.solvers.base import Solver as Solver
from nn_core.solvers.base import SolverState as SolverState

P = ParamSpec("P")


def solver_api(func: Callable[P, Solver]) -> Callable[P, Solver]:
    """Mark a function that makes a solver; what it returns is checked.

    Raises:
        ArgumentError: by the function, when it returns anything else.
    """

    @functools.wraps(func)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Solver:
        solver = func(*args, **kwargs)
        if not isinstance(solver, Solver):
            raise ArgumentError(f"{func.__name__}: a solver function must return a Solver, got {type(solver).__name__}")
        return solver

    return checked


__all__ = ["Solver", "SolverState", "solver_api"]
__all__ += _methods
