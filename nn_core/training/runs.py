"""The runs in the folder of a trainer: which one its files belong to, whether it has ended, and that it is alone.

The files of the newest run have their plain names. Before another one starts, they move to a folder of their own, ``run-1``,
``run-2`` and so on. What is to happen is written down first, so that a start that was killed is completed by the next one.
"""

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from nn_core.errors import ArgumentError
from nn_core.files import atomic_writer, read_file, remove_leftovers
from nn_core.files.lock import FileLock, Owner, take_lock
from nn_core.logger import logger
from nn_core.training.checkpoint import checkpoints_in
from nn_core.training.parts import parts_of

RECORD: Final = "runs.json"
LOCK: Final = ".runs.lock"
_FORMAT: Final = 1


@dataclass(frozen=True)
class Run:
    """One run of a training, resumed ones included.

    Attributes:
        id: Its identity.
        is_finished: Whether it has come to its end.
        files: Names of the files in the folder that belong to it besides its checkpoints.
        leaves_for: Where its files are moved when another run follows: the name of a folder, or "" if they are removed.
        has_left: Whether they have been.
    """

    id: str
    is_finished: bool = False
    files: tuple[str, ...] = ()
    leaves_for: str | None = None
    has_left: bool = False


class RunFolder:
    """The runs in a folder, of which `open` starts or continues one.

    Args:
        folder: The folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: list[Run] = []
        self._lock: FileLock | None = None

    def open(self, *, resume: bool, overwrite: bool, known: str | None, files: Iterable[str]) -> str:
        """Take the lock of the folder, and start a run or continue the newest one.

        Args:
            resume: Continue the newest run.
            overwrite: Remove the files of the newest run.
            known: The run that the calling trainer was in before, which it continues.
            files: Names of what the run writes besides its checkpoints.

        Returns:
            The identity of the run.

        Raises:
            ArgumentError: when another process uses the folder, or it holds a run that has not come to its end.
            OSError: when the folder cannot be written.
        """
        lock = take_lock(self._folder / LOCK)
        if not isinstance(lock, FileLock):
            self._refuse_live(lock)
        self._lock = lock
        try:
            remove_leftovers(self._folder)
            self._runs = self._read()
            self._complete_moves()
            return self._begin(resume, overwrite, known, _inside(files))
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        """Write down that a run that had come to its end goes on, which is known once its checkpoint was read."""
        if self._runs[-1].is_finished:
            self._runs[-1] = replace(self._runs[-1], is_finished=False)
            self._write()

    def finish(self) -> None:
        """Write down that the run has come to its end."""
        self._runs[-1] = replace(self._runs[-1], is_finished=True)
        self._write()

    def close(self) -> None:
        """Open the lock."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def _begin(self, resume: bool, overwrite: bool, known: str | None, files: tuple[str, ...]) -> str:
        newest = self._runs[-1] if self._runs else self._unrecorded(files)
        if newest is not None and (resume or newest.id == known):
            all_files = tuple(dict.fromkeys((*newest.files, *files)))
            self._runs[-1:] = [replace(newest, files=all_files)]
            self._write()
            return newest.id
        if newest is not None:
            if not newest.is_finished and not overwrite and (found := checkpoints_in(self._folder)):
                self._refuse_unfinished(newest, found[0])
            self._runs[-1:] = [replace(newest, leaves_for="" if overwrite else self._free_folder())]
        run = Run(secrets.token_hex(8), files=files)
        self._runs.append(run)
        self._write()
        self._complete_moves()
        return run.id

    def _unrecorded(self, files: Sequence[str]) -> Run | None:
        """Return the run of earlier versions, or of a program with a loop of its own, whose files are in the folder."""
        if checkpoints_in(self._folder) or any((self._folder / name).exists() for name in files):
            return Run(secrets.token_hex(8), files=tuple(files))
        return None

    def _complete_moves(self) -> None:
        if all(run.has_left for run in self._runs[:-1]):
            return
        for index, run in enumerate(self._runs[:-1]):
            if not run.has_left:
                self._clear(run)
                self._runs[index] = replace(run, has_left=True)
        self._write()

    def _clear(self, run: Run) -> None:
        """Move the files of a run out of the way, or remove them."""
        names = [*(path.name for path in checkpoints_in(self._folder)), *_inside(run.files)]
        names += [part.name for name in names for part in parts_of(self._folder / name)]
        for name in names:
            path = self._folder / name
            if not path.is_file():
                continue
            if not run.leaves_for:
                path.unlink()
                continue
            target = self._folder / run.leaves_for / name
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        if run.leaves_for:
            logger.info("the files of the earlier run %s are in %s", run.id, self._folder / run.leaves_for)

    def _free_folder(self) -> str:
        number = 1
        while (self._folder / f"run-{number}").exists() or any(run.leaves_for == f"run-{number}" for run in self._runs):
            number += 1
        return f"run-{number}"

    def _read(self) -> list[Run]:
        path = self._folder / RECORD
        try:
            content = json.loads(read_file(path))
            runs = [_run_of(entry) for entry in content["runs"]]
        except FileNotFoundError:
            return []
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            aside = path.with_name(f"{RECORD}.unreadable")
            logger.warning("%s is moved to %s, since it does not read whole: %s", path, aside.name, error)
            path.replace(aside)  # a link itself, and not what it leads to
            return []
        if content.get("format") != _FORMAT:
            raise ArgumentError(f"run: {path} must have format {_FORMAT}, got {content.get('format')!r} of a later nn_core")
        return runs

    def _write(self) -> None:
        content = {"format": _FORMAT, "runs": [asdict(run) for run in self._runs]}
        with atomic_writer(self._folder / RECORD) as file:
            file.write(json.dumps(content, indent=1).encode() + b"\n")

    def _refuse_live(self, owner: Owner | None) -> NoReturn:
        raise ArgumentError(
            f"run: the folder {self._folder} must not be in use, got a run there by {owner or 'another process'}\n"
            "  hint: wait until it has ended, or give another folder: Trainer(out=...)"
        )

    def _refuse_unfinished(self, run: Run, newest: Path) -> NoReturn:
        raise ArgumentError(
            f"run: the folder {self._folder} must not hold a run that has not come to its end, "
            f"got {newest.name} of run {run.id}\n"
            "  hint: run(resume=True) continues it, run(overwrite=True) removes its files, and Trainer(out=...) takes "
            "another folder"
        )


def _run_of(entry: dict[str, Any]) -> Run:
    files, leaves_for = entry["files"], entry["leaves_for"]
    if not all(isinstance(name, str) for name in [entry["id"], *files]) or not isinstance(leaves_for, (str, type(None))):
        raise TypeError("names must be texts")
    if leaves_for and _inside([leaves_for]) != (leaves_for,):
        raise ValueError(f"files must stay in the folder, got {leaves_for!r}")
    return Run(entry["id"], bool(entry["is_finished"]), tuple(files), leaves_for, bool(entry["has_left"]))


def _inside(names: Iterable[str]) -> tuple[str, ...]:
    """Those of some relative paths that stay in their folder; what is elsewhere belongs to no run."""
    return tuple(name for name in names if not Path(name).is_absolute() and ".." not in Path(name).parts)
