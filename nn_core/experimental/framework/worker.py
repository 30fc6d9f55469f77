"""The part of a training program that a user writes, in NNabla's frame."""

from typing import Any

from nn_core.experimental.framework.evaluator import Evaluator
from nn_core.experimental.framework.updater import Updater


class Worker:
    """The hooks that `Trainer` calls; a subclass defines those that it needs.

    ``training_prepare`` calls ``_ctx_init``, ``_var_init``, ``_comm_init``, ``_data_init``, ``_graph_init``,
    ``_loss_init``, ``_solver_init`` and ``_monitor_init``. A subclass sets ``_loss`` and ``_solver`` there, and writes
    batches in ``_train_data_feeder(i, e, ag)``.

    Args:
        data: The data, for the subclass.
        max_epoch: Number of epochs.
        iter_per_epoch: Number of updates of an epoch.
        clear_buffer: Free what is not needed during backward passes.
        clear_no_need_grad: Free what gradients do not need during forward passes.
    """

    _loss: Any
    _solver: Any

    def __init__(
        self,
        data: Any,
        max_epoch: int = 1,
        iter_per_epoch: int = 1,
        clear_buffer: bool = True,
        clear_no_need_grad: bool = True,
    ) -> None:
        self._data = data
        self._max_epoch = max_epoch
        self._iter_per_epoch = iter_per_epoch
        self._clear_buffer = clear_buffer
        self._clear_no_need_grad = clear_no_need_grad
        self._updater = Updater(
            self._train_data_feeder,
            self._solver_zero_grad,
            self._solver_update,
            self._loss_forward,
            self._loss_backward,
            self._loss_forward_callback_on_start,
            self._loss_forward_callback_on_finish,
            self._loss_backward_callback_on_start,
            self._loss_backward_callback_on_finish,
            self._comm_all_reduce_callback_on_start,
            self._comm_all_reduce,
            self._comm_all_reduce_callback_on_finish,
            self._solver_update_callback_on_start,
            self._solver_update_callback_on_finish,
        )
        self._evaluator = Evaluator(
            self._eval_data_feeder,
            self._eval_graph_forward,
            self._eval_callback_on_start,
            self._eval_callback_on_finish,
        )

    # -- called by the trainer -------------------------------------------------------------------------------------

    def load_checkpoint(self) -> int:
        """Load a checkpoint, if there is one; the number of its epochs."""
        return 0

    def training_prepare(self) -> None:
        """Make everything that the training needs."""
        for prepare in (
            self._ctx_init,
            self._var_init,
            self._comm_init,
            self._data_init,
            self._graph_init,
            self._loss_init,
            self._solver_init,
            self._monitor_init,
        ):
            prepare()

    def max_epoch(self) -> int:
        """Return number of epochs."""
        return self._max_epoch

    def iter_per_epoch(self) -> int:
        """Return number of updates of an epoch."""
        return self._iter_per_epoch

    def evaluate_at_epoch_start(self, e: int) -> None:
        """Evaluate."""
        self._evaluator.evaluate(e)

    def evaluate_at_training_end(self) -> None:
        """Evaluate."""
        self._evaluator.evaluate(self._max_epoch)

    def update_in_iteration(self, i: int, e: int) -> None:
        """Run iteration `i` of epoch `e`."""
        self._updater.update(i, e)

    def _nothing(self, *_: Any) -> None:
        """Return a hook that nobody has defined."""

    brief = save_model_at_start = save_model_at_end = training_complete = _nothing
    epoch_loop_start = epoch_loop_end = save_checkpoint_at_epoch_end = _nothing
    iter_loop_start = iter_loop_end = _nothing

    # -- called during preparation ---------------------------------------------------------------------------------

    _ctx_init = _var_init = _comm_init = _data_init = _graph_init = _loss_init = _solver_init = _monitor_init = _nothing

    # -- called during an update; i is the iteration, e the epoch, ag the number of the batch ----------------------

    _train_data_feeder = _eval_data_feeder = _eval_graph_forward = _comm_all_reduce = _nothing
    _loss_forward_callback_on_start = _loss_forward_callback_on_finish = _nothing
    _loss_backward_callback_on_start = _loss_backward_callback_on_finish = _nothing
    _comm_all_reduce_callback_on_start = _comm_all_reduce_callback_on_finish = _nothing
    _solver_update_callback_on_start = _solver_update_callback_on_finish = _nothing
    _eval_callback_on_start = _eval_callback_on_finish = _nothing

    def _solver_zero_grad(self, i: int, e: int) -> None:
        self._solver.zero_grad()

    def _loss_forward(self, i: int, e: int, ag: int) -> None:
        self._loss.forward(clear_no_need_grad=self._clear_no_need_grad)

    def _loss_backward(self, i: int, e: int, ag: int) -> None:
        self._loss.backward(clear_buffer=self._clear_buffer)

    def _solver_update(self, i: int, e: int) -> None:
        self._solver.update()
