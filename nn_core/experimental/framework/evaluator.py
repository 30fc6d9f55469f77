"""Evaluation in NNabla's frame of a training program."""

from collections.abc import Callable, Sequence
from typing import Any

from nn_core.experimental.framework.updater import as_list, nothing


class Evaluator:
    """Feeds and computes `val_iter` batches.

    Args:
        eval_data_feeder: ``f(e, vi)`` writes the inputs of a batch; e is the epoch, vi the number of the batch.
        eval_graph_forward: ``f(e, vi)`` computes.
        eval_callback_on_start: ``f(e)``, or several.
        eval_callback_on_finish: ``f(e)``, or several.
        val_iter: Number of batches.
    """

    def __init__(
        self,
        eval_data_feeder: Callable[..., Any],
        eval_graph_forward: Callable[..., Any],
        eval_callback_on_start: Callable[..., Any] | Sequence[Callable[..., Any]] = nothing,
        eval_callback_on_finish: Callable[..., Any] | Sequence[Callable[..., Any]] = nothing,
        val_iter: int = 1,
    ) -> None:
        self.eval_data_feeder = eval_data_feeder
        self.eval_graph_forward = eval_graph_forward
        self.eval_callback_on_start = as_list(eval_callback_on_start)
        self.eval_callback_on_finish = as_list(eval_callback_on_finish)
        self.val_iter = val_iter

    def evaluate(self, e: int) -> None:
        """Evaluate at epoch `e`."""
        for callback in self.eval_callback_on_start:
            callback(e)
        for number in range(self.val_iter):
            self.eval_data_feeder(e, number)
            self.eval_graph_forward(e, number)
        for callback in self.eval_callback_on_finish:
            callback(e)
