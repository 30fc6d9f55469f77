"""Means of reported values as lines of JSON in a file, and as a table on the terminal."""

import json
import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.engine.runtime.schemas import checked_state
from nn_core.files import atomic_writer, open_to_read, require_regular
from nn_core.files.atomic import is_full
from nn_core.logger import logger
from nn_core.training.extensions.averages import Averages
from nn_core.training.trainer import Trainer


@fitted_methods()
class Log(Averages):
    """Append the means of reported values to a file, one JSON object a line, each epoch or as the trigger says.

    A resumed run continues the file where the checkpoint was, so that it reads as if nothing had happened. Checkpoints hold
    the entries: a file that is gone, shorter or another one is written anew from them, which is logged. Where the disk is
    full, training goes on, and the next entry writes those that are missing.

    Args:
        *keys: Names of the values; none: all.
        path: The file, in the folder of the trainer.

    Attributes:
        entries: The entries so far, as dictionaries.

    Example:
        >>> from nn_core.training import Log, fit
        >>> log = Log("loss")
        >>> _ = fit(lambda x: PF.affine(x, 4), (np.eye(4), np.arange(4)), epochs=2, progress=False, extensions=[log])
        >>> [sorted(entry) for entry in log.entries]
        [['elapsed_time', 'epoch', 'iteration', 'loss'], ['elapsed_time', 'epoch', 'iteration', 'loss']]
    """

    first_rank_only = True

    @fitted
    def __init__(self, *keys: str, path: str = "log.jsonl") -> None:
        super().__init__(keys)
        self.entries: list[dict[str, Any]] = []
        self._name = path
        self._length = 0
        self._is_behind = False

    def __call__(self, trainer: Trainer) -> None:
        self.entries.append(self.entry(trainer))
        self._write(trainer.out / self._name)

    def _write(self, path: Path) -> None:
        """Write the last entry, or all of them after one that could not be written."""
        try:
            if self._is_behind:
                self._write_all(path)
            else:
                with suppress(FileNotFoundError):
                    require_regular(path)  # opening a pipe would wait for a reader
                with path.open("ab" if self._length else "wb") as file:
                    self._length += file.write(_line(self.entries[-1]))
            self._is_behind = False
        except OSError as error:
            if not is_full(error):
                raise
            if not self._is_behind:
                logger.error("Log: the disk is full; %s is completed when there is room: %s", path, error)
            self._is_behind = True

    def _write_all(self, path: Path) -> None:
        content = b"".join(map(_line, self.entries))
        with atomic_writer(path, len(content)) as file:
            file.write(content)
        self._length = len(content)

    def files(self) -> list[str]:
        """Return the file."""
        return [self._name]

    def start(self, trainer: Trainer) -> None:
        """Cut off what was written after the checkpoint, or write what is missing before it."""
        if not self.entries:
            return
        path, content = trainer.out / self._name, b"".join(map(_line, self.entries))
        self._length = len(content)
        if _starts_with(path, content):
            os.truncate(path, self._length)
            return
        logger.warning(
            "%s is written anew from the checkpoint, since it must begin with its %d entries", path, len(self.entries)
        )
        self._is_behind = True
        self._write(path)

    def stop(self, trainer: Trainer) -> None:
        """Write entries for which there was no room."""
        if self._is_behind:
            self._write(trainer.out / self._name)

    def get_state(self) -> dict[str, Any]:
        """Return the entries and the length of the file."""
        return {**super().get_state(), "entries": self.entries, "length": self._length}

    @checked_state
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        super().set_state(state)
        self.entries, self._length = list(state["entries"]), state["length"]


def _line(entry: Mapping[str, Any]) -> bytes:
    # JSON has no NaN and no infinity.
    plain = {k: repr(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in entry.items()}
    return json.dumps(plain).encode() + b"\n"


def _starts_with(path: Path, content: bytes) -> bool:
    try:
        with open_to_read(path) as file:
            return file.read(len(content)) == content
    except FileNotFoundError:
        return False


class Logger(Protocol):
    """An object that is told values."""

    def log(self, iteration: int, name: str, value: float) -> None:
        """Take one value."""


class Tell(Averages):
    """Tell a logger the means of reported values, each epoch or as the trigger says.

    Args:
        logger: An object with ``log(iteration, name, value)``.
        *keys: Names of the values; none: all.
    """

    first_rank_only = True

    def __init__(self, logger: Logger, *keys: str) -> None:
        super().__init__(keys)
        self.logger = logger

    def __call__(self, trainer: Trainer) -> None:
        entry = self.entry(trainer)
        for name in entry.keys() - {"iteration", "epoch", "elapsed_time"}:
            self.logger.log(trainer.iteration, name, entry[name])


class Print(Averages):
    """Write a table of the means of reported values, a row each epoch or as the trigger says.

    Args:
        *keys: Names of the columns, also "epoch", "iteration" and "elapsed_time"; none: these, and all values.
        file: File to write to; None: standard output.

    Example:
        >>> from nn_core.training import Print, fit
        >>> table, x, t = Print("epoch", "iteration"), np.eye(4), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=2, batch_size=2, progress=False, extensions=[table])
               epoch     iteration
               1             2
               2             4
    """

    first_rank_only = True

    @fitted
    def __init__(self, *keys: str, file: IO[str] | None = None) -> None:
        super().__init__()
        self._columns = keys
        self._shown: tuple[str, ...] = ()
        self._file = file

    def __call__(self, trainer: Trainer) -> None:
        entry = self.entry(trainer)
        columns = self._columns or tuple(entry)
        file = sys.stdout if self._file is None else self._file
        if columns != self._shown:
            file.write("  ".join(f"{name:>12}" for name in columns) + "\n")
            self._shown = columns
        cells = [(name, _cell(entry.get(name))) for name in columns]
        file.write("  ".join(f"{cell:>{max(12, len(name))}}" for name, cell in cells) + "\n")
        file.flush()


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
