"""Run, kill, resume, overwrite and repeat trainings in folders at random, beside a model of what must be kept.

    python -m tools.lanes.states --count 500 --seed 0

Each action is a training of its own process in one of two folders: it ends, is killed at a random call or stopped by
SIGTERM, meets the lock of a live run, or damaged checkpoints. Every training starts from a number of its own, from which all
later ones follow, so that a checkpoint or a log tells which run it belongs to. Then the files are compared with the model:
nothing that a run has left is lost or changed, no run continues another one, and nothing starts where it must be refused.
Besides, the start of a run that follows a finished one is killed before each change of a file, and another one follows.
"""

import hashlib
import itertools
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import BuiltinFunctionType, FrameType
from typing import Any, Final

import click
import numpy as np

from nn_core.errors import ArgumentError, FileFormatError
from nn_core.files.lock import FileLock, take_lock
from nn_core.logger import logger
from nn_core.training import Checkpoint, Log, Trainer, checkpoints_in, every, report
from nn_core.training.checkpoint import number_of, read_snapshot
from nn_core.training.runs import LOCK, RECORD

from .reliability import record, report_option

#: Files of the trainer itself, which belong to no run.
_OWN: Final = (LOCK, RECORD)
_MODULUS: Final = 2**61 - 1
#: More calls than a training makes.
_MOST_CALLS: Final = 12_000
#: Functions of the system, and methods of open files, that change files or folders.
_CHANGES: Final = ("open", "write", "flush", "ftruncate", "replace", "unlink", "mkdir", "fsync")
_WAYS: Final = ("run", "resume", "overwrite")


def value_after(start: int, iteration: int) -> int:
    """Return what a training that began with `start` has computed after some iterations."""
    value = start
    for number in range(iteration):
        value = _next_value(value, number)
    return value


def _next_value(value: int, number: int) -> int:
    return (value * 6364136223846793005 + number) % _MODULUS


class Counting:
    """An updater without a network, whose result tells where it began and how far it has come."""

    def __init__(self, start: int) -> None:
        self.start, self.iteration, self.value = start, 0, start
        self.epoch, self.epoch_size = 0, 1
        self.samples_of_a_step = None

    @property
    def samples(self) -> int:
        """Number of iterations."""
        return self.iteration

    def update(self) -> None:
        """Run one iteration."""
        self.value = _next_value(self.value, self.iteration)
        self.iteration += 1
        report({"loss": float(self.value % 1000)})

    def get_state(self) -> dict[str, Any]:
        """Return everything."""
        return {"start": str(self.start), "iteration": self.iteration, "value": str(self.value)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        self.start, self.iteration, self.value = int(state["start"]), state["iteration"], int(state["value"])


@dataclass(frozen=True)
class Action:
    """One training.

    Attributes:
        way: "run", "resume" or "overwrite".
        start: The number that it begins with, unless it is resumed.
        until: Iterations.
        keep: Checkpoints that are kept.
        period: Iterations between two of them.
        is_asynchronous: Whether they are written by a thread.
        kill_at: The call at which it is killed; None: none.
        only_changes: Whether only calls that change files or folders are counted for that.
        term_at: The iteration in which it gets SIGTERM; None: none.
        meets_lock: Whether another process holds the lock of the folder.
        damages: The number of checkpoints that are cut before, the newest first.
    """

    way: str
    start: int
    until: int
    keep: int | None
    period: int
    is_asynchronous: bool
    kill_at: int | None
    term_at: int | None
    meets_lock: bool
    damages: int
    only_changes: bool = False


def drawn(rng: np.random.Generator) -> Action:
    """Return a random action."""
    fate = rng.random()
    return Action(
        way=str(rng.choice(_WAYS, p=[0.4, 0.45, 0.15])),
        start=int(rng.integers(1, _MODULUS)),
        until=int(rng.integers(1, 13)),
        keep=[1, 2, 3, None][rng.integers(4)],
        period=int(rng.integers(1, 4)),
        is_asynchronous=bool(rng.random() < 0.3),
        kill_at=int(rng.integers(1, _MOST_CALLS)) if fate < 0.5 else None,
        term_at=int(rng.integers(1, 10)) if 0.5 < fate < 0.6 else None,
        meets_lock=bool(rng.random() < 0.1),
        damages=int(rng.integers(1, 4)) if rng.random() < 0.1 else 0,
    )


@dataclass
class Outcome:
    """How an action has gone, as far as its process could tell."""

    began_at: int | None = None
    start: int | None = None
    end: str = "killed"


def acted(folder: Path, action: Action) -> Outcome:
    """Train in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _train(folder, action, lambda text: os.write(writing, text.encode() + b"\n"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        lines = told.read().split()
    os.waitpid(child, 0)
    outcome = Outcome()
    for line in lines:
        name, *rest = line.split(":")
        if name == "began":
            outcome.began_at, outcome.start = int(rest[0]), int(rest[1])
        else:
            outcome.end = name
    return outcome


def _train(folder: Path, action: Action, tell: Callable[[str], object]) -> None:
    logger.disabled = True
    updater = Counting(action.start)
    trainer = Trainer(updater, every(action.until), folder)  # type: ignore[arg-type]  # it has what a trainer asks for
    trainer.extend(Log("loss"), every=every(1))
    saver = Checkpoint(keep=action.keep, asynchronous=action.is_asynchronous, best="loss", mode="min")
    trainer.extend(saver, every=every(action.period))

    def look(trainer: Trainer) -> None:
        if trainer.iteration == action.term_at:
            os.kill(os.getpid(), signal.SIGTERM)

    look.start = lambda trainer: tell(f"began:{updater.iteration}:{updater.start}")  # type: ignore[attr-defined]
    trainer.extend(look, every=every(1))
    if action.kill_at is not None:
        sys.setprofile(_killer(action.kill_at, action.only_changes))
    try:
        trainer.run(resume=action.way == "resume", overwrite=action.way == "overwrite")
        tell("ended")
    except FileFormatError:
        tell("damaged")
    except ArgumentError:
        tell("refused")
    except SystemExit:
        tell("stopped")
    except BaseException as error:
        tell(f"failed-{type(error).__name__}")


def _killer(at: int, only_changes: bool) -> Callable[[FrameType, str, object], None]:
    count = 0

    def step(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += _is_change(event, arg) if only_changes else event in ("call", "c_call")
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def _is_change(event: str, arg: object) -> bool:
    """Return whether it is a call that changes files or folders."""
    return event == "c_call" and isinstance(arg, BuiltinFunctionType) and arg.__name__ in _CHANGES


def _digests(folder: Path) -> dict[str, str]:
    """Return digests of the files of runs by path within the folder, without partial ones, to which no name refers."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in _OWN and path.suffix != ".partial":
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _whole(folder: Path) -> dict[int, tuple[int, int]]:
    """Return the start and the value of each checkpoint that reads whole, by number."""
    found = {}
    for path in checkpoints_in(folder):
        try:
            state = read_snapshot(path).states["trainer"]["updater"]
        except FileFormatError:
            continue
        found[number_of(path)] = int(state["start"]), int(state["value"])
    return found


def _runs(folder: Path) -> list[dict[str, Any]]:
    path = folder / RECORD
    return json.loads(path.read_bytes())["runs"] if path.exists() else []


@dataclass
class Model:
    """A model of what must be in a folder.

    Attributes:
        folder: The folder.
        start: The number with which the newest run began; None: it has not been seen to begin.
        is_finished: Whether it has come to its end.
        pushed: Files of the run before, while the newest has not been seen to begin, so that a kill may have left them where
            they were; None: it has begun.
        leaving: Those of them that must be kept, and were not seen aside.
        aside: Files that were moved aside, by path within the folder.
        has_begun: Whether the last action has begun to train.
    """

    folder: Path
    start: int | None = None
    is_finished: bool = False
    pushed: dict[str, str] | None = None
    leaving: dict[str, str] = field(default_factory=dict)
    aside: dict[str, str] = field(default_factory=dict)
    has_begun: bool = False

    def expected_end(self, action: Action) -> str:
        """Return how the action has to end if nothing disturbs it: "refused", "damaged" or ""."""
        if action.meets_lock:
            return "refused"
        has_checkpoints = bool(checkpoints_in(self.folder)) and self.pushed is None
        if action.way == "run" and has_checkpoints and not self.is_finished:
            return "refused"
        return "damaged" if action.way == "resume" and has_checkpoints and not _whole(self.folder) else ""

    def step(self, action: Action) -> Iterator[str]:
        """Act, and yield what is wrong afterwards."""
        damaged = checkpoints_in(self.folder)[: action.damages] if self.pushed is None else []
        for path in damaged:
            path.write_bytes(path.read_bytes()[:-50])
        before, n_runs, whole = _digests(self.folder), len(_runs(self.folder)), self._own_checkpoints()
        expected = self.expected_end(action)
        lock = take_lock(self.folder / LOCK) if action.meets_lock else None
        outcome = acted(self.folder, action)
        self.has_begun = outcome.began_at is not None
        if isinstance(lock, FileLock):
            lock.release()
        now = _digests(self.folder)
        if outcome.end != expected and outcome.end in ("refused", "damaged"):
            yield f"must have {expected or 'begun'}, has {outcome.end}"
            return
        if expected:
            if outcome.end not in (expected, "killed") or outcome.began_at is not None:
                yield f"must be {expected}, has {outcome.end}"
            if now != before:
                yield f"{expected}, and has changed {sorted(set(now.items()) ^ set(before.items()))}"
            return
        yield from self._judged(action, outcome, before, now, n_runs, whole)

    def _judged(
        self,
        action: Action,
        outcome: Outcome,
        before: dict[str, str],
        now: dict[str, str],
        n_runs: int,
        whole: dict[int, tuple[int, int]],
    ) -> Iterator[str]:
        """Tell what is wrong after an action that could begin."""
        is_new = bool(n_runs) and len(_runs(self.folder)) > n_runs
        plain = {name: digest for name, digest in before.items() if not name.startswith("run-")}
        if is_new:
            if self.pushed is None:  # otherwise the run that is followed has not begun, and has written nothing
                self.pushed, self.leaving = plain, {} if action.way == "overwrite" else dict(plain)
            self.start, self.is_finished, whole = None, False, {}
        yield from self._kept(now, outcome)
        if outcome.began_at is not None:
            self.start = outcome.start
            if action.way != "resume" and (outcome.began_at, outcome.start) != (0, action.start):
                yield f"must begin anew, has continued {outcome.start} after iteration {outcome.began_at}"
            if action.way == "resume" and outcome.began_at != max(whole, default=0):
                yield f"must continue after iteration {max(whole, default=0)}, has after {outcome.began_at}"
            if action.way == "resume" and whole and outcome.start != whole[max(whole)][0]:
                yield f"must continue the run of {whole[max(whole)][0]}, has that of {outcome.start}"
        if outcome.end.startswith("failed"):
            yield f"has {outcome.end}"
        yield from self._progress(action, outcome, whole)

    def _kept(self, now: dict[str, str], outcome: Outcome) -> Iterator[str]:
        """Yield whether everything that was moved aside, or is to be, is there, and a run that has begun is alone."""
        for name, digest in self.aside.items():
            if now.get(name) != digest:
                yield f"{name}, which was aside, is lost or has changed"
        has_begun = outcome.began_at is not None
        for name, digest in dict(self.leaving).items():
            found = [path for path in now if re.fullmatch(rf"run-\d+/{re.escape(name)}", path)]
            found = [path for path in found if now[path] == digest and path not in self.aside]
            if found:
                self.aside[found[0]] = digest
                del self.leaving[name]
            elif has_begun or now.get(name) != digest:
                yield f"{name} of the earlier run is lost"
        if has_begun:
            for name, digest in (self.pushed or {}).items():
                if now.get(name) == digest:
                    yield f"{name} of the earlier run is still in the way"
            self.pushed, self.leaving = None, {}

    def _own_checkpoints(self) -> dict[int, tuple[int, int]]:
        return _whole(self.folder) if self.pushed is None else {}

    def _progress(self, action: Action, outcome: Outcome, whole: dict[int, tuple[int, int]]) -> Iterator[str]:
        """Yield whether the checkpoints, the log and the end are those of the run."""
        now = self._own_checkpoints()
        if max(now, default=0) < max(whole, default=0) and action.way == "resume":
            yield f"the newest checkpoint was {max(whole)}, and is {max(now, default=0)}"
        for number, (start, value) in now.items():
            if self.start is not None and start != self.start:
                yield f"checkpoint {number} is one of another run"
            if value != value_after(start, number):
                yield f"checkpoint {number} has another value"
        if outcome.end == "ended":
            self.is_finished = True
            yield from self._ended(action, now, max(whole, default=0))
        elif runs := _runs(self.folder):
            self.is_finished = runs[-1]["is_finished"]  # it may have been killed after its end, or before it was continued

    def _ended(self, action: Action, now: Mapping[int, object], began_at: int) -> Iterator[str]:
        """Yield whether a run that has ended has left what it should."""
        last = max(action.until, began_at)
        lines = [json.loads(line) for line in (self.folder / "log.jsonl").read_text().splitlines()]
        expected = [(number, float(value_after(self.start or 0, number) % 1000)) for number in range(1, last + 1)]
        if [(line["iteration"], line["loss"]) for line in lines] != expected:
            yield f"the log must hold {last} iterations of the run, holds {[line['iteration'] for line in lines]}"
        due = [number for number in range(began_at + 1, last + 1) if number % action.period == 0]
        missing = set(due[-(action.keep or len(due)) :] if due else []) - set(now)
        if missing:
            yield f"checkpoints {sorted(missing)} must be kept, got {sorted(now)}"


def check(count: int, seed: int, length: int = 20) -> Iterator[str]:
    """Act `count` times, in sequences of `length` in two folders; texts of what is wrong."""
    for first in range(0, count, length):
        rng = np.random.default_rng([seed, first])
        with tempfile.TemporaryDirectory() as name:
            models = [Model(Path(name) / folder) for folder in "ab"]
            for model in models:
                model.folder.mkdir()
            for number in range(first, min(first + length, count)):
                action, which = drawn(rng), int(rng.integers(2))
                other = _digests(models[1 - which].folder)
                findings = list(models[which].step(action))
                if _digests(models[1 - which].folder) != other:
                    findings.append("has changed the other folder")
                yield from (f"seed {seed}, number {number}, {action}: {text}" for text in findings)
                if findings:
                    break  # what follows is not what the model expects


def check_starts(ways: Sequence[str] = _WAYS, next_ways: Sequence[str] = _WAYS, step: int = 1) -> Iterator[str | None]:
    """Kill the start of a run that follows a finished one before each change of a file, and start another; None: all is well.

    Args:
        ways: How the run is started that is killed.
        next_ways: How the one after it is.
        step: Each how many changes.
    """
    whole = Action("run", 5, 4, 2, 1, is_asynchronous=False, kill_at=None, term_at=None, meets_lock=False, damages=0)
    for way, next_way in itertools.product(ways, next_ways):
        for number in itertools.count(1, step):
            killed = replace(whole, way=way, start=7, until=6, kill_at=number, only_changes=True)
            with tempfile.TemporaryDirectory() as name:
                model = Model(Path(name))
                texts = list(model.step(whole)) + list(model.step(killed))
                is_over = model.has_begun
                texts += [] if texts or is_over else model.step(replace(whole, way=next_way, start=9, until=8))
            if is_over:
                break
            yield f"killed before change {number} of {way}, then {next_way}: {'; '.join(texts)}" if texts else None


@click.command()
@click.option("--count", default=100, help="Actions.")
@click.option("--seed", default=0)
@report_option
def main(count: int, seed: int, report: Path | None) -> None:
    """Act in folders at random, and kill starts before each change of a file; the exit status is 1 if there is a finding."""
    findings = list(check(count, seed))
    record(report, "states", "runs in folders", count=count, findings=len(findings), seed=seed)
    starts = list(check_starts())
    found = [text for text in starts if text is not None]
    record(report, "states", "starts, killed before each change of a file", count=len(starts), findings=len(found))
    for text in [*findings, *found]:
        click.echo(f"--- {text}")
    sys.exit(bool(findings or found))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.states")
