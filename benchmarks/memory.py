"""Peak memory of training steps beside PyTorch's, in MB above what the process held with the library loaded.

    python -m benchmarks.memory
    python -m benchmarks.memory resnet18_train --nnabla-python ~/nnabla/bin/python

Every figure comes from a process of its own: the growth of its largest resident set (ru_maxrss) over some steps.
"""

import argparse
import importlib
import importlib.util
import os
import resource
import subprocess
import sys

WORKLOADS = ("deep_cnn", "deep_cnn_dynamic", "resnet18_train", "lstm_train", "transformer_train")
STEPS = 3


def load(framework):
    """Import a framework and let it compute something, so that its libraries are loaded."""
    if framework == "torch":
        import torch as th

        th.nn.functional.conv2d(th.ones(1, 1, 4, 4, requires_grad=True), th.ones(1, 1, 3, 3)).sum().backward()
        return
    nn, F = importlib.import_module(framework), importlib.import_module(f"{framework}.functions")
    importlib.import_module(f"{framework}.parametric_functions")
    importlib.import_module(f"{framework}.solvers")
    x, w = nn.Variable((1, 1, 4, 4), need_grad=True), nn.Variable((1, 1, 3, 3))
    y = F.convolution(x, w)
    y.forward()
    y.backward()


def peak_mb():
    """The largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(workload, framework):
    """Megabytes that a workload adds to the loaded library."""
    load(framework)
    module = importlib.import_module(f"benchmarks.workloads.{workload}")
    loaded = peak_mb()
    step = getattr(module, framework)()
    for _ in range(STEPS):
        step()
    return peak_mb() - loaded


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", choices=[[], *WORKLOADS], default=[])
    nnabla = os.environ.get("NNABLA_PYTHON")
    parser.add_argument("--nnabla-python", default=nnabla, help="interpreter of an environment with the package nnabla")
    parser.add_argument("--only", choices=("nn_core", "nnabla", "torch"), help="print the figure of one")
    options = parser.parse_args()
    if options.only:
        print(measure(options.workloads[0], options.only))
        return
    pythons = {"nn_core": sys.executable, "nnabla": options.nnabla_python}
    pythons["torch"] = sys.executable if importlib.util.find_spec("torch") else None
    pythons = {name: python for name, python in pythons.items() if python}
    print(f"peak MB of {STEPS} steps above the loaded library")
    print(f"{'':20s}" + "".join(f"{name:>10s}" for name in pythons))
    for workload in options.workloads or WORKLOADS:
        cells = []
        for name, python in pythons.items():
            command = [python, "-m", "benchmarks.memory", workload, "--only", name]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            cells.append(f"{float(output.splitlines()[-1]):10.0f}")
        print(f"{workload:20s}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
