"""Deliver signals while native kernels run: the process lives, the stack pointer stays in its stack, results keep their bits.

    python -m tools.lanes.signals --count 10000 --seed 0    # signals of each kind, on one thread and on two

Each kind runs in processes of its own, first through all samples of the conformance kit that a native kernel computes, then
through large products, convolutions and recurrent networks, until the signals have been delivered. The handler of alarms and
of the profiling timer is C code (signal_probe.c), which a compiler has to translate; SIGINT comes from another process at
random times, and its KeyboardInterrupt ends a computation, which then is repeated.
"""

import ctypes
import functools
import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context, list_extensions
from nn_core.testing.cases import Case, cases

from . import perturbed
from .reliability import record, report_option

#: Between two signals, if nothing else is asked for.
PERIOD_US: Final = 1000
#: Signal and timer of each kind that the probe sends.
TIMERS: Final = {"alarm": (signal.SIGALRM, 0), "profiling timer": (signal.SIGPROF, 2)}
KINDS: Final = (*TIMERS, "Ctrl-C")
#: Seconds after which a child counts as hung; generous, because machines may be busy.
PATIENCE_S: Final = 3600
#: At most this many computations of one sample, in case that signals are rare.
MOST_REPEATS: Final = 50

Numbers: TypeAlias = np.ndarray[Any, Any]
#: Computes something, and returns its results and gradients.
Computation: TypeAlias = Callable[[], list[Numbers]]
#: Computes something, and returns its bits.
Work: TypeAlias = Callable[[], str]


class Probe:
    """Signals by a timer, and their number."""

    def __init__(self, kind: str, folder: Path, period_us: int = PERIOD_US) -> None:
        library = folder / "signal_probe.so"
        if not library.exists():
            source = Path(__file__).with_name("signal_probe.c")
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-pthread", "-o", library, source], check=True)
        self._library = ctypes.CDLL(str(library))
        self._number, self._timer = TIMERS[kind]
        self._period_us = period_us

    def start(self) -> None:
        """Send signals from now on."""
        if self._library.send_signals(int(self._number), self._timer, ctypes.c_long(self._period_us)):
            raise OSError("the probe must be able to set a timer, got an error")

    def stop(self) -> None:
        """Send no more."""
        self._library.send_signals(int(self._number), self._timer, ctypes.c_long(0))

    @property
    def delivered(self) -> int:
        """Number of signals that were handled."""
        return int(self._library.delivered())

    @property
    def astray(self) -> int:
        """Number of signals for which the stack pointer was not in the stack of its thread."""
        return int(self._library.astray())

    def attempt(self, work: Work) -> str | None:
        """Return the bits of `work`."""
        return work()


class Interrupts:
    """SIGINT of another process, and the number of those that ended a computation or arrived between two."""

    astray = 0

    def __init__(self) -> None:
        self.delivered = 0
        self._armed = False

    def start(self) -> None:
        """Take interrupts from now on."""
        signal.signal(signal.SIGINT, self._handle)
        click.echo("ready")

    def stop(self) -> None:
        """Take no more."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def attempt(self, work: Work) -> str | None:
        """Return the bits of `work`, or None where an interrupt ended it."""
        try:
            self._armed = True
            found = work()
            self._armed = False
        except KeyboardInterrupt:
            return None
        return found

    def _handle(self, number: int, frame: object) -> None:
        self.delivered += 1
        if self._armed:
            self._armed = False
            raise KeyboardInterrupt


def native_cases(count: int, seed: int) -> list[Case]:
    """Return `count` samples that a native kernel computes, or all of them if it is 0."""
    found = [case for case in cases(["cpu"], fast=False) if case.dtype in ("float32", "bfloat16")]
    random.Random(seed).shuffle(found)
    return list(itertools.islice((case for case in found if case.native), count or None))


def samples(count: int, seed: int) -> dict[str, Work]:
    """Return what native kernels compute for `count` samples of the kit, or all of them if it is 0."""
    return {str(case): functools.partial(perturbed.bits, case) for case in native_cases(count, seed)}


def bits_of(arrays: Sequence[Numbers]) -> str:
    """Return a digest of the bits of arrays."""
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def computation(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: str, **arguments: Any) -> Computation:
    """Return the forward and the backward pass of a function of random inputs."""
    rng = np.random.default_rng(0)
    with nn.context_scope(get_extension_context("cpu", type_config=dtype)):
        inputs = [nn.Variable.from_numpy_array(rng.normal(size=shape).astype(np.float32), need_grad=True) for shape in shapes]
        made = function(*inputs, **arguments)
    y = made[0] if isinstance(made, tuple) else made

    def compute() -> list[Numbers]:
        for x in inputs:
            x.grad.zero()
        y.forward()
        y.backward()
        return [np.asarray(a.get_data("r")) for a in (y.data, *(x.grad for x in inputs))]

    return compute


#: Rows, inputs and outputs.
AFFINE: Final = ((300, 300, 300), (128, 512, 128), (16, 512, 512), (2000, 40, 40))
#: The matrices of products (128, 512) x (512, 90), as they are or transposed.
MATMUL: Final = [(a, b) for a in ((128, 512), (512, 128)) for b in ((512, 90), (90, 512))]


def large() -> dict[str, Work]:
    """Return the bits of `computations`."""
    return {name: functools.partial(lambda compute: bits_of(compute()), compute) for name, compute in computations().items()}


def computations() -> dict[str, Computation]:
    """Return computations that take milliseconds: square and thin products, convolutions, recurrent networks."""
    table: list[tuple[Callable[..., Any], Sequence[tuple[int, ...]], Mapping[str, Any]]] = [
        *((F.affine, [(m, k), (k, n), (n,)], {}) for m, k, n in AFFINE),
        *((F.batch_matmul, [(2, *a), (2, *b)], {"transpose_a": a[0] > 128, "transpose_b": b[0] < 128}) for a, b in MATMUL),
        (F.convolution, [(2, 16, 24, 24), (32, 16, 3, 3), (32,)], {"pad": (1, 1)}),
        (F.convolution, [(2, 3, 33, 31), (8, 3, 5, 4)], {"stride": (2, 1), "dilation": (1, 2)}),
        (F.convolution, [(2, 8, 40), (8, 2, 9)], {"group": 4, "dilation": (3,)}),
        (F.deconvolution, [(2, 8, 12, 12), (8, 6, 3, 3)], {"stride": (2, 2), "dilation": (2, 2)}),
        (F.depthwise_convolution, [(2, 24, 20, 33), (24, 5, 7), (24,)], {"pad": (2, 3)}),
        (F.scaled_dot_product_attention, [(2, 4, 60, 32)] * 3, {}),
        (F.lstm, [(12, 16, 40), (1, 1, 16, 48), (1, 1, 16, 48), (1, 4, 48, 88)], {}),
        (F.gru, [(12, 16, 40), (1, 1, 16, 48), (1, 3, 48, 88)], {}),
    ]
    return {
        f"{function.__name__}-{number}-{dtype}": computation(function, *shapes, dtype=dtype, **arguments)
        for number, (function, shapes, arguments) in enumerate(table)
        for dtype in ("float", "bfloat16")
    }


def disturb(source: Probe | Interrupts, works: dict[str, Work], expected: dict[str, str], wanted: int) -> Iterator[str]:
    """Compute everything again and again until about `wanted` signals have arrived; names of what gave other bits."""
    each = max(1, wanted // len(works))
    for name, work in works.items():
        enough = source.delivered + each
        for _ in range(MOST_REPEATS * each):
            found = source.attempt(work)
            if found is not None and found != expected[name]:
                yield name
            if source.delivered >= enough:
                break


def in_child(source: Probe | Interrupts, threads: int, count: int, chosen: dict[str, Work]) -> dict[str, Any]:
    """Compute while signals arrive; the figures."""
    nn.set_num_threads(threads)
    heavy = large()
    works = {**chosen, **heavy}
    expected = {name: work() for name, work in works.items()}
    source.start()
    different = set(disturb(source, works, expected, count // 2))
    while source.delivered < count:
        different.update(disturb(source, heavy, expected, count - source.delivered))
    source.stop()
    return {"delivered": source.delivered, "astray": source.astray, "different": sorted(different), "works": len(works)}


def child_command(kind: str, threads: int, count: int, *, n_samples: int, seed: int, period_us: int, folder: str) -> list[str]:
    """Return the command of a process that computes `n_samples` samples and the large computations under signals."""
    options = {"kind": kind, "count": count, "samples": n_samples, "seed": seed, "period": period_us}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "tools.lanes.signals", *words, "--child", str(threads), folder]


def run(
    kind: str, threads: int, count: int, n_samples: int, seed: int, period_us: int = PERIOD_US
) -> tuple[dict[str, Any], int]:
    """Compute in a process that gets signals; its figures, none if it died, and its exit status."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        command = child_command(kind, threads, count, n_samples=n_samples, seed=seed, period_us=period_us, folder=folder)
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            watch = threading.Timer(PATIENCE_S, process.kill)
            watch.start()
            assert process.stdout is not None
            if kind == "Ctrl-C" and process.stdout.readline():
                while process.poll() is None:
                    time.sleep(rng.uniform(0, 4e-6 * period_us))
                    process.send_signal(signal.SIGINT)
            text = process.stdout.read()
            watch.cancel()
    status = process.returncode
    return (json.loads(text) if status == 0 else {"delivered": 0, "astray": 0, "different": [], "works": 0}), status


def findings(kind: str, threads: int, figures: dict[str, Any], status: int) -> Iterator[str]:
    """Say what is wrong."""
    where = f"{kind}, {threads} thread(s)"
    if status:
        yield f"{where}: the process ended with status {status}"
    if figures["astray"]:
        yield f"{where}: {figures['astray']} signals found the stack pointer outside of its stack"
    yield from (f"{where}: {name} gave other bits" for name in figures["different"])


@click.command()
@click.option("--count", default=500, help="Signals of each kind and number of threads.")
@click.option("--samples", "n_samples", default=100, help="Samples of the conformance kit; 0: all.")
@click.option("--seed", default=0)
@click.option("--period", "period_us", default=PERIOD_US, help="Microseconds between two signals.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Default: all.")
@click.option("--child", nargs=2, hidden=True, help="In a child: the number of threads, and a folder.")
@report_option
def main(
    count: int,
    n_samples: int,
    seed: int,
    period_us: int,
    kinds: tuple[str, ...],
    child: tuple[str, str] | None,
    report: Path | None,
) -> None:
    """Compute while signals arrive; the exit status is 1 if there is a finding."""
    if child is not None:
        threads, folder = int(child[0]), Path(child[1])
        source = Interrupts() if kinds[0] == "Ctrl-C" else Probe(kinds[0], folder, period_us)
        figures = in_child(source, threads, count, samples(n_samples, seed))
        click.echo(json.dumps(figures))
        return
    if "cpu" not in list_extensions():
        sys.exit("signals: nn-ext-cpu must be installed, got no backend cpu")
    n_findings = 0
    for kind in kinds or KINDS:
        for threads in (1, 2):
            figures, status = run(kind, threads, count, n_samples, seed, period_us)
            texts = list(findings(kind, threads, figures, status))
            for text in texts:
                click.echo(f"--- {text}")
            part, note = f"{kind}, {threads} thread(s)", f"{figures['works']:,} computations"
            record(report, "signals", part, count=figures["delivered"], findings=len(texts), seed=seed, note=note)
            n_findings += len(texts)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.signals")
