"""NNabla's module of Variable; see `nn_core.variable`."""

from nn_core.communicators.callback import PassSums as CommunicatorBackwardCallback
from nn_core.context import Context as Context
from nn_core.variable import Variable as Variable

__all__ = ["CommunicatorBackwardCallback", "Context", "Variable"]
