"""Measuring all frameworks in turn, each in a process of its own with the same number of threads."""

import json
import os
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nn_core.cli.bench.workloads import FRAMEWORKS, TITLES
from nn_core.engine.runtime.children import module_command

#: The variables that tell libraries how many threads to use: nn_core, OpenMP, linear algebra, and the pool of XLA.
_THREAD_VARIABLES: Final = ("NN_CORE_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC")
#: A framework that is silent for longer has hung.
_PATIENCE_S: Final = 120.0


@dataclass(frozen=True)
class Plan:
    """The duration of measurements: each workload in each framework for `seconds`, in several rounds."""

    seconds: float
    rounds: int
    is_quick: bool


#: At most five frameworks take part in four workloads: 80 seconds, and those that starting takes.
FULL: Final = Plan(seconds=4.0, rounds=4, is_quick=False)
QUICK: Final = Plan(seconds=0.01, rounds=1, is_quick=True)


@dataclass
class Figures:
    """The result of one framework: seconds of the steps of each workload, or an error."""

    framework: str
    version: str = ""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def median(self, workload: str) -> float | None:
        """Median of the seconds of a step, if the framework has run the workload."""
        return statistics.median(self.seconds[workload]) if self.seconds.get(workload) else None


class _SilentError(Exception):
    """The process of a framework does not answer any more."""


class _Worker:
    """The process of a framework."""

    def __init__(self, framework: str, threads: int, is_quick: bool) -> None:
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # closed by stop()
        module = FRAMEWORKS[framework].module
        self._process = subprocess.Popen(
            module_command("nn_core.cli.bench.worker", framework, module, str(threads), str(is_quick)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env={**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(threads))},
        )

    def ask(self, **wanted: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        try:
            print(json.dumps(wanted), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise _SilentError(self._last_words()) from None
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Return the next answer; a process that hangs is ended."""
        assert self._process.stdout is not None
        timer = threading.Timer(_PATIENCE_S, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            raise _SilentError(self._last_words())
        found: dict[str, Any] = json.loads(line)
        return found

    def stop(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # it has ended by itself
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()

    def _last_words(self) -> str:
        status = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().strip().splitlines()
        return lines[-1] if lines else f"the process ended with status {status}"


def measure(frameworks: Sequence[str], threads: int, plan: Plan) -> list[Figures]:
    """Time every workload in every framework; in each round the frameworks take turns.

    What happens to the speed of the machine then meets all of them.
    """
    running: dict[str, tuple[_Worker, Figures, Sequence[str]]] = {}
    all_figures = []
    for name in frameworks:
        worker, figures = _Worker(name, threads, plan.is_quick), Figures(name)
        all_figures.append(figures)
        try:
            first = worker.answer()
        except _SilentError as silent:
            figures.errors.append(str(silent))
            worker.stop()
            continue
        figures.version = first["version"]
        running[name] = worker, figures, first["workloads"]
    try:
        for workload in TITLES:
            for _ in range(plan.rounds):
                _round(running, workload, plan.seconds / plan.rounds)
    finally:
        for worker, *_ in running.values():
            worker.stop()
    return all_figures


def _round(running: dict[str, tuple[_Worker, Figures, Sequence[str]]], workload: str, seconds: float) -> None:
    """One workload, once in each framework that has it and has not failed."""
    for name, (worker, figures, workloads) in list(running.items()):
        if workload not in workloads or any(error.startswith(f"{workload}:") for error in figures.errors):
            continue
        try:
            answer = worker.ask(workload=workload, seconds=seconds)
        except _SilentError as silent:
            figures.errors.append(f"{workload}: {silent}")
            worker.stop()
            del running[name]
            continue
        if "error" in answer:
            figures.errors.append(f"{workload}: {answer['error']}")
        else:
            figures.seconds.setdefault(workload, []).extend(answer["seconds"])
