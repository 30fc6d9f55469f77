"""Peak memory of training steps beside PyTorch's, in MB above what the process held with the library loaded.

    python -m benchmarks.memory
    python -m benchmarks.memory resnet18_train --nnabla-python ~/nnabla/bin/python

"nn_core_recompute" is nn_core with the functions of RECOMPUTED under ``nn.recompute``. It does not spare parameters, their
gradients and the states of solvers, which are most of deep_cnn.
Every figure comes from a process of its own: the growth of its largest resident set (ru_maxrss) over some steps.
"""

import argparse
import importlib
import importlib.util
import os
import resource
import subprocess
import sys

#: transformer_train with more blocks: where memory is mostly activations
DEEP = "transformer_8_blocks"
WORKLOADS = ("deep_cnn", "deep_cnn_dynamic", "resnet18_train", "lstm_train", "transformer_train", DEEP)
FRAMEWORKS = ("nn_core", "nn_core_recompute", "nnabla", "torch")
#: by module, the functions whose outputs nn_core_recompute drops; convolutions, LSTMs and sums keep theirs
RECOMPUTED = {
    "nn_core.functions": ("tanh", "gelu", "softmax", "batch_matmul", "reshape", "transpose"),
    "nn_core.parametric_functions": (
        "affine",
        "batch_normalization",
        "fused_batch_normalization",
        "layer_normalization",
    ),
}
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


def recompute():
    """From now on, compute the outputs of some functions again in the backward pass."""
    from nn_core.recompute import recompute_fn

    for module, names in RECOMPUTED.items():
        functions = importlib.import_module(module)
        for name in names:
            setattr(functions, name, recompute_fn()(getattr(functions, name)))


def peak_mb():
    """Return the largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(workload, framework):
    """Megabytes that a workload adds to the loaded library."""
    package = framework.removesuffix("_recompute")
    load(package)
    module = importlib.import_module(f"benchmarks.workloads.{'transformer_train' if workload == DEEP else workload}")
    if workload == DEEP:
        module.BLOCKS = 8
    loaded = peak_mb()
    if package != framework:
        recompute()
    step = getattr(module, package)()
    for _ in range(STEPS):
        step()
    return peak_mb() - loaded


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", choices=[[], *WORKLOADS], default=[])
    nnabla = os.environ.get("NNABLA_PYTHON")
    parser.add_argument("--nnabla-python", default=nnabla, help="interpreter of an environment with the package nnabla")
    parser.add_argument("--only", choices=FRAMEWORKS, help="print the figure of one")
    options = parser.parse_args()
    if options.only:
        print(measure(options.workloads[0], options.only))
        return
    pythons = {"nn_core": sys.executable, "nn_core_recompute": sys.executable, "nnabla": options.nnabla_python}
    pythons["torch"] = sys.executable if importlib.util.find_spec("torch") else None
    pythons = {name: python for name, python in pythons.items() if python}
    print(f"peak MB of {STEPS} steps above the loaded library")
    print(f"{'':20s}" + "".join(f"{name:>19s}" for name in pythons))
    for workload in options.workloads or WORKLOADS:
        cells = []
        for name, python in pythons.items():
            command = [python, "-m", "benchmarks.memory", workload, "--only", name]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            cells.append(f"{float(output.splitlines()[-1]):19.0f}")
        print(f"{workload:20s}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
