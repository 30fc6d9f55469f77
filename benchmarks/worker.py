"""Measures one workload in one framework, in a process of its own: ``python -m benchmarks.worker WORKLOAD FRAMEWORK``.

Reads the number of steps to run from each line of standard input, and answers with the seconds of each step as JSON.
The first answer comes without being asked for, after one step: the version of the framework, and which functions of ours
ran on another backend than the first of the context.
"""

import importlib
import json
import sys
import time

from benchmarks.threads import confine


def main() -> None:
    """Serve until standard input ends."""
    workload, framework = sys.argv[1:3]
    confine()
    answers = sys.stdout
    sys.stdout = sys.stderr
    module = importlib.import_module(f"benchmarks.workloads.{workload}")
    step = getattr(module, framework)()
    package = importlib.import_module({"torch_compile": "torch"}.get(framework, framework))
    step()
    fallbacks = sorted({row.function for row in package.fallback_report()}) if framework == "nn_core" else []
    print(json.dumps([package.__version__, fallbacks]), file=answers, flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
        print(json.dumps(seconds), file=answers, flush=True)


if __name__ == "__main__":
    main()
