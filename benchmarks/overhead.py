"""Time that a function costs beside its arithmetic: chains of functions on tiny arrays, in microseconds a function.

    python -m benchmarks.overhead
    python -m benchmarks.overhead --nnabla-python ~/nnabla/bin/python

"static" runs a graph again and again, "dynamic" builds it anew each time under ``nn.auto_forward``. PyTorch, which has
dynamic graphs only, is measured too where it is installed.
"""

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from functools import partial

DEPTH = 100
SHAPE = (4, 4)
ROUNDS, SECONDS_A_ROUND = 5, 0.2
FUNCTIONS = ("tanh", "add2", "affine", "softmax")


def microseconds(step):
    """Median over rounds of the time of ``step()``, per function of the chain."""
    step()
    start = time.perf_counter()
    step()
    repeats = max(1, int(SECONDS_A_ROUND / (time.perf_counter() - start)))
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(repeats):
            step()
        rounds.append((time.perf_counter() - start) / repeats)
    return 1e6 * statistics.median(rounds) / DEPTH


def measure_nn(package):
    """Figures of nn_core or nnabla: {function: {"static forward": microseconds, ...}}."""
    nn, F = importlib.import_module(package), importlib.import_module(f"{package}.functions")
    x, other = nn.Variable(SHAPE, need_grad=True), nn.Variable(SHAPE)
    x.d = other.d = 0.5
    calls = {
        "tanh": F.tanh,
        "add2": lambda h: F.add2(h, other),
        "affine": lambda h: F.affine(h, other),
        "softmax": lambda h: F.softmax(h, axis=1),
    }

    def dynamic(call):
        with nn.auto_forward():
            return chain(call, x)

    figures = {}
    for name, call in calls.items():
        y = chain(call, x)
        figures[name] = {
            "static forward": microseconds(y.forward),
            "static backward": microseconds(y.backward),
            "dynamic forward": microseconds(partial(dynamic, call)),
            "dynamic both": microseconds(lambda call=call: dynamic(call).backward(clear_buffer=True)),
        }
    return figures


def chain(call, x):
    """``call`` over and over again."""
    h = x
    for _ in range(DEPTH):
        h = call(h)
    return h


def measure_torch():
    """Return the same of PyTorch."""
    import torch as th

    x, other = th.full(SHAPE, 0.5, requires_grad=True), th.full(SHAPE, 0.5)
    gradient = th.ones(SHAPE)
    calls = {
        "tanh": th.tanh,
        "add2": lambda h: h + other,
        "affine": lambda h: h @ other,
        "softmax": lambda h: th.softmax(h, 1),
    }

    figures = {}
    for name, call in calls.items():
        build = partial(chain, call, x)
        figures[name] = {
            "dynamic forward": microseconds(build),
            "dynamic both": microseconds(lambda build=build: build().backward(gradient)),
        }
    return figures


def figures_of(framework, python):
    """Measure in a process of its own."""
    command = [python, "-m", "benchmarks.overhead", "--only", framework]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    nnabla = os.environ.get("NNABLA_PYTHON")
    parser.add_argument("--nnabla-python", default=nnabla, help="interpreter of an environment with the package nnabla")
    parser.add_argument("--only", choices=("nn_core", "nnabla", "torch"), help="print the figures of one as JSON")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure_torch() if options.only == "torch" else measure_nn(options.only)))
        return
    pythons = {"nn_core": sys.executable, "nnabla": options.nnabla_python}
    pythons["torch"] = sys.executable if importlib.util.find_spec("torch") else None
    figures = {name: figures_of(name, python) for name, python in pythons.items() if python}
    print(f"microseconds a function, chains of {DEPTH} on arrays of {SHAPE}")
    print(f"{'':26s}" + "".join(f"{name:>10s}" for name in figures))
    for function in FUNCTIONS:
        for row in ("static forward", "static backward", "dynamic forward", "dynamic both"):
            cells = [f"{f[function][row]:10.2f}" if row in f[function] else f"{'-':>10s}" for f in figures.values()]
            print(f"{function:8s} {row:17s}" + "".join(cells))


if __name__ == "__main__":
    main()
