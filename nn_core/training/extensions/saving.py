"""Checkpoints of a training, kept in its folder."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nn_core.errors import ArgumentError
from nn_core.files import extension_of
from nn_core.training.checkpoint import Snapshot, checkpoint_path, checkpoints_in, write_snapshot
from nn_core.training.trainer import Trainer
from nn_core.training.triggers import best as best_value


class Checkpoint:
    """Save everything each epoch, or as the trigger says, so that ``trainer.run(resume=True)`` continues from it.

    The files are called checkpoint-<iteration>.npz. SIGTERM and Ctrl-C save, too.

    Args:
        keep: How many of them are kept, the newest; None: all.
        best: Name of a reported value; when it is better than before, best.npz is saved besides.
        mode: "min" or "max": which values are better.
        asynchronous: Copy first, and write in a thread while training continues. At most one is being written; the next one
            waits for it.
        extension: Format of the files: ".npz", ".safetensors" or ".h5".

    Raises:
        ArgumentError: when `keep` is less than 1, `best` is given without `mode`, or no format has the extension.

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

    def __call__(self, trainer: Trainer) -> None:
        paths = [checkpoint_path(trainer.out, trainer.iteration, extension=self._extension)]
        if self._best is not None and self._best(trainer):
            paths.append(trainer.out / f"best{self._extension}")
        snapshot = trainer.snapshot()
        self._saved = trainer.iteration
        self.wait()
        if not self._is_asynchronous:
            self._write(snapshot, paths, trainer.out)
            return
        # Not a daemon: the end of the program waits for the file.
        self._writing = threading.Thread(
            target=self._write_in_thread, args=(snapshot.copy(), paths, trainer.out), name="nn_core.checkpoint"
        )
        self._writing.start()

    def interrupted(self, trainer: Trainer) -> None:
        """Save before the process ends, unless this iteration is saved already."""
        if self._saved != trainer.iteration:
            self(trainer)

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
        return None if self._best is None else self._best.get_state()

    def set_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue from what `get_state` gave."""
        if self._best is not None and state is not None:
            self._best.set_state(state)

    def _write_in_thread(self, snapshot: Snapshot, paths: list[Path], folder: Path) -> None:
        try:
            self._write(snapshot, paths, folder)
        except BaseException as error:  # raised by wait(), in the thread that trains
            self._error = error

    def _write(self, snapshot: Snapshot, paths: list[Path], folder: Path) -> None:
        for path in paths:
            write_snapshot(path, snapshot)
        if self._keep is not None:
            for path in checkpoints_in(folder)[self._keep :]:
                path.unlink(missing_ok=True)
