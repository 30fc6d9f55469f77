"""Measuring one workload in all frameworks, interleaved; each has a process of its own."""

import importlib
import json
import statistics
import subprocess
import sys

from benchmarks.threads import environment

WARM_UP_STEPS = 5
SECONDS_A_ROUND = 1.0


class Worker:
    """A process that measures one workload in one framework."""

    def __init__(self, python: str, workload: str, framework: str, threads: int) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", workload, framework],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(threads),
        )
        self.framework = framework
        self.rounds: list[list[float]] = []
        self.version, fallbacks = self._answer()
        if fallbacks:
            print(f"  {workload}: not on the first backend of the context: {', '.join(fallbacks)}", file=sys.stderr)
        self._steps = max(1, round(SECONDS_A_ROUND / statistics.median(self.run(WARM_UP_STEPS))))

    def run(self, steps: int) -> list[float]:
        """Seconds of each of `steps` steps."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        seconds: list[float] = self._answer()
        return seconds

    def measure(self) -> None:
        """One round."""
        self.rounds.append(self.run(self._steps))

    def median_ms(self) -> float:
        """Median over all steps of all rounds."""
        return 1e3 * statistics.median(second for seconds in self.rounds for second in seconds)

    def spread_ms(self) -> tuple[float, float]:
        """Smallest and largest median of a round."""
        medians = [1e3 * statistics.median(seconds) for seconds in self.rounds]
        return min(medians), max(medians)

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def _answer(self):  # type: ignore[no-untyped-def]  # whatever the worker says
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with status {self._process.wait()}")
        return json.loads(line)


def measure(workload: str, interpreters: dict[str, str], rounds: int, threads: int) -> list[Worker]:
    """Time one workload; frameworks that cannot run it are left out with a word."""
    module = importlib.import_module(f"benchmarks.workloads.{workload}")
    workers = []
    for framework, python in interpreters.items():
        if not hasattr(module, framework):
            continue
        try:
            workers.append(Worker(python, workload, framework, threads))
        except RuntimeError as error:
            print(f"  {framework}: {error}", file=sys.stderr)
    for _ in range(rounds):
        for worker in workers:
            worker.measure()
    for worker in workers:
        worker.stop()
    return workers
