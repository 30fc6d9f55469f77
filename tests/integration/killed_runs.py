"""Trainings that are killed at random calls and resumed, for the tests of checkpoints."""

import contextlib
import hashlib
import json
import os
import random
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import training
from nn_core.data.iterator import DataIterator
from nn_core.data.source import SimpleDataSource, TransformedDataSource
from nn_core.monitor import Monitor, MonitorSeries
from nn_core.training.states import as_text, pack
from nn_core.utils.learning_rate_scheduler import ExponentialScheduler

STEPS = 24
EVERY = 3


@dataclass(frozen=True)
class Run:
    """The options of a training."""

    dynamic: bool = False
    solver: str = "Adam"
    accumulate: int = 1
    use_thread: bool = True
    keeps_random: bool = True
    trainer: bool = False


def build(x, t, test=False):
    """Convolution, batch normalization, two dropouts (one with a seed of its own), and the loss."""
    h = PF.convolution(x, 4, (3, 3), pad=(1, 1), name="conv")
    h = F.relu(PF.batch_normalization(h, batch_stat=not test, name="bn"))
    h = h if test else F.dropout(F.dropout(h, 0.2), 0.2, seed=5)
    return F.mean(F.softmax_cross_entropy(PF.affine(h, 3, name="out"), t))


def data(run):
    """Shuffled samples with flips and noise."""
    rng = np.random.RandomState(8)
    images, labels = rng.randn(20, 1, 6, 6).astype(np.float32), rng.randint(0, 3, (20, 1))

    def augment(noise, image, label):
        image = image[:, :, ::-1] if noise.random() < 0.5 else image
        return image + noise.normal(size=image.shape).astype(np.float32) * 0.1, label

    source = SimpleDataSource(lambda index: (images[index], labels[index]), 20)
    source = TransformedDataSource(source, augment, shuffle=True, rng=np.random.RandomState(3))
    return DataIterator(source, 6, use_thread=run.use_thread)


def train(folder, run):
    """Train for STEPS steps from the newest checkpoint on; returns a digest of everything at the end."""
    return by_trainer(folder, run) if run.trainer else by_hand(folder, run)


def by_trainer(folder, run):
    """Train with a `Trainer`: evaluation, a schedule, averages, a log, checkpoints, some of them written by a thread."""
    nn.clear_parameters()
    nn.seed(11)
    x, t = nn.Variable((6, 1, 6, 6)), nn.Variable((6, 1))
    loss = build(x, t)
    solver = getattr(S, run.solver)()
    solver.set_parameters(nn.get_parameters())
    with data(run) as iterator:
        graph = (None, build) if run.dynamic else ([x, t], loss)
        settings = {"accumulate": run.accumulate, "clip_norm": 1.0, "weight_decay": 1e-3}
        updater = training.Updater(iterator, *graph, solver, **settings)
        trainer = training.Trainer(updater, training.every(STEPS), folder)
        held_out = np.ones((5, 1, 6, 6), np.float32), np.zeros((5, 1), np.int64)
        vx, vt = nn.Variable(x.shape), nn.Variable(t.shape)
        evaluator = training.Evaluator(held_out, [vx, vt], {"loss": build(vx, vt, test=True)}, batch_size=6)
        trainer.extend(evaluator, training.Log(), every=training.every(4))
        trainer.extend(training.Schedule(ExponentialScheduler(0.01, 0.9)))
        trainer.extend(training.MovingAverage(nn.get_parameters(), 0.9), name="averages")
        trainer.extend(training.Checkpoint(keep=2, asynchronous=run.dynamic), every=training.every(EVERY))
        trainer.run(resume=True)
        state = trainer.get_state()
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    for line in lines:
        del line["elapsed_time"]
    arrays = {}
    states = {"updater": state["updater"], "averages": state["extensions"]["averages"], "random": nn.random.get_state()}
    text = hashlib.sha256(as_text([pack(states, arrays), lines]).tobytes())
    for name, values in arrays.items():
        text.update(name.encode() + values.tobytes())
    return text.hexdigest()


def by_hand(folder, run):
    """Train with a loop of the program's own."""
    nn.clear_parameters()
    nn.seed(11 if run.keeps_random else int.from_bytes(os.urandom(4), "little") if any(folder.iterdir()) else 11)
    x, t = nn.Variable((6, 1, 6, 6)), nn.Variable((6, 1))
    loss = build(x, t)
    solver = getattr(S, run.solver)()
    solver.set_parameters(nn.get_parameters())
    log = MonitorSeries("loss", Monitor(folder), interval=2, verbose=False)
    with data(run) as iterator:
        objects = {
            "parameters": nn.get_parameters(grad_only=False),
            "solver": solver,
            "data": iterator,
            "log": log,
            "graph": loss,
        }
        if not run.keeps_random:
            del objects["graph"]
        saved = _resume(folder, run, objects)
        for iteration in range(saved, STEPS):
            solver.zero_grad()
            total = 0.0
            for _ in range(run.accumulate):
                x.d, t.d = iterator.next()
                if run.dynamic:
                    with nn.auto_forward():
                        loss = build(x, t)
                else:
                    loss.forward(clear_no_need_grad=True)
                loss.backward(1.0 / run.accumulate, clear_buffer=True)
                total += float(loss.d)
            solver.weight_decay(1e-3)
            solver.update()
            solver.set_learning_rate(0.01 / (1 + iteration))
            log.add(iteration, total)
            if (iteration + 1) % EVERY == 0:
                training.save_checkpoint(folder / f"checkpoint-{iteration + 1:04d}.npz", iteration=iteration + 1, **objects)
        return _digest(objects, folder)


def _resume(folder, run, objects):
    values = training.load_newest_checkpoint(folder, **objects)
    if not run.keeps_random and values is not None:
        nn.seed(int.from_bytes(os.urandom(4), "little"))
    return values["iteration"] if values else 0


def _digest(objects, folder):
    text = hashlib.sha256()
    for name, variable in objects["parameters"].items():
        text.update(name.encode() + variable.d.tobytes())
    for name, state in objects["solver"].get_states().items():
        text.update(f"{name} {state.t}".encode())
        for key, variable in state.pstate.items():
            text.update(key.encode() + variable.d.tobytes())
    text.update((folder / "loss.series.txt").read_bytes())
    return text.hexdigest()


def calling(limit, act):
    """A profile function that counts calls, and calls `act` at the one with number `limit`; and the count."""
    count = [0]

    def step(frame, event, _):
        if event in ("call", "c_call"):
            count[0] += 1
            if count[0] == limit:
                act()

    return step, count


def killed(folder, run, rng, n_calls):
    """Train in processes that are killed at random calls until one ends; returns its digest and the number of kills.

    A process that comes after others makes fewer calls than the first one, which had to fill the caches; a third of them
    it makes in any case.
    """
    folder.mkdir(parents=True)
    kills = 0
    while True:
        reader, writer = os.pipe()
        limit = rng.randrange(1, n_calls // 3) if kills < 12 else 0
        child = os.fork()
        if child == 0:
            os.close(reader)
            with contextlib.suppress(BaseException):
                if limit:
                    sys.setprofile(calling(limit, lambda: os.kill(os.getpid(), signal.SIGKILL))[0])
                digest = train(folder, run)
                sys.setprofile(None)
                os.write(writer, digest.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            digest = pipe.read()
        status = os.waitpid(child, 0)[1]
        if digest:
            return digest, kills
        assert os.WIFSIGNALED(status), "the training failed by itself"
        kills += 1


def unbroken(folder: Path, run: Run):
    """The digest of a run that nobody kills, and how many calls it makes."""
    folder.mkdir(parents=True)
    step, count = calling(0, None)
    sys.setprofile(step)
    try:
        return train(folder, run), count[0]
    finally:
        sys.setprofile(None)


def many(folder, runs, seed):
    """Kill every run; returns how many ended identically, and the number of kills."""
    rng = random.Random(seed)
    identical = kills = 0
    for number, run in enumerate(runs):
        expected, n_calls = unbroken(folder / f"{number}-whole", run)
        digest, count = killed(folder / f"{number}-killed", run, rng, n_calls)
        identical += digest == expected
        kills += count
    return identical, kills
