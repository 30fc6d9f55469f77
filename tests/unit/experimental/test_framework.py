"""NNabla's frame of a training program calls its hooks in order."""

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.experimental.framework import Data, Trainer, Worker
from nn_core.experimental.framework.evaluator import Evaluator
from nn_core.experimental.framework.updater import Updater


class Recorded(Worker):
    def __init__(self, *args, **kwargs):
        self.calls = []
        super().__init__(*args, **kwargs)

    def __getattribute__(self, name):
        if not name.startswith("__") and name not in ("calls",) and name in dir(Worker):
            self.calls.append(name)
        return super().__getattribute__(name)


class Fit(Worker):
    """w approaches 2."""

    losses: list

    def _graph_init(self):
        self.w = nn.Variable.from_numpy_array([0.0], need_grad=True)

    def _loss_init(self):
        self._loss = F.sum((self.w - 2) ** 2)

    def _solver_init(self):
        self._solver = S.Sgd(lr=0.25)
        self._solver.set_parameters({"w": self.w})

    def _loss_forward_callback_on_finish(self, i, e, ag):
        self.losses.append((e, i, float(self._loss.d)))


def test_the_hooks_are_called_in_order():
    worker = Recorded(Data(), max_epoch=1, iter_per_epoch=0)
    worker.calls.clear()
    trainer = Trainer(worker)
    trainer.train()
    trainer.brief()
    assert [name for name in worker.calls if not name.startswith("_")] == [
        "load_checkpoint", "training_prepare", "save_model_at_start", "max_epoch", "epoch_loop_start",
        "evaluate_at_epoch_start", "iter_per_epoch", "epoch_loop_end", "save_checkpoint_at_epoch_end",
        "evaluate_at_training_end", "save_model_at_end", "training_complete", "brief",
    ]  # fmt: skip


def test_a_worker_trains():
    worker = Fit(Data(), max_epoch=2, iter_per_epoch=2)
    worker.losses = []
    Trainer(worker).train()
    assert worker.losses == [(0, 0, 4.0), (0, 1, 1.0), (1, 0, 0.25), (1, 1, 0.0625)]


def test_training_ends_after_max_epoch_epochs_in_all():
    class Resumed(Fit):
        def load_checkpoint(self):
            return 3

    worker = Resumed(Data(), max_epoch=4, iter_per_epoch=1)
    worker.losses = []
    Trainer(worker).train()
    assert [epoch for epoch, _, _ in worker.losses] == [3]


def test_an_update_accumulates_and_reduces():
    calls = []

    def note(name):
        return lambda *args: calls.append((name, *args))

    updater = Updater(
        note("feed"), note("zero"), note("update"), note("forward"), note("backward"), [note("start")],
        comm_all_reduce=note("reduce"), accum_grad=2, comm=object(), grads=[nn.NdArray((1,))],
    )  # fmt: skip
    updater.update(3, 1)
    one = ["feed", "start", "forward", "backward"]
    assert [call[0] for call in calls] == ["zero", *one, *one, "reduce", "update"]
    assert (calls[0], calls[5], calls[-1]) == (("zero", 3, 1), ("feed", 3, 1, 1), ("update", 3, 1))


def test_an_evaluation_takes_its_batches():
    calls = []
    evaluator = Evaluator(
        lambda e, vi: calls.append(("feed", e, vi)), lambda e, vi: calls.append(("forward", e, vi)), val_iter=2
    )
    evaluator.evaluate(7)
    assert calls == [("feed", 7, 0), ("forward", 7, 0), ("feed", 7, 1), ("forward", 7, 1)]
