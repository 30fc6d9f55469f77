"""Time of imports in seconds: nn_core, its first computation, and its peers; each run in a process of its own.

python -m benchmarks.import_time
python -m benchmarks.import_time --nnabla-python ~/nnabla/bin/python
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile

RUNS = 7
TIMED = "import time; start = time.perf_counter(); {statements}; print(time.perf_counter() - start)"
FIRST = (
    "import nn_core as nn, nn_core.functions as F; x = nn.Variable((2, 3)); x.d = 1; y = F.tanh(x); y.forward(); y.d"
)


def seconds(python, statements, bytecode):
    """Median time of `statements` in a fresh interpreter; the first run, which leaves its `bytecode`, does not count."""
    command = [python, "-c", TIMED.format(statements=statements)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    outputs = []
    for _ in range(RUNS + 1):
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        outputs.append(run.stdout.splitlines()[-1])
    return statistics.median(float(output) for output in outputs[1:])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    nnabla = os.environ.get("NNABLA_PYTHON")
    parser.add_argument("--nnabla-python", default=nnabla, help="interpreter of an environment with the package nnabla")
    options = parser.parse_args()
    rows = [
        ("import numpy", sys.executable, "import numpy"),
        ("import nn_core", sys.executable, "import nn_core"),
        ("nn_core to the first result", sys.executable, FIRST),
        ("nn_core and nn_core.training", sys.executable, "import nn_core.training"),
    ]
    rows += [
        (f"import {peer}", sys.executable, f"import {peer}")
        for peer in ("torch", "jax")
        if importlib.util.find_spec(peer)
    ]
    if options.nnabla_python:
        rows.append(("import nnabla", options.nnabla_python, "import nnabla"))
    with tempfile.TemporaryDirectory() as bytecode:
        for label, python, statements in rows:
            print(f"{label:30s} {seconds(python, statements, bytecode):.3f} s", flush=True)


if __name__ == "__main__":
    main()
