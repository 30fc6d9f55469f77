"""The door ``nn_core.solver``: the base class of solvers, their states, and all methods."""

import functools
from collections.abc import Callable
from typing import ParamSpec

from nn_core.errors import ArgumentError
from nn_core.solvers import AMSGRAD as AMSGRAD
from nn_core.solvers import LBFGS as LBFGS
from nn_core.solvers import SAM as SAM
from nn_core.solvers import AdaBelief as AdaBelief
from nn_core.solvers import AdaBound as AdaBound
from nn_core.solvers import Adadelta as Adadelta
from nn_core.solvers import Adafactor as Adafactor
from nn_core.solvers import Adagrad as Adagrad
from nn_core.solvers import Adam as Adam
from nn_core.solvers import Adamax as Adamax
from nn_core.solvers import AdamW as AdamW
from nn_core.solvers import AMSBound as AMSBound
from nn_core.solvers import Lamb as Lamb
from nn_core.solvers import Lars as Lars
from nn_core.solvers import Lion as Lion
from nn_core.solvers import Lookahead as Lookahead
from nn_core.solvers import Momentum as Momentum
from nn_core.solvers import Muon as Muon
from nn_core.solvers import NAdam as NAdam
from nn_core.solvers import Nesterov as Nesterov
from nn_core.solvers import RAdam as RAdam
from nn_core.solvers import RMSprop as RMSprop
from nn_core.solvers import RMSpropGraves as RMSpropGraves
from nn_core.solvers import ScheduleFreeAdamW as ScheduleFreeAdamW
from nn_core.solvers import ScheduleFreeSgd as ScheduleFreeSgd
from nn_core.solvers import Sgd as Sgd
from nn_core.solvers import SgdW as SgdW
from nn_core.solvers.base import Solver as Solver
from nn_core.solvers.states import SolverState as SolverState

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
