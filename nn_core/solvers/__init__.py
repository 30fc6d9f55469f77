"""Solvers: they change parameters so that a loss falls, given the gradients of the loss.

Example:
    >>> import nn_core.solvers as S
    >>> solver = S.Adam(alpha=0.001)
    >>> solver.info["beta1"]
    0.9
"""

from typing import TYPE_CHECKING

from nn_core.engine.dispatch.attributes import hide_submodules, module_attributes
from nn_core.solvers.adagrad import Adadelta as Adadelta
from nn_core.solvers.adagrad import Adagrad as Adagrad
from nn_core.solvers.adagrad import RMSprop as RMSprop
from nn_core.solvers.adagrad import RMSpropGraves as RMSpropGraves
from nn_core.solvers.adam import AMSGRAD as AMSGRAD
from nn_core.solvers.adam import AdaBelief as AdaBelief
from nn_core.solvers.adam import AdaBound as AdaBound
from nn_core.solvers.adam import Adam as Adam
from nn_core.solvers.adam import Adamax as Adamax
from nn_core.solvers.adam import AdamW as AdamW
from nn_core.solvers.adam import AMSBound as AMSBound
from nn_core.solvers.base import Solver as Solver
from nn_core.solvers.factored import Adafactor as Adafactor
from nn_core.solvers.factored import Muon as Muon
from nn_core.solvers.layerwise import Lamb as Lamb
from nn_core.solvers.layerwise import Lars as Lars
from nn_core.solvers.lion import Lion as Lion
from nn_core.solvers.lookahead import Lookahead as Lookahead
from nn_core.solvers.momentum import Momentum as Momentum
from nn_core.solvers.momentum import Nesterov as Nesterov
from nn_core.solvers.momentum import Sgd as Sgd
from nn_core.solvers.momentum import SgdW as SgdW
from nn_core.solvers.passes import LBFGS as LBFGS
from nn_core.solvers.passes import SAM as SAM
from nn_core.solvers.rectified import NAdam as NAdam
from nn_core.solvers.rectified import RAdam as RAdam
from nn_core.solvers.schedule_free import ScheduleFreeAdamW as ScheduleFreeAdamW
from nn_core.solvers.schedule_free import ScheduleFreeSgd as ScheduleFreeSgd
from nn_core.solvers.states import SolverState as SolverState

#: The solvers that are made of numbers and update by given gradients; Lookahead, SAM and LBFGS are beside them.
__all__ = [
    "AMSGRAD",
    "AMSBound",
    "AdaBelief",
    "AdaBound",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lamb",
    "Lars",
    "Lion",
    "Momentum",
    "Muon",
    "NAdam",
    "Nesterov",
    "RAdam",
    "RMSprop",
    "RMSpropGraves",
    "ScheduleFreeAdamW",
    "ScheduleFreeSgd",
    "Sgd",
    "SgdW",
]

if not TYPE_CHECKING:  # so that checkers report names that do not exist
    __getattr__, __dir__ = module_attributes(__name__, "solvers")
    hide_submodules(__name__)
