"""Time the workloads in nn_core and in the peers that are installed, interleaved, and print medians and ratios.

    python -m benchmarks                                    every workload, every peer found
    python -m benchmarks mlp_tiny deep_cnn -p torch         some
    python -m benchmarks --nnabla-python ~/nnabla/bin/python --json results.json

Each framework runs in a process of its own that waits while another one is measured. A round runs every framework
for about the same time; several rounds show the spread. The ratio is our median divided by the best peer's: below 1
we are faster.
"""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

FRAMEWORKS = ("nn_core", "torch", "torch_compile", "jax", "nnabla")
WORKLOADS = sorted(path.stem for path in (Path(__file__).parent / "workloads").glob("[a-z]*.py"))
WARM_UP_STEPS = 5
SECONDS_A_ROUND = 1.0


class Worker:
    """A process that measures one workload in one framework."""

    def __init__(self, python: str, workload: str, framework: str) -> None:
        command = [python, "-m", "benchmarks.worker", workload, framework]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.framework = framework
        self.rounds: list[list[float]] = []
        self.version = self._answer()
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


def pythons(options: argparse.Namespace) -> dict[str, str]:
    """The interpreter for each framework that can be measured."""
    found = {}
    for framework in options.peers or FRAMEWORKS:
        if framework == "nnabla":
            if options.nnabla_python:
                found[framework] = options.nnabla_python
        elif importlib.util.find_spec(framework.partition("_compile")[0]):
            found[framework] = sys.executable
    return {"nn_core": sys.executable, **found}


def measure(workload: str, interpreters: dict[str, str], rounds: int) -> list[Worker]:
    """Time one workload; frameworks that cannot run it are left out with a word."""
    module = importlib.import_module(f"benchmarks.workloads.{workload}")
    workers = []
    for framework, python in interpreters.items():
        if not hasattr(module, framework):
            continue
        try:
            workers.append(Worker(python, workload, framework))
        except RuntimeError as error:
            print(f"  {framework}: {error}", file=sys.stderr)
    for _ in range(rounds):
        for worker in workers:
            worker.measure()
    for worker in workers:
        worker.stop()
    return workers


def report(workload: str, workers: list[Worker]) -> dict[str, object]:
    """Print one workload's row; give its figures."""
    figures = {w.framework: {"version": w.version, "ms": w.median_ms(), "spread_ms": w.spread_ms()} for w in workers}
    ours = next((w.median_ms() for w in workers if w.framework == "nn_core"), None)
    peers = {w.framework: w.median_ms() for w in workers if w.framework != "nn_core"}
    cells = [f"{w.framework} {w.median_ms():.3f} ({w.spread_ms()[0]:.3f}-{w.spread_ms()[1]:.3f})" for w in workers]
    best = min(peers, key=lambda name: peers[name]) if peers else None
    ratio = ours / peers[best] if ours and best else None
    print(f"{workload:20s} {'  '.join(cells)}" + (f"  | {ratio:.2f} of {best}" if ratio else ""), flush=True)
    return {"workload": workload, "figures": figures, "best_peer": best, "ratio": ratio}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", choices=[[], *WORKLOADS], default=[])
    parser.add_argument("-p", "--peers", action="append", choices=FRAMEWORKS)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("--nnabla-python", help="interpreter of an environment with the package nnabla")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["NN_CORE_NUM_THREADS"] = str(options.threads)
    print(
        f"{platform.processor() or platform.machine()}, {options.threads} threads; median ms a step (range of rounds)"
    )
    interpreters = pythons(options)
    rows = [report(w, measure(w, interpreters, options.rounds)) for w in options.workloads or WORKLOADS]
    ratios = [row["ratio"] for row in rows if isinstance(row["ratio"], float)]
    if ratios:
        print(f"geometric mean of the ratios to the best peer: {statistics.geometric_mean(ratios):.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": _machine(), "threads": options.threads, "rows": rows}, indent=1))


def _machine() -> dict[str, str]:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    return {"cpu": model, "system": platform.platform(), "python": platform.python_version()}


if __name__ == "__main__":
    main()
