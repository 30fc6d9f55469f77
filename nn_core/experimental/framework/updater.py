"""One update in NNabla's frame of a training program."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from nn_core.engine.arrays.ndarray import NdArray

#: A function of the iteration, the epoch and, within the accumulation, the number of the batch.
Call: TypeAlias = Callable[..., Any]
#: One, or several.
Calls: TypeAlias = Call | Sequence[Call]


def nothing(*_: Any) -> None:
    """Do nothing."""


def as_list(calls: Calls) -> list[Call]:
    """Several callbacks as a list."""
    return [calls] if callable(calls) else list(calls)


class Updater:
    """Zero the gradients; feed, forward and backward `accum_grad` times; reduce over processes; update.

    Gradients of several batches are added, not averaged. Callbacks within the accumulation get (i, e, ag), the others
    (i, e): iteration in the epoch, epoch, number of the batch.

    Args:
        train_data_feeder: Writes the inputs of a batch.
        solver_zero_grad: Sets the gradients to zero.
        solver_update: Changes the parameters.
        loss_forward: Computes the loss.
        loss_backward: Computes the gradients.
        loss_forward_callback_on_start: Called before `loss_forward`; each callback may be a list of several.
        loss_forward_callback_on_finish: Called after it.
        loss_backward_callback_on_start: Called before `loss_backward`.
        loss_backward_callback_on_finish: Called after it.
        comm_all_reduce_callback_on_start: Called before `comm_all_reduce`.
        comm_all_reduce: Adds up gradients over processes; called with a communicator and `grads` only.
        comm_all_reduce_callback_on_finish: Called after it.
        solver_update_callback_on_start: Called before `solver_update`.
        solver_update_callback_on_finish: Called after it.
        accum_grad: Number of batches of one update.
        comm: A communicator.
        grads: The gradients for it.
    """

    def __init__(
        self,
        train_data_feeder: Call,
        solver_zero_grad: Call,
        solver_update: Call,
        loss_forward: Call = nothing,
        loss_backward: Call = nothing,
        loss_forward_callback_on_start: Calls = nothing,
        loss_forward_callback_on_finish: Calls = nothing,
        loss_backward_callback_on_start: Calls = nothing,
        loss_backward_callback_on_finish: Calls = nothing,
        comm_all_reduce_callback_on_start: Calls = nothing,
        comm_all_reduce: Call = nothing,
        comm_all_reduce_callback_on_finish: Calls = nothing,
        solver_update_callback_on_start: Calls = nothing,
        solver_update_callback_on_finish: Calls = nothing,
        accum_grad: int = 1,
        comm: Any = None,
        grads: Sequence[NdArray] = (),
    ) -> None:
        self.train_data_feeder, self.solver_zero_grad = train_data_feeder, solver_zero_grad
        self.accum_grad, self.comm, self.grads = accum_grad, comm, list(grads)
        self._forward = [*as_list(loss_forward_callback_on_start), loss_forward, *as_list(loss_forward_callback_on_finish)]
        self._backward = [*as_list(loss_backward_callback_on_start), loss_backward, *as_list(loss_backward_callback_on_finish)]
        self._reduce = [
            *as_list(comm_all_reduce_callback_on_start),
            comm_all_reduce,
            *as_list(comm_all_reduce_callback_on_finish),
        ]
        self._update = [*as_list(solver_update_callback_on_start), solver_update, *as_list(solver_update_callback_on_finish)]

    def update(self, i: int, e: int) -> None:
        """Run iteration `i` of epoch `e`."""
        self.solver_zero_grad(i, e)
        for batch in range(self.accum_grad):
            for call in (self.train_data_feeder, *self._forward, *self._backward):
                call(i, e, batch)
        reduce = self._reduce if self.comm is not None and self.grads else []
        for call in (*reduce, *self._update):
            call(i, e)
