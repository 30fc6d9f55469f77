"""The trainer: order, resuming, signals, errors."""

import io
import json
import logging
import re
import signal
import sys

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, GraphError
from nn_core.experimental.viewers import DumpGraph
from nn_core.training import (
    Checkpoint,
    FailOnNonFinite,
    Log,
    Plot,
    Print,
    Progress,
    Schedule,
    Statistics,
    Trainer,
    best,
    early_stop,
    every,
    observe,
    report,
)
from nn_core.training.checkpoint import checkpoints_in, read_snapshot
from nn_core.training.triggers import Trigger
from nn_core.utils.learning_rate_scheduler import ExponentialScheduler


class Note:
    """Writes down what is done with it."""

    every = every(2)

    def __init__(self, notes, name, phase="read"):
        self.notes, self.name, self.phase = notes, name, phase

    def __call__(self, trainer):
        self.notes.append(f"{self.name} {trainer.iteration}")

    def start(self, trainer):
        self.notes.append(f"start {self.name}")

    def stop(self, trainer):
        self.notes.append(f"stop {self.name}")

    def failed(self, trainer, error):
        self.notes.append(f"{self.name} {type(error).__name__}")


def test_the_order_of_extensions(make_updater, tmp_path):
    notes = []
    trainer = Trainer(make_updater(), every(3), tmp_path)
    trainer.extend(Note(notes, "c", "save"), Note(notes, "b"))
    trainer.extend(Note(notes, "a", "measure"), every=every(1))
    trainer.extend(Note(notes, "b2"), name="another")
    trainer.run()
    assert notes == [
        *(f"start {name}" for name in ("a", "b", "b2", "c")),
        "a 1",
        *("a 2", "b 2", "b2 2", "c 2"),
        "a 3",
        *(f"stop {name}" for name in ("c", "b2", "b", "a")),
    ]
    assert trainer.stop_reason == "3 iterations have passed"
    assert trainer.get_extension("another").name == "b2"


def test_names_are_made_unique(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(1), tmp_path, [Log(), Log(path="b.jsonl")])
    assert trainer.get_extension("Log") is not trainer.get_extension("Log_1")
    with pytest.raises(ArgumentError, match=r"get_extension: name must be that of an extension \(Log, Log_1\), got 'log'"):
        trainer.get_extension("log")
    with pytest.raises(ArgumentError, match="extend: name must be that of one extension, and new, got 'Log'"):
        trainer.extend(Log(), name="Log")
    with pytest.raises(ArgumentError, match="extend: an extension must be a function of the trainer, got 3"):
        trainer.extend(3)
    with pytest.raises(ArgumentError, match=r"extend: the phase of a must be one of measure, .*, got 'later'"):
        trainer.extend(Note([], "a", "later"))
    with pytest.raises(ArgumentError, match=r"that a plugin offers .*, got 'board'\n  hint: pip install nn-ext-board"):
        trainer.extend("board")


def test_functions_and_stop(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(100), tmp_path)

    @trainer.on(every(3))
    def enough(trainer):
        trainer.stop("it is enough")

    trainer.run()
    assert (trainer.iteration, trainer.stop_reason) == (3, "it is enough")


def test_errors_reach_everybody(make_updater, tmp_path):
    notes = []
    trainer = Trainer(make_updater(), every(9), tmp_path, [Note(notes, "a")])

    @trainer.on(every(1))
    def fail(trainer):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trainer.run()
    assert notes == ["start a", "a ZeroDivisionError", "stop a"]


def test_values_that_are_not_finite(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(9), tmp_path, [FailOnNonFinite()])

    @trainer.on(every(2))
    def spoil(trainer):
        report({"spoilt": float("nan")})

    spoil.phase = "measure"
    trainer = Trainer(make_updater(), every(9), tmp_path, [FailOnNonFinite()])
    trainer.extend(spoil, every=every(2))
    with pytest.raises(GraphError, match="FailOnNonFinite: spoilt must be finite, got nan in iteration 2\n  hint: lower"):
        trainer.run()


def test_early_stopping_says_why(make_updater, tmp_path, caplog):
    caplog.set_level(logging.INFO, "nn_core")
    trainer = Trainer(make_updater(), every(99) | early_stop("level", 3, "min"), tmp_path)
    trainer.extend(observe("level", lambda trainer: max(2, 5 - trainer.iteration)), every=every(1))
    trainer.run()
    assert trainer.iteration == 6
    assert "training has ended after iteration 6: level has not improved on 2 for 3 times" in caplog.text


def test_names_that_nobody_reports(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(2), tmp_path)
    trainer.extend(lambda trainer: None, every=best("los", "min"))
    with pytest.raises(ArgumentError, match=r"best: the key must be one that is reported \(loss\), got 'los'"):
        trainer.run()


def extensions():
    return [
        Log(),
        Schedule(ExponentialScheduler(0.1, 0.9)),
        observe("rate", lambda trainer: trainer.updater.solvers["main"].learning_rate()),
        Checkpoint(keep=2, best="loss", mode="min"),
    ]


def final(trainer, out):
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("elapsed_time")
    values = [variable.d.tolist() for variable in nn.get_parameters().values()]
    return lines, values, trainer.updater.solvers["main"].learning_rate()


@pytest.mark.parametrize("until", [every(4, "epoch"), every(4, "epoch") | every(1, "hour")])
def test_a_resumed_run_ends_as_an_unbroken_one(make_updater, tmp_path, until):
    whole = Trainer(make_updater("Adam", accumulate=2), until, tmp_path / "whole", extensions())
    whole.run(resume=True)  # there is nothing to resume
    expected = final(whole, tmp_path / "whole")
    out = tmp_path / "parts"
    for stop in (2, 4, 5, 100):
        trainer = Trainer(make_updater("Adam", accumulate=2), until, out, extensions())

        def crash(trainer, stop=stop):
            if trainer.iteration == stop:
                raise KeyError(stop)

        trainer.extend(crash, every=every(1))
        try:
            trainer.run(resume=True)
        except KeyError:
            continue
    assert final(trainer, out) == expected
    assert len(list(out.glob("checkpoint-*.npz"))) == 2
    assert (out / "best.npz").exists()
    again = Trainer(make_updater("Adam", accumulate=2), until, out, extensions())
    again.run(resume=True)  # it was over
    assert again.iteration == whole.iteration
    assert final(again, out) == expected


def test_training_goes_on_when_more_is_wanted(make_updater, tmp_path):
    Trainer(make_updater(), every(2, "epoch"), tmp_path, [Checkpoint()]).run()
    trainer = Trainer(make_updater(), every(4, "epoch") | early_stop("loss", 99, "min"), tmp_path, [Checkpoint(), Log()])
    trainer.run(resume=True)
    assert trainer.epoch == 4
    assert trainer.iteration == 12


def test_a_trigger_of_the_program_that_has_no_state_of_the_other_kind_starts_anew(make_updater, tmp_path):
    class Patient(Trigger):
        def __call__(self, trainer):
            return trainer.iteration >= 9

        def set_state(self, state):
            raise KeyError("patience")

    Trainer(make_updater(), every(2, "epoch"), tmp_path, [Checkpoint()]).run()
    trainer = Trainer(make_updater(), Patient(), tmp_path, [Checkpoint()])
    trainer.run(resume=True)
    assert trainer.iteration == 9


def test_asynchronous_checkpoints_hold_the_moment(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(6), tmp_path)
    trainer.extend(Checkpoint(keep=None, asynchronous=True), every=every(1))
    trainer.run()
    plain = Trainer(make_updater(), every(6), tmp_path / "plain")
    plain.extend(Checkpoint(keep=None), every=every(1))
    plain.run()
    for path in sorted(tmp_path.glob("*.npz")):
        states = [read_snapshot(p).states["trainer"]["updater"] for p in (path, tmp_path / "plain" / path.name)]
        np.testing.assert_equal(*states)


def test_errors_of_the_writing_thread_are_raised(make_updater, tmp_path):
    out = tmp_path / "out"
    trainer = Trainer(make_updater(), every(3), out)
    trainer.extend(Checkpoint(asynchronous=True), every=every(1))

    @trainer.on(every(1))
    def remove(trainer):
        if trainer.iteration == 2:
            trainer.get_extension("Checkpoint").wait()
            out.rename(tmp_path / "moved")
            out.write_text("a file in the way")

    with pytest.raises(NotADirectoryError):
        trainer.run()


def test_checkpoint_refusals():
    with pytest.raises(ArgumentError, match="Checkpoint: keep must be at least 1, got 0"):
        Checkpoint(keep=0)
    with pytest.raises(ArgumentError, match="Checkpoint: mode must be 'min' or 'max' when best is given, got None"):
        Checkpoint(best="loss")


def test_tables_and_lines(make_updater, tmp_path, capsys, monkeypatch):
    trainer = Trainer(make_updater(), every(2, "epoch"), tmp_path, [Print("epoch", "loss", "nothing"), Statistics()])
    trainer.extend(Progress(interval=1))
    monkeypatch.setattr("nn_core.training.extensions.terminal._LINES_S", 0.0)
    trainer.run()
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["epoch", "loss", "nothing"]
    assert [row[0] for row in rows[1:]] == ["1", "2"]
    assert float(rows[2][1]) < float(rows[1][1])
    lines = err.splitlines()
    assert lines[-1].startswith("iteration 6 of 6, epoch 2, loss=")


def test_curves(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(2, "epoch"), tmp_path, [Plot("loss", "none")])
    trainer.run()
    plot = trainer.get_extension("Plot")
    assert [x for x, _ in plot._points["loss"]] == [3, 6]
    again = Plot("loss", "new")
    again.set_state(json.loads(json.dumps(plot.get_state())))
    assert again._points == {"loss": plot._points["loss"], "new": []}
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ArgumentError, match="Plot: there must be names of values to draw, got none"):
        Plot()


def test_statistics_of_parameters(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(1), tmp_path)
    trainer.extend(Statistics(statistics=("max",)), Log(), every=every(1))
    trainer.run()
    entry = trainer.get_extension("Log").entries[0]
    assert entry["affine/W/data/max"] == pytest.approx(nn.get_parameters()["affine/W"].d.max())
    assert "affine/b/grad/max" in entry


@pytest.mark.parametrize(("name", "end"), [("SIGTERM", SystemExit), ("SIGHUP", SystemExit), ("SIGINT", KeyboardInterrupt)])
def test_signals_save_before_the_end(make_updater, tmp_path, caplog, name, end):
    def make():
        trainer = Trainer(make_updater(), every(50), tmp_path)
        trainer.extend(Checkpoint(), every=every(40))
        return trainer

    number = getattr(signal, name)
    previous = signal.getsignal(number)
    trainer = make()
    trainer.extend(lambda trainer: signal.raise_signal(number), every=lambda trainer: trainer.iteration == 5)
    with pytest.raises(end) as raised:
        trainer.run()
    assert end is KeyboardInterrupt or raised.value.code == 128 + number
    assert signal.getsignal(number) is previous
    assert [path.name for path in checkpoints_in(tmp_path)] == ["checkpoint-00000005.npz"]
    assert f"training was interrupted after iteration 5 by {name}" in caplog.text
    trainer = make()
    trainer.run(resume=True)
    assert trainer.iteration == 50


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="a signal of POSIX")
def test_a_signal_may_ask_for_a_checkpoint_alone(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(9), tmp_path)
    trainer.extend(Checkpoint(), every=every(40))
    trainer.extend(lambda trainer: signal.raise_signal(signal.SIGUSR1), every=lambda trainer: trainer.iteration in (3, 6))
    previous = signal.getsignal(signal.SIGUSR1)
    trainer.run()
    assert trainer.iteration == 9 and signal.getsignal(signal.SIGUSR1) is previous
    assert [path.name for path in checkpoints_in(tmp_path)][-2:] == ["checkpoint-00000006.npz", "checkpoint-00000003.npz"]


def test_a_second_signal_ends_at_once(make_updater, tmp_path):
    trainer = Trainer(make_updater(), every(50), tmp_path)

    @trainer.on(every(5))
    def interrupt_twice(trainer):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert trainer.iteration == 5


def test_chosen_statistics_and_percentiles(make_updater, tmp_path):
    updater = make_updater()
    trainer = Trainer(updater, every(1), tmp_path)
    trainer.extend(Statistics(statistics=("zeros", "mean"), with_grad=False, percentiles=(50, 99.87)), every=every(1))
    seen = {}
    trainer.extend(lambda trainer: seen.update({key: trainer.observation[key] for key in trainer.observation}), every=every(1))
    trainer.run()
    for name, variable in updater.solvers["main"].get_parameters().items():
        values = variable.d
        expected = {"zeros": np.count_nonzero(values == 0), "mean": values.mean(), "p50": np.median(values)}
        expected["p99.87"] = np.percentile(values, 99.87)
        for key, value in expected.items():
            assert seen[f"{name}/data/{key}"] == pytest.approx(value, rel=1e-5)
    with pytest.raises(ArgumentError, match="statistics must be some of mean, std, min, max, zeros, got median"):
        Statistics(statistics=("median",))
    with pytest.raises(ArgumentError, match="percentiles must be from 0 to 100, got 101"):
        Statistics(statistics=("mean",), percentiles=(101,))


@pytest.mark.parametrize(("path", "begin"), [("graph.html", "<!DOCTYPE html>"), ("graph.dot", "digraph")])
def test_the_graph_is_written_once(make_updater, tmp_path, path, begin):
    x = nn.Variable((2, 3))
    loss = F.mean(F.tanh(x))
    trainer = Trainer(make_updater(), every(2), tmp_path)
    trainer.extend(DumpGraph(loss, path))
    trainer.on(every(1))(lambda trainer: (tmp_path / path).rename(tmp_path / "kept") if trainer.iteration == 1 else None)
    trainer.run()
    text = (tmp_path / "kept").read_text()
    assert text.lstrip().lower().startswith(begin.lower())
    assert "Tanh" in text
    assert not (tmp_path / path).exists()


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("library", ["tqdm", "rich"])
def test_bars_show_the_end_and_the_value(make_updater, tmp_path, library):
    pytest.importorskip(library)
    terminal = Terminal()
    trainer = Trainer(make_updater(), every(6), tmp_path, [Progress(interval=2, file=terminal, library=library)])
    trainer.run()
    text = terminal.getvalue()
    assert "6/6" in text
    assert re.search(r"loss=\d", text)
    assert "\n" in text[text.rindex("loss=") :]


def test_a_library_for_bars_that_is_not_there(make_updater, tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match="Progress: library must be 'tqdm' or 'rich', got 'curses'"):
        Progress(library="curses")
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    trainer = Trainer(make_updater(), every(6), tmp_path, [Progress(file=Terminal(), library="rich")])
    with pytest.raises(ImportError, match=r"Progress: rich must be installed, got: .*\n  hint: pip install rich"):
        trainer.run()
