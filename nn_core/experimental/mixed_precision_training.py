"""NNabla's updater for half precision; see `nn_core.training.LossScale`, which it uses."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.solvers.base import Solver
from nn_core.training.loss_scale import LossScale
from nn_core.training.reporting import report
from nn_core.variable import Variable


class DynamicLossScalingUpdater:
    """One step of training with a loss scale that follows the range of the gradients.

    A step whose gradients are not finite is skipped: the parameters stay as they are, the scale is divided, and the next call
    takes the next batch. As in NNabla, the gradients of `accum_grad` batches are added, not averaged.

    Args:
        solver: The solver, with its parameters set.
        loss: The loss.
        data_feeder: Called without arguments before each forward pass; writes the inputs.
        scale: The factor of the loss at first.
        scaling_factor: Factor by which the scale grows and shrinks.
        N: Number of good steps until the scale grows.
        clear_buffer: Free what is not needed during the passes.
        accum_grad: Number of batches of one update.
        weight_decay: Rate for ``solver.weight_decay()``.
        comm: A communicator, whose ``all_reduce`` sums up `grads`.
        grads: The gradients for it.

    Attributes:
        skipped: Number of steps that were skipped.
    """

    def __init__(
        self,
        solver: Solver,
        loss: Variable,
        data_feeder: Callable[[], object] = lambda: None,
        scale: float = 8.0,
        scaling_factor: float = 2.0,
        N: int = 2000,  # NNabla's name
        clear_buffer: bool = True,
        accum_grad: int = 1,
        weight_decay: float | None = None,
        comm: Any = None,
        grads: Sequence[NdArray] = (),
    ) -> None:
        self.solver = solver
        self.loss = loss
        self.data_feeder = data_feeder
        self.clear_buffer = clear_buffer
        self.accum_grad = accum_grad
        self.weight_decay = weight_decay
        self.comm = comm
        self.grads = list(grads)
        self._loss_scale = LossScale(scale, scaling_factor, N, least=min(scale, 1.0), most=max(scale, 2.0**24))

    @property
    def scale(self) -> float:
        """The present factor of the loss."""
        return self._loss_scale.scale

    @property
    def skipped(self) -> int:
        """Number of steps that were skipped."""
        return self._loss_scale.skipped

    def update(self) -> None:
        """Take one step, or skip it."""
        self.solver.zero_grad()
        for _ in range(self.accum_grad):
            self.data_feeder()
            self.loss.forward(clear_no_need_grad=self.clear_buffer)
            self.loss.backward(self.scale, clear_buffer=self.clear_buffer)
        if self.comm is not None and self.grads:
            self.comm.all_reduce(self.grads, division=False, inplace=False)
        scale = self.scale
        if not self._loss_scale.step(bool(np.isfinite(self.solver.grad_norm()))):
            report({"skipped": 1.0})
            return
        self.solver.scale_grad(1.0 / scale)
        if self.weight_decay is not None:
            self.solver.weight_decay(self.weight_decay)
        self.solver.update()

    def get_state(self) -> dict[str, Any]:
        """Return the present scale and its counters."""
        return self._loss_scale.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        self._loss_scale.set_state(state)
