"""The trainer: iterations until a trigger says stop, and extensions in between."""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nn_core.communicators import Communicator
from nn_core.communicators.elastic import fill_up, join
from nn_core.engine.error_messages.refusal import described, fitted, fitted_methods
from nn_core.engine.runtime.limits import TimeLimit
from nn_core.engine.runtime.schemas import checked_state_without
from nn_core.errors import ArgumentError, CommunicationError
from nn_core.files import naming_file, wait_for_writers
from nn_core.logger import logger
from nn_core.training.checkpoint import Snapshot, from_bytes, newest_whole, restore_snapshot, take_snapshot, to_bytes
from nn_core.training.entry import PHASES, Entry, Extension, call_each, offered, save_by_trigger
from nn_core.training.parts import Saving, without
from nn_core.training.rank_saving import RankSaving
from nn_core.training.ranks import Progress, of_rank
from nn_core.training.reporting import Observation, observing
from nn_core.training.runs import RunFolder
from nn_core.training.signals import StopSignals
from nn_core.training.triggers import Trigger, TriggerLike, as_trigger
from nn_core.training.updater import Updater


@fitted_methods()
class Trainer:
    """Runs an updater until a trigger fires, and extensions when theirs do.

    An extension is a function of the trainer. It may have attributes `every` (its trigger; default: each epoch), `phase`
    ("measure", "edit", "read" or "save"; default: "read"), `name` and `first_rank_only`, and methods ``observe(trainer)``,
    called after each iteration, ``start(trainer)``, called when training starts or was resumed, ``stop(trainer)``,
    ``finish(trainer)``, called when training has come to its end, ``leave(trainer)``, called when a signal or a time limit
    ends the process before, ``failed(trainer, error)``, ``files()``, which names what it writes in the folder, and
    ``get_state()`` and ``set_state(state)``.

    Where the updater has a communicator, every rank runs a trainer with the same extensions. Those with `first_rank_only`,
    which write files or to the terminal, run on rank 0 alone. All ranks end after the same iteration, also when one of them
    is told to stop.

    Args:
        updater: Runs the iterations.
        until: The trigger that ends training, such as ``every(20, "epoch")``.
        out: Folder for what extensions write. It belongs to one run at a time; see `run`.
        extensions: Extensions, as `extend` takes them.
        objects: Further objects whose states belong to checkpoints, by name: moving averages, monitors.

    Attributes:
        updater: The updater.
        out: The folder.
        observation: Values reported in the present iteration, by name.
        stop_reason: Why training has ended; empty before.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import nn_core as nn, nn_core.functions as F, nn_core.solvers as S
        >>> from nn_core.training import Trainer, Updater, every
        >>> from nn_core.data import data_iterator_simple
        >>> w = nn.Variable.from_numpy_array([3.0], need_grad=True)
        >>> x = nn.Variable((2, 1))
        >>> solver = S.Sgd(lr=0.5)
        >>> solver.set_parameters({"w": w})
        >>> with data_iterator_simple(lambda i: (np.ones(1),), 4, 2) as data:
        ...     updater = Updater(data, [x], F.mean((x - w) ** 2), solver, model={"w": w})
        ...     with tempfile.TemporaryDirectory() as out:
        ...         Trainer(updater, every(10, "epoch"), out).run()
        >>> w.d.round(3).tolist()
        [1.0]
    """

    @fitted
    def __init__(
        self,
        updater: Updater,
        until: TriggerLike,
        out: str | Path = "result",
        extensions: Iterable[Extension | str] = (),
        objects: Mapping[str, Any] | None = None,
    ) -> None:
        if not hasattr(updater, "update"):
            raise ArgumentError(f"Trainer: updater must be an Updater, got {described(updater)}")
        self.updater = updater
        self.out = Path(out)
        self.observation = Observation(lazy=True)
        self.stop_reason = ""
        self._until = as_trigger(until)
        self._comm = getattr(updater, "comm", None)
        self._own_data = getattr(updater, "ranks_with_own_data", None)
        self._saving = RankSaving(self._comm, updater, self._own_data)
        self._is_first_rank = self._comm is None or self._comm.rank == 0
        self._objects = dict(objects or {})
        self._entries: list[Entry] = []
        self._folder = RunFolder(self.out)
        self._run_id: str | None = None
        self._elapsed = 0.0
        self._started: float | None = None
        self.extend(*extensions)

    # -- progress --------------------------------------------------------------------------------------------------

    @property
    def iteration(self) -> int:
        """Number of iterations so far."""
        return self.updater.iteration

    @property
    def epoch(self) -> int:
        """Number of epochs that have ended."""
        return self.updater.epoch

    @property
    def epoch_size(self) -> int:
        """Samples of an epoch."""
        return self.updater.epoch_size

    @property
    def samples(self) -> int:
        """Samples that were trained on so far."""
        return self.updater.samples

    @property
    def elapsed_time(self) -> float:
        """Seconds of training so far, those of interrupted runs that were saved included."""
        return self._elapsed + (0.0 if self._started is None else time.monotonic() - self._started)

    @property
    def timeout_s(self) -> float:
        """Seconds that ranks wait for each other; 0: any time."""
        return 0.0 if self._comm is None else self._comm.timeout_s

    @property
    def until(self) -> Trigger:
        """The trigger that ends training."""
        return self._until

    # -- extensions ------------------------------------------------------------------------------------------------

    def extend(self, *extensions: Extension | str, every: TriggerLike | None = None, name: str | None = None) -> None:
        """Add extensions.

        Args:
            *extensions: Extensions, or names of extensions and loggers that plugins offer.
            every: When they run; None: when they ask for.
            name: The name in checkpoints; None: their own, with a number when it is taken.

        Raises:
            ArgumentError: when one is not callable, is a trigger, has an unknown phase, or a plugin does not offer it.
        """
        if name is not None and (len(extensions) != 1 or any(entry.name == name for entry in self._entries)):
            raise ArgumentError(f"extend: name must be that of one extension, and new, got {name!r}")
        for extension in extensions:
            found = offered(extension) if isinstance(extension, str) else extension
            if isinstance(found, Trigger):  # it is a function of the trainer, whose answer nobody would read
                raise ArgumentError(
                    f"extend: extensions must do something, got the trigger {described(found)}\n"
                    "  hint: until=every(20, 'epoch') | trigger ends training; extend(extension, every=trigger) runs by it"
                )
            entry = Entry(found, every, name or self._free_name(found))
            entry.runs = self._is_first_rank or not getattr(found, "first_rank_only", False)
            self._entries.append(entry)
        self._entries.sort(key=lambda entry: PHASES.index(entry.phase))  # stable: as added within a phase

    def on(self, trigger: TriggerLike) -> Callable[[Extension], Extension]:
        """Decorate a function of the trainer that is to be called when `trigger` fires."""

        def add(function: Extension) -> Extension:
            self.extend(function, every=trigger)
            return function

        return add

    def get_extension(self, name: str) -> Extension:
        """Return the extension of a name.

        Raises:
            ArgumentError: when there is none.
        """
        for entry in self._entries:
            if entry.name == name:
                return entry.extension
        known = ", ".join(entry.name for entry in self._entries) or "none"
        raise ArgumentError(f"get_extension: name must be that of an extension ({known}), got {name!r}")

    def _free_name(self, extension: Extension) -> str:
        wanted = getattr(extension, "name", None) or getattr(extension, "__name__", type(extension).__name__)
        taken = {entry.name for entry in self._entries}
        number, name = 1, str(wanted)
        while name in taken:
            name = f"{wanted}_{number}"
            number += 1
        return name

    # -- running ---------------------------------------------------------------------------------------------------

    def stop(self, reason: str) -> None:
        """End training after this iteration."""
        self.stop_reason = reason

    def run(self, resume: bool = False, overwrite: bool = False, time_limit: TimeLimit | None = None) -> None:
        """Train until the end.

        The folder belongs to one run at a time, whose files have their plain names. Where an earlier run has come to its end,
        another one may begin: the files of the earlier one (checkpoints, log, and what else extensions name in ``files()``)
        move to the folder run-1, run-2 and so on beside them. A run that has not come to its end and left checkpoints is in
        the way: it is resumed, or its files are removed, or the folder is another one. Calling `run` once more on the same
        trainer continues the same run.

        SIGTERM, SIGHUP and Ctrl-C end the iteration first, let extensions save (`Checkpoint` does), and end the process then;
        a second one ends it at once. SIGUSR1 lets them save, and training goes on.

        Args:
            resume: Continue the newest run in the folder from the newest of its checkpoints that reads whole, if there is one.
            overwrite: Remove the files of the newest run in the folder, and start another one.
            time_limit: When this call is to save and end the process with a status that asks for another start, such as
                "3h50m" from now; see `StopSignals`. Training has not come to its end then. ``until=every(4, "hour")`` counts
                resumed runs as well, and ends training.

        Raises:
            ArgumentError: when another process trains in the folder, when it holds a run that has not come to its end, when
                both are asked for, or when `time_limit` is none.
            FileFormatError: when there are checkpoints to resume from, and none of them reads whole.
        """
        if resume and overwrite:
            raise ArgumentError("run: resume and overwrite must not both be True, got both")
        signals = StopSignals(time_limit)  # which begins now: reading a checkpoint takes time as well
        self.out.mkdir(parents=True, exist_ok=True)
        try:
            self._open_folder(resume, overwrite)
            self._train(resume, signals)
        finally:
            self._folder.close()

    def _open_folder(self, resume: bool, overwrite: bool) -> None:
        """Take the folder, which rank 0 does for all ranks."""
        refusal: Exception | None = None
        if self._is_first_rank:
            files = [name for entry in self._entries for name in entry.files()]
            try:
                self._run_id = self._folder.open(resume=resume, overwrite=overwrite, known=self._run_id, files=files)
            except Exception as error:
                refusal = error
        self._raise_together("run", refusal)

    def _raise_together(self, call: str, error: Exception | None) -> None:
        """Raise the error of this rank, or one that says that another rank has one."""
        comm = self._comm
        is_alone = comm is None or comm.joins_late
        is_raised = error is not None
        if comm is not None and not is_alone:
            (is_raised,) = comm.repeated(lambda: comm.any_rank(call, [error is not None]))
        if error is not None:
            raise error
        if is_raised:
            raise CommunicationError(f"{call}: all ranks must be able to go on, got an error that another rank has raised")

    def _train(self, resume: bool, signals: StopSignals) -> None:
        self._continue(resume)
        if self._is_first_rank:
            self._folder.begin()
        self.stop_reason = ""
        self._until.start_from_zero(self)
        entries = [entry for entry in self._entries if entry.runs]
        for entry in entries:
            entry.trigger.start(self)
        self._started = time.monotonic()
        started: list[Entry] = []
        with signals, observing(self.observation):
            try:
                for entry in entries:
                    started.append(entry)
                    entry.call("start", self)
                self._loop(signals, entries)
            except BaseException as error:
                for entry in started:
                    entry.call("failed", self, error)
                self._let_rank_0_save(error)
                raise
            finally:
                self._saving.wait()
                self._elapsed, self._started = self.elapsed_time, None
                with contextlib.ExitStack() as stack:  # the last is stopped first, and each even when another one fails
                    for entry in started:
                        stack.callback(entry.call, "stop", self)
            self._wait_for_all()
            if signals.received or signals.is_expired:
                call_each(entries, "leave", self)
            else:
                self._finish(entries)
            # ranks that have saved may still raise or say something, which is lost if another one ends the job meanwhile
            signals.leave(f"training was interrupted after iteration {self.iteration}", self._wait_for_all)

    def _wait_for_all(self) -> None:
        """Wait until rank 0 has written: a rank that leaves before would end it, since launchers end jobs as a whole."""
        if self._comm is not None:
            self._comm.repeated(self._comm.barrier)

    def _let_rank_0_save(self, error: BaseException) -> None:
        """Wait until rank 0 has written before an error of this rank ends all of them."""
        comm = self._comm
        if comm is not None and comm.rank and isinstance(error, Exception):
            wait_for_writers(self.out, comm.timeout_s)

    def _loop(self, signals: StopSignals, running: list[Entry]) -> None:
        update, observation = self.updater.update, self.observation
        entries = [entry for entry in running if entry.phase != "save"]
        savers = [entry for entry in running if entry.phase == "save"]
        self._stop_if_over()
        updater, soonest = self.updater, 0
        while not self.stop_reason:
            observation.clear()
            update()
            if updater.iteration >= soonest:
                self._after_iteration(entries)
                self._saving.run(self.out, partial(save_by_trigger, self, savers))
                soonest = self._soonest(running)
            elif self._saving.is_needed:  # another rank may save
                self._saving.run(self.out, partial(save_by_trigger, self, []))
            ends = self._ends_together(signals)
            if ends or signals.is_asked:
                signals.is_asked = False
                self._saving.run(self.out, partial(call_each, savers, "interrupted", self))
            if ends:
                return

    def _stop_if_over(self) -> None:
        """Stop a resumed run that had come to its end."""
        if self.iteration and self._until(self):
            self.stop_reason = self._until.reason

    def _after_iteration(self, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.observe is not None:
                entry.observe(self)
            if entry.trigger(self):
                self.observation.settle()  # an evaluation may compute the Variables that were reported once more
                entry.extension(self)
        # Before anything is saved, so that what is saved knows that training was over.
        if self._until(self) and not self.stop_reason:
            self.stop_reason = self._until.reason

    def _ends_together(self, signals: StopSignals) -> bool:
        """Return whether this process is to end, as all ranks do where any of them is; stop where any has a reason to stop.

        A clock, a signal or an error of one may say so.
        """
        ends, comm = signals.ends, self._comm
        if comm is not None:
            flags = [bool(self.stop_reason), *signals.flags()]
            stop, *shared = comm.repeated(lambda: comm.any_rank("stop", flags))
            self._require_rank_0(comm)
            ends = signals.take_flags(shared)
            if stop and not self.stop_reason:
                self.stop_reason = "another rank has stopped"
            if not stop and not ends:
                fill_up(comm, lambda: to_bytes(self.snapshot()))
        if self.stop_reason and signals.is_expired:  # training has come to its end in time
            signals.is_expired, ends = False, signals.received is not None
        return ends

    def _require_rank_0(self, comm: Communicator) -> None:
        if comm.rank == 0 and not self._is_first_rank:
            raise CommunicationError(
                "run: rank 0, which writes the log and the checkpoints, must live, got its loss\n"
                "  hint: nn-core launch --restarts starts all ranks again"
            )

    def _continue(self, resume: bool) -> None:
        if self._comm is not None and self._comm.joins_late:
            self._join(self._comm)
            return
        if resume:
            self._resume()
        if self._own_data is not None:
            self.updater.make_alike()
            self.updater.share_progress()

    def _join(self, comm: Communicator) -> None:
        """Continue where the other ranks are, in a process that has taken the place of a lost one."""
        self.updater.make_alike()
        restore_snapshot("join", self._of_rank("join", from_bytes(join(comm))), trainer=self, **self._objects)
        logger.info("training is joined after iteration %d as rank %d", self.iteration, comm.rank)

    def _of_rank(self, function: str, snapshot: Snapshot) -> Snapshot:
        if self._own_data is None or self._comm is None:
            return snapshot
        return of_rank(function, snapshot, self._comm, self.updater.rank_state())

    def _soonest(self, running: list[Entry]) -> int:
        """Return the next iteration after which there may be something to do."""
        soonest = self._until.soonest(self)
        for entry in running:
            if soonest <= 0:
                break
            soonest = min(soonest, 0 if entry.observe is not None else entry.trigger.soonest(self))
        return soonest

    def _finish(self, running: list[Entry]) -> None:
        if self._is_first_rank:
            self._folder.finish()
        for trigger in (self._until, *[entry.trigger for entry in self._entries]):
            trigger.finish(self)
        for entry in running:
            entry.call("finish", self)
        logger.info("training has ended after iteration %d: %s", self.iteration, self.stop_reason)

    # -- state -----------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """Return the updater, the triggers, the extensions, the seconds, and the further objects."""
        progress = None if self._own_data is None else self._own_data.progress
        return {
            "updater": self.updater.get_state(),
            "until": self._until.get_state(),
            "elapsed": self.elapsed_time,
            "extensions": {entry.name: entry.get_state() for entry in self._entries},
            **({} if progress is None else {"progress": list(progress)}),
        }

    @checked_state_without("until", "extensions")
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave; extensions may have come or gone, `until` may be another number."""
        self.updater.set_state(state["updater"])
        with contextlib.suppress(TypeError, KeyError, ValueError):  # another kind of trigger than before starts anew
            self._until.set_state(state["until"])
        self._elapsed = state["elapsed"]
        if self._own_data is not None and "progress" in state:
            self._own_data.progress = Progress(*state["progress"])
        for entry in self._entries:
            if entry.name in state["extensions"]:
                entry.set_state(state["extensions"][entry.name])
            else:
                logger.info("the extension %s was not part of the training that is resumed", entry.name)

    def snapshot(self) -> Snapshot:
        """Everything that a checkpoint of this training holds."""
        ranks = self._saving.states()
        snapshot = take_snapshot(trainer=self, **self._objects)
        for shards in getattr(self.updater, "state_shards", ()):  # whose arrays the snapshot has
            shards.drop_states()
        return self._completed(snapshot, ranks)

    def snapshot_in_parts(self, paths: Sequence[Path], *, asynchronous: bool) -> tuple[Snapshot, Saving] | None:
        """Let each rank write its part of a checkpoint, where states are divided, for extensions that save.

        Args:
            paths: The files.
            asynchronous: Let training go on meanwhile.

        Returns:
            What is in no part, and the save; None where nothing is divided.
        """
        if any(item in self.updater.solvers.values() for item in self._objects.values()):
            return None
        found = self._saving.in_parts(paths, asynchronous=asynchronous)
        if found is None:
            return None
        with contextlib.ExitStack() as stack:
            for shards in self.updater.state_shards:
                stack.enter_context(shards.left_out())
            snapshot = without(take_snapshot(trainer=self, **self._objects), self._saving.places())
        return self._completed(snapshot, found[1]), found[0]

    def _completed(self, snapshot: Snapshot, ranks: list[Any] | None) -> Snapshot:
        if ranks is not None:
            states = {**snapshot.states, "trainer": {**snapshot.states["trainer"], "ranks": ranks}}
            snapshot = replace(snapshot, states=states)
        return replace(snapshot, about={**snapshot.about, "run": self._run_id})

    def _resume(self) -> None:
        failure: Exception | None = None
        try:
            found = newest_whole(f"run: {self.out}", self.out)
            if found is not None:
                snapshot = self._of_rank(f"resume: {found[0]}", found[1])
                with naming_file(found[0]):
                    restore_snapshot(f"resume: {found[0]}", snapshot, trainer=self, **self._objects)
                logger.info("training is resumed from %s", found[0])
        except Exception as error:
            failure = error
        self._raise_together("resume", failure)
        if self._comm is not None:
            iterations = self._comm.gather_rows("resume", np.array([self.iteration])).tolist()
            if len(set(iterations)) > 1:
                raise ArgumentError(
                    f"run: all ranks must resume from the same checkpoint, got iterations {iterations} by rank\n"
                    f"  hint: {self.out} must be a folder that all machines share"
                )
