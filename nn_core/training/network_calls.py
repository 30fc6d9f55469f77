"""Calls of the network that `fit` trains, for training or for testing."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from nn_core.core.module import Module
from nn_core.training.fit_arguments import require_variables
from nn_core.training.objective import Variables
from nn_core.variable import Variable

#: ``network(x)`` or ``network(x, test=False)`` gives scores of classes or predictions.
Network: TypeAlias = Callable[..., Any]


def alike(variables: Sequence[Variable]) -> list[Variable]:
    """Return further Variables of the same shapes."""
    return [Variable(variable.shape) for variable in variables]


def called(network: Network, x: Sequence[Variable], test: bool, caller: str = "fit") -> Variables:
    """Return what a network gives for its inputs; a module is in the mode of training or testing meanwhile."""
    function = network.call if isinstance(network, Module) else network
    settings = {"test": test} if "test" in inspect.signature(function).parameters else {}
    if not isinstance(network, Module) or (network.training and not test):
        return require_variables(network(*x, **settings), caller)
    modes = [(module, module.__dict__.get("_training")) for _, module in network.walk()]
    network.training = not test
    try:
        return require_variables(network(*x, **settings), caller)
    finally:
        for module, mode in modes:
            module.__dict__["_training"] = mode
            if mode is None:
                del module.__dict__["_training"]
