"""Checkpoints of a training, kept in its folder."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.engine.runtime.limits import seconds_of
from nn_core.errors import ArgumentError, DiskFullError
from nn_core.files import extension_of, writing_into
from nn_core.logger import logger
from nn_core.training.checkpoint import Snapshot, checkpoint_path, checkpoints_in, number_of, write_snapshot
from nn_core.training.extensions.retention import Retention
from nn_core.training.parts import Saving, remove_orphans, remove_parts, write_whole
from nn_core.training.trainer import Trainer
from nn_core.training.watched_values import Watched
from nn_core.training.watched_values import best as best_value


@fitted_methods()
class Checkpoint:
    """Save everything each epoch, or as the trigger says, so that ``trainer.run(resume=True)`` continues from it.

    The files are called checkpoint-<iteration>.npz. SIGTERM and Ctrl-C save, too. Where the disk is full, that is logged with
    the size that is needed, training goes on, and the next time is another try; at the end of training it is an error.

    Args:
        keep: How many of them are kept, the newest of this run; None: all.
        max_age: When one of them is removed: seconds, or a text such as "2d"; the newest stays. None: never.
        keep_best: How many are kept besides, those with the best values of `best`, where it is reported in the iterations in
            which they are saved.
        best: Name of a reported value; when it is better than before, best.npz is saved besides. A value of each iteration,
            such as the loss, is looked at when the trigger fires; one that is reported now and then, such as those of an
            `Evaluator`, whenever it is reported.
        mode: "min" or "max": which values are better.
        asynchronous: Copy first, and write in a thread while training continues. At most one is being written; the next one
            waits for it.
        in_parts: Where the states of solvers are divided among ranks (``Updater(sharded_states=True)``), let each rank write
            its part of them and of the parameters; the file, which rank 0 writes last, names the parts. The folder is one
            that all machines share. Any number of ranks resumes from it.
        extension: Format of the files: ".npz", ".safetensors" or ".h5".

    Raises:
        ArgumentError: when `keep` is less than 1, `max_age` is no duration, `best` is given without `mode`, `keep_best`
            without `best`, or no format has the extension; at the end of training, when nobody has reported `best`.
        DiskFullError: at the end of training, or of the process by a signal, when the last checkpoint could not be written.

    Example:
        >>> from nn_core.training import Checkpoint, checkpoints_in, fit
        >>> x, t = np.eye(4), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=5, out="run", progress=False)
        >>> [path.name for path in checkpoints_in("run")]
        ['checkpoint-00000005.npz', 'checkpoint-00000004.npz', 'checkpoint-00000003.npz']
    """

    phase = "save"
    first_rank_only = True

    @fitted
    def __init__(
        self,
        keep: int | None = 3,
        best: str | None = None,
        mode: str | None = None,
        asynchronous: bool = False,
        extension: str = ".npz",
        max_age: float | str | None = None,
        keep_best: int = 0,
        in_parts: bool = False,
    ) -> None:
        if keep is not None and keep < 1:
            raise ArgumentError(f"Checkpoint: keep must be at least 1, got {keep}")
        if keep_best < 0 or (keep_best and best is None):
            raise ArgumentError(
                f"Checkpoint: keep_best must be 0, or positive together with best, got {keep_best} and {best!r}"
            )
        if best is not None and mode is None:
            raise ArgumentError("Checkpoint: mode must be 'min' or 'max' when best is given, got None")
        extension_of("Checkpoint", f"checkpoint{extension}", None)
        age = None if max_age is None else seconds_of("Checkpoint: max_age", max_age)
        self._retention = Retention(keep, age, keep_best)
        self._best = None if best is None or mode is None else best_value(best, mode)
        self._is_asynchronous = asynchronous
        self._is_in_parts = in_parts
        self._extension = extension
        self._writing: threading.Thread | None = None
        self._error: BaseException | None = None
        #: why the last checkpoint could not be written, if there was no room
        self._unsaved: DiskFullError | None = None
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
        value = float("nan") if self._best is None else self._best.judged(trainer)
        self._retention.note(trainer.iteration, value, list(map(number_of, checkpoints_in(trainer.out))))
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
        parts = trainer.snapshot_in_parts(paths, asynchronous=self._is_asynchronous) if self._is_in_parts and paths else None
        snapshot, saving = (trainer.snapshot(), None) if parts is None else parts
        self.wait()
        rule = self._retention.copy()
        if not self._is_asynchronous:
            self._write_or_note(snapshot, paths, trainer, rule, saving)
            self.wait()
            return
        # Not a daemon: the end of the program waits for the file.
        self._writing = threading.Thread(
            target=self._write_or_note, args=(snapshot.copy(), paths, trainer, rule, saving), name="nn_core.checkpoint"
        )
        self._writing.start()

    def _warn_of_silence(self, trainer: Trainer, best: Watched) -> None:
        if best.is_seen or self._has_warned:
            return
        self._has_warned = True
        known = ", ".join(sorted(trainer.observation)) or "nothing"
        logger.warning("Checkpoint: nobody has reported %r yet, for best%s (reported: %s)", best.key, self._extension, known)

    def files(self) -> list[str]:
        """Return the file of the best value; the trainer knows checkpoints by their names."""
        return [] if self._best is None else [f"best{self._extension}"]

    def finish(self, trainer: Trainer) -> None:
        """Refuse a name of the best value that nobody has reported, and a last checkpoint for which there was no room.

        Raises:
            ArgumentError: when nobody has.
            DiskFullError: when there was none.
        """
        self._require_saved()
        if self._best is not None:
            self._best.finish(trainer)

    def interrupted(self, trainer: Trainer) -> None:
        """Save before the process ends or when it is asked to, unless this iteration is saved already."""
        if self._saved != trainer.iteration or self._unsaved is not None:
            self(trainer)

    def leave(self, trainer: Trainer) -> None:
        """Refuse to end the process as if it could be continued where there was no room for its last checkpoint.

        Raises:
            DiskFullError: when there was none.
        """
        self._require_saved()

    def start(self, trainer: Trainer) -> None:
        """Note checkpoints of later iterations than the one that training was resumed from.

        They are damaged, or training has gone back behind them: they take no place among those kept.
        """
        remove_orphans(trainer.out, self._extension)
        numbers = map(number_of, checkpoints_in(trainer.out))
        self._ahead = {number for number in numbers if number > trainer.iteration}

    def stop(self, trainer: Trainer) -> None:
        """Wait for what is being written."""
        self.wait()

    def wait(self) -> None:
        """Wait until the file is written; what went wrong is raised here, except that there was no room.

        Raises:
            OSError: when it could not be written.
        """
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        error, self._error = self._error, None
        if isinstance(error, DiskFullError):
            logger.error("Checkpoint: nothing was saved, and training goes on: %s", error)
        elif error is not None:
            raise error

    def _require_saved(self) -> None:
        if self._unsaved is not None:
            raise self._unsaved

    def get_state(self) -> Any:
        """Return the best value so far, and what is known of the checkpoints."""
        state: dict[str, Any] = {"records": self._retention.get_state()}
        if self._best is not None:
            state.update({**self._best.get_state(), "was_reported": self._was_reported})
        return state

    def set_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue from what `get_state` gave."""
        state = state or {}  # files of earlier versions have less
        self._retention.set_state(state.get("records", {}))
        if self._best is not None and "best" in state:
            self._best.set_state(state)
            self._was_reported = state.get("was_reported", False)

    def _write_or_note(
        self, snapshot: Snapshot, paths: list[Path], trainer: Trainer, rule: Retention, saving: Saving | None
    ) -> None:
        """Write, in whatever thread; `wait` tells what went wrong in the one that trains."""
        try:
            self._write(snapshot, paths, trainer, saving)
            self._remove(trainer, rule)
            self._unsaved = None
        except DiskFullError as error:
            self._error = self._unsaved = error
        except BaseException as error:
            self._error = error

    def _write(self, snapshot: Snapshot, paths: list[Path], trainer: Trainer, saving: Saving | None) -> None:
        with writing_into(trainer.out):
            for path in paths:
                if saving is None:
                    write_snapshot(path, snapshot)
                    remove_parts(path)  # of an earlier file of the name
                else:
                    write_whole(path, snapshot, saving, trainer.timeout_s)

    def _remove(self, trainer: Trainer, rule: Retention) -> None:
        """Remove the checkpoints that are not kept."""
        if not rule.removes:
            return
        self._ahead.discard(self._saved)
        past = [path for path in checkpoints_in(trainer.out) if number_of(path) <= self._saved]
        kept = rule.kept([path for path in past if number_of(path) not in self._ahead])
        for path in past:
            if path not in kept:
                path.unlink(missing_ok=True)
                remove_parts(path)
