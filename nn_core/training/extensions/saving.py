"""Checkpoints of a training, kept in its folder."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nn_core.errors import ArgumentError
from nn_core.files import extension_of, writing_into
from nn_core.logger import logger
from nn_core.training.checkpoint import Snapshot, checkpoint_path, checkpoints_in, number_of, write_snapshot
from nn_core.training.trainer import Trainer
from nn_core.training.triggers import Watched
from nn_core.training.triggers import best as best_value


class Checkpoint:
    """Save everything each epoch, or as the trigger says, so that ``trainer.run(resume=True)`` continues from it.

    The files are called checkpoint-<iteration>.npz. SIGTERM and Ctrl-C save, too.

    Args:
        keep: How many of them are kept, the newest of this run; None: all.
        best: Name of a reported value; when it is better than before, best.npz is saved besides. A value of each iteration,
            such as the loss, is looked at when the trigger fires; one that is reported now and then, such as those of an
            `Evaluator`, whenever it is reported.
        mode: "min" or "max": which values are better.
        asynchronous: Copy first, and write in a thread while training continues. At most one is being written; the next one
            waits for it.
        extension: Format of the files: ".npz", ".safetensors" or ".h5".

    Raises:
        ArgumentError: when `keep` is less than 1, `best` is given without `mode`, or no format has the extension; at the end
            of training, when nobody has reported `best`.

    Example:
        >>> from nn_core.training import Checkpoint, checkpoints_in, fit
        >>> x, t = np.eye(4), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=5, out="run", progress=False)
        >>> [path.name for path in checkpoints_in("run")]
        ['checkpoint-00000005.npz', 'checkpoint-00000004.npz', 'checkpoint-00000003.npz']
    """

    phase = "save"
    first_rank_only = True

    def __init__(
        self,
        keep: int | None = 3,
        best: str | None = None,
        mode: str | None = None,
        asynchronous: bool = False,
        extension: str = ".npz",
    ) -> None:
        if keep is not None and keep < 1:
            raise ArgumentError(f"Checkpoint: keep must be at least 1, got {keep}")
        if best is not None and mode is None:
            raise ArgumentError("Checkpoint: mode must be 'min' or 'max' when best is given, got None")
        extension_of("Checkpoint", f"checkpoint{extension}", None)
        self._keep = keep
        self._best = None if best is None or mode is None else best_value(best, mode)
        self._is_asynchronous = asynchronous
        self._extension = extension
        self._writing: threading.Thread | None = None
        self._error: BaseException | None = None
        self._saved = -1
        self._judged = -1
        #: numbers of checkpoints behind which training has gone back
        self._ahead: set[int] = set()
        self._was_reported = False
        self._has_warned = False
        if self._best is not None:  # without it there is nothing to do after each iteration
            self.observe = self._observe

    def __call__(self, trainer: Trainer) -> None:
        paths = [checkpoint_path(trainer.out, trainer.iteration, extension=self._extension)]
        if self._best is not None:
            paths += self._paths_of_best(trainer, self._best)
            self._warn_of_silence(trainer, self._best)
        self._saved = trainer.iteration
        self._save(trainer, paths)

    def _observe(self, trainer: Trainer) -> None:
        """Save what is best so far when the value is reported in other iterations than those of the trigger."""
        best = self._best
        assert best is not None
        is_reported = best.key in trainer.observation
        was_reported, self._was_reported = self._was_reported, is_reported
        if is_reported and not was_reported and self._judged != trainer.iteration:
            paths = self._paths_of_best(trainer, best)
            if paths:
                self._save(trainer, paths)

    def _paths_of_best(self, trainer: Trainer, best: Watched) -> list[Path]:
        self._judged = trainer.iteration
        self._was_reported = best.key in trainer.observation
        return [trainer.out / f"best{self._extension}"] if best(trainer) else []

    def _save(self, trainer: Trainer, paths: list[Path]) -> None:
        snapshot = trainer.snapshot()
        self.wait()
        if not self._is_asynchronous:
            self._write(snapshot, paths, trainer)
            return
        # Not a daemon: the end of the program waits for the file.
        self._writing = threading.Thread(
            target=self._write_in_thread, args=(snapshot.copy(), paths, trainer), name="nn_core.checkpoint"
        )
        self._writing.start()

    def _warn_of_silence(self, trainer: Trainer, best: Watched) -> None:
        if best.is_seen or self._has_warned:
            return
        self._has_warned = True
        known = ", ".join(sorted(trainer.observation)) or "nothing"
        logger.warning("Checkpoint: nobody has reported %r yet, for best%s (reported: %s)", best.key, self._extension, known)

    def files(self) -> list[str]:
        """The file of the best value; the trainer knows checkpoints by their names."""
        return [] if self._best is None else [f"best{self._extension}"]

    def finish(self, trainer: Trainer) -> None:
        """Refuse a name of the best value that nobody has reported.

        Raises:
            ArgumentError: when nobody has.
        """
        if self._best is not None:
            self._best.finish(trainer)

    def interrupted(self, trainer: Trainer) -> None:
        """Save before the process ends, unless this iteration is saved already."""
        if self._saved != trainer.iteration:
            self(trainer)

    def start(self, trainer: Trainer) -> None:
        """Note checkpoints of later iterations than the one that training was resumed from.

        They are damaged, or training has gone back behind them: they take no place among those kept.
        """
        numbers = map(number_of, checkpoints_in(trainer.out))
        self._ahead = {number for number in numbers if number > trainer.iteration}

    def stop(self, trainer: Trainer) -> None:
        """Wait for what is being written."""
        self.wait()

    def wait(self) -> None:
        """Wait until the file is written; what went wrong is raised here.

        Raises:
            OSError: when it could not be written.
        """
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def get_state(self) -> Any:
        """The best value so far."""
        return None if self._best is None else {**self._best.get_state(), "was_reported": self._was_reported}

    def set_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue from what `get_state` gave."""
        if self._best is not None and state is not None:
            self._best.set_state(state)
            self._was_reported = state.get("was_reported", False)  # files of earlier versions do not have it

    def _write_in_thread(self, snapshot: Snapshot, paths: list[Path], trainer: Trainer) -> None:
        try:
            self._write(snapshot, paths, trainer)
        except BaseException as error:  # raised by wait(), in the thread that trains
            self._error = error

    def _write(self, snapshot: Snapshot, paths: list[Path], trainer: Trainer) -> None:
        with writing_into(trainer.out):
            for path in paths:
                write_snapshot(path, snapshot)
        if self._keep is None:
            return
        self._ahead.discard(self._saved)
        past = [path for path in checkpoints_in(trainer.out) if number_of(path) <= self._saved]
        kept = [path for path in past if number_of(path) not in self._ahead][: self._keep]
        for path in past:
            if path not in kept:
                path.unlink(missing_ok=True)
