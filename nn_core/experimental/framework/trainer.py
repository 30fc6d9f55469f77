"""The loop of NNabla's frame of a training program."""

from nn_core.experimental.framework.worker import Worker


class Trainer:
    """Calls the hooks of a worker, epoch by epoch.

    Args:
        worker: The worker.

    Attributes:
        start_epoch: Epochs of the checkpoint that the worker has loaded; training continues to its `max_epoch` in all.
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.start_epoch = 0

    def train(self) -> None:
        """Run the training."""
        worker = self.worker
        self.start_epoch = worker.load_checkpoint()
        worker.training_prepare()
        worker.save_model_at_start()
        for epoch in range(self.start_epoch, worker.max_epoch()):
            self._run_epoch(epoch)
        worker.evaluate_at_training_end()
        worker.save_model_at_end()
        worker.training_complete()

    def brief(self) -> None:
        """Let the worker tell about itself."""
        self.worker.brief()

    def _run_epoch(self, epoch: int) -> None:
        worker = self.worker
        worker.epoch_loop_start(epoch)
        worker.evaluate_at_epoch_start(epoch)
        for iteration in range(worker.iter_per_epoch()):
            worker.iter_loop_start(iteration, epoch)
            worker.update_in_iteration(iteration, epoch)
            worker.iter_loop_end(iteration, epoch)
        worker.epoch_loop_end(epoch)
        worker.save_checkpoint_at_epoch_end(epoch)
