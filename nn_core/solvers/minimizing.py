"""One step of training as one call."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nn_core.errors import ArgumentError, GraphError
from nn_core.graph.modes import auto_forward, get_auto_forward
from nn_core.refusal import described
from nn_core.variable import Variable

if TYPE_CHECKING:
    from nn_core.solvers.base import Solver

#: A Variable of a static graph, or a function that builds a dynamic one.
Loss: TypeAlias = Variable | Callable[..., Variable]


def minimize(solver: "Solver", loss: Loss, batch: Sequence[Any]) -> Variable:
    """Do what ``Solver.minimize`` describes."""
    computed = _computed(loss, batch)
    solver.zero_grad()
    computed.backward(clear_buffer=True)
    solver.update()
    return computed


def _computed(loss: Loss, batch: Sequence[Any]) -> Variable:
    if isinstance(loss, Variable):
        if batch:
            raise ArgumentError(f"minimize: batch must be empty beside a Variable, got {len(batch)} arrays")
        if get_auto_forward():
            # forward() would compute it again, and draw other random numbers
            raise GraphError(
                "minimize: loss must be a function inside of auto_forward(), got a Variable\n"
                "  hint: pass the function that computes it, or call zero_grad(), loss.backward() and update()"
            )
        loss.forward(clear_no_need_grad=True)
        return loss
    if not callable(loss):
        raise ArgumentError(f"minimize: loss must be a Variable or a function that returns one, got {described(loss)}")
    with auto_forward():
        result = loss(*[Variable.from_numpy_array(np.asarray(values)) for values in batch])
    if not isinstance(result, Variable):
        raise ArgumentError(f"minimize: loss must return a Variable, got {described(result)}")
    return result
