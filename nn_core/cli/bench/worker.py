"""Measures one framework, in a process of its own: ``python -m nn_core.cli.bench.worker FRAMEWORK MODULE THREADS IS_QUICK``.

Says its version and its workloads in the first line of standard output. Each line of standard input then asks for a workload
and a number of seconds; the answer has the seconds of each step. Lines are JSON; an answer may be an error.
"""

import json
import os
import sys
import time
from importlib import import_module
from typing import Any

from nn_core.cli.bench.workloads import Sizes, Step, programs_of, quick_sizes

#: Steps before the first that counts: compiling, allocating, choosing kernels.
WARM_UP_STEPS = 3


def main() -> None:
    """Serve until standard input ends."""
    framework, module, threads, is_quick = sys.argv[1:]
    _confine(int(threads))
    # frameworks print as they like; the answers have the pipe to themselves
    answers, sys.stdout = sys.stdout, sys.stderr

    def answer(**parts: Any) -> None:
        answers.write(json.dumps(parts) + "\n")
        answers.flush()

    programs = programs_of(import_module(module), framework, (quick_sizes if is_quick == "True" else Sizes)(int(threads)))
    answer(version=str(getattr(import_module(framework), "__version__", "?")), workloads=list(programs))
    steps: dict[str, Step] = {}
    for line in sys.stdin:
        wanted = json.loads(line)
        name = wanted["workload"]
        try:
            if name not in steps:
                steps[name] = programs[name]()
                _measure(steps[name], 0, WARM_UP_STEPS)
            answer(seconds=_measure(steps[name], wanted["seconds"]))
        except Exception as error:  # what a framework cannot run is left out; the others are measured
            answer(error=f"{type(error).__name__}: {error}".splitlines()[0])


def _measure(step: Step, seconds: float, at_least: int = 1) -> list[float]:
    """Seconds of each step; as many steps as fit into `seconds`."""
    found: list[float] = []
    end = time.perf_counter() + seconds
    while len(found) < at_least or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        found.append(time.perf_counter() - start)
    return found


def _confine(threads: int) -> None:
    """Stay on as many CPUs as there are threads, whatever pools a framework starts."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


if __name__ == "__main__":
    main()
