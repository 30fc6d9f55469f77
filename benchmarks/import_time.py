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
from pathlib import Path

RUNS = 7
N_PLUGINS = 50
PLUGIN = """
from nn_core.ext import FunctionPackage, hookimpl, kernel
PLUGIN_API, REQUIRES_CORE = 2, ">=0.1"
SPEC = '''
- {{name: {name}.Twice, api: {name}_twice, topic: arithmetic, doc: Twice., shape: same_as x,
   inputs: {{x: {{doc: Input.}}}}, outputs: {{y: {{doc: Output.}}}}, backward: {{none: a benchmark}}}}
'''
@kernel("{name}.Twice")
def twice(xp, x):
    return 2 * x
@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=SPEC)]
"""
TYPO = "import nn_core.functions as F\ntry:\n    F.taanh\nexcept AttributeError: pass"
TIMED = "import time; start = time.perf_counter(); {statements}; print(time.perf_counter() - start)"
FIRST = "import nn_core as nn, nn_core.functions as F; x = nn.Variable((2, 3)); x.d = 1; y = F.tanh(x); y.forward(); y.d"


def write_plugins(folder):
    """Fifty packages with an operator each, which are found where `folder` is on the path."""
    for number in range(N_PLUGINS):
        name = f"dummy{number}"
        metadata = Path(folder) / f"nn_ext_{name}-1.0.dist-info"
        metadata.mkdir()
        index = f"[nn_core.index]\nfunctions.{name}_twice = {name}\n"
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: nn-ext-{name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[nn_core.extensions]\n{name} = nn_ext_{name}\n{index}")
        (Path(folder) / f"nn_ext_{name}.py").write_text(PLUGIN.format(name=name))


def seconds(python, statements, bytecode, path=""):
    """Median time of `statements` in a fresh interpreter; the first run, which leaves its `bytecode`, does not count."""
    command = [python, "-c", TIMED.format(statements=statements)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH", "")]))
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
        (f"{N_PLUGINS} plugins, import nn_core", sys.executable, "import nn_core"),
        (f"{N_PLUGINS} plugins, an operator of one", sys.executable, "import nn_core.functions as F; F.dummy7_twice"),
        (f"{N_PLUGINS} plugins, a name that is none", sys.executable, f"exec({TYPO!r})"),
    ]
    rows += [
        (f"import {peer}", sys.executable, f"import {peer}") for peer in ("torch", "jax") if importlib.util.find_spec(peer)
    ]
    if options.nnabla_python:
        rows.append(("import nnabla", options.nnabla_python, "import nnabla"))
    with tempfile.TemporaryDirectory() as bytecode, tempfile.TemporaryDirectory() as plugins:
        write_plugins(plugins)
        for label, python, statements in rows:
            path = plugins if label.startswith(f"{N_PLUGINS} ") else ""
            print(f"{label:36s} {seconds(python, statements, bytecode, path):.3f} s", flush=True)


if __name__ == "__main__":
    main()
