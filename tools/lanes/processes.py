"""Compute in the processes that programs start while threads of this one compute: each gives what this one gives.

    python -m tools.lanes.processes --count 500 --seed 0

A child that does not answer within ten minutes is a finding. Kernels run on two threads.
"""

import functools
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data.iterator import DataIterator
from nn_core.data.source import SimpleDataSource
from nn_core.ext_utils import get_extension_context, list_extensions

from .reliability import record, report_option

#: Seconds until a worker counts as hung; generous, because machines may be busy.
PATIENCE_S = 600
N_WORKERS = 2
#: Starting an interpreter takes a second, so that one computes several tasks.
TASKS_OF_A_PROCESS = 5


def train(seed: int) -> bytes:
    """Return the bits of the losses of three training steps of a small network."""
    nn.set_num_threads(2)
    rng = np.random.default_rng(seed)
    backend = "cpu" if "cpu" in list_extensions() else "reference"
    with nn.context_scope(get_extension_context(backend)), nn.parameter_scope("processes", {}):
        nn.seed(seed)
        x = nn.Variable.from_numpy_array(rng.normal(size=(8, 3, 20, 20)))
        t = nn.Variable.from_numpy_array(rng.integers(0, 10, (8, 1)))
        h = F.relu(PF.batch_normalization(PF.convolution(x, 16, (3, 3), pad=(1, 1))))
        loss = F.mean(F.softmax_cross_entropy(PF.affine(F.max_pooling(h, (2, 2)), 10), t))
        solver = S.Momentum(0.01)
        solver.set_parameters(nn.get_parameters())
        losses = []
        for _ in range(3):
            loss.forward(clear_no_need_grad=True)
            solver.zero_grad()
            loss.backward(clear_buffer=True)
            solver.update()
            losses.append(loss.d.tobytes())
    return b"".join(losses)


def _forked(seed: int) -> bytes:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_S)
        try:
            os.write(writer, train(seed))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        found = stream.read()
    os.waitpid(child, 0)
    return found


def _fork(seeds: range) -> Iterator[bytes]:
    return map(_forked, seeds)


@contextmanager
def _computing_threads() -> Iterator[None]:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            train(0)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _fork_beside_threads(seeds: range) -> Iterator[bytes]:
    with _computing_threads():
        yield from map(_forked, seeds)


def _pool(method: str, seeds: range) -> Iterator[bytes]:
    context: Any = multiprocessing.get_context(method)
    with context.Pool(N_WORKERS, maxtasksperchild=TASKS_OF_A_PROCESS) as pool:
        results = [pool.apply_async(train, (seed,)) for seed in seeds]
        for result in results:
            yield result.get(PATIENCE_S)


def _joblib(seeds: range) -> Iterator[bytes]:
    import joblib

    yield from joblib.Parallel(n_jobs=N_WORKERS, timeout=PATIENCE_S)(joblib.delayed(train)(seed) for seed in seeds)


def _loader(tasks: Any, results: Any) -> None:
    while (seed := tasks.get()) is not None:
        results.put((seed, train(seed)))


def _loaders(seeds: range) -> Iterator[bytes]:
    """Forked workers that live on, a queue of tasks each, and one of results: as data loaders have them."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    queues = [context.Queue() for _ in range(N_WORKERS)]
    workers = [context.Process(target=_loader, args=(queue, results), daemon=True) for queue in queues]
    for worker in workers:
        worker.start()
    for n, seed in enumerate(seeds):
        queues[n % N_WORKERS].put(seed)
    found = dict(results.get(timeout=PATIENCE_S) for _ in seeds)
    for queue in queues:
        queue.put(None)
    for worker in workers:
        worker.join(PATIENCE_S)
    yield from (found[seed] for seed in seeds)


def _sample(start: int, number: int) -> tuple[Any, ...]:
    return (np.frombuffer(train(start + number), np.uint8),)


def _iterator(seeds: range) -> Iterator[bytes]:
    source = SimpleDataSource(functools.partial(_sample, seeds.start), len(seeds))
    with DataIterator(source, 1, workers=N_WORKERS, worker_type="process") as iterator:
        for _ in seeds:
            yield iterator.next()[0][0].tobytes()


KINDS: dict[str, Callable[[range], Iterator[bytes]]] = {
    "fork": _fork,
    "fork while threads compute": _fork_beside_threads,
    "pool, forkserver": functools.partial(_pool, "forkserver"),
    "pool, spawn": functools.partial(_pool, "spawn"),
    "workers of a data loader": _loaders,
    "DataIterator": _iterator,
    **({"joblib": _joblib} if find_spec("joblib") else {}),
}


def check(kind: str, count: int, seed: int) -> Iterator[str]:
    """Compute `count` tasks in processes of one kind; texts of what is wrong."""
    seeds = range(1000 * seed, 1000 * seed + count)
    expected = {n: train(n) for n in seeds}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)  # this is about just those forks
        for number, found in zip(seeds, KINDS[kind](seeds), strict=True):
            if found != expected[number]:
                yield f"{kind}, seed {number}: {'other losses than here' if found else 'no answer'}"


@click.command()
@click.option("--count", default=20, help="Tasks of each kind.")
@click.option("--seed", default=0)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="Default: all.")
@report_option
def main(count: int, seed: int, kinds: tuple[str, ...], report: Path | None) -> None:
    """Compute in other processes; the exit status is 1 if there is a finding."""
    n_findings = 0
    for kind in kinds or KINDS:
        findings = list(check(kind, count, seed))
        n_findings += len(findings)
        for text in findings:
            click.echo(f"--- {text}")
        record(report, "processes", kind, count=count, findings=len(findings), seed=seed)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.processes")
