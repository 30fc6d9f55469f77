"""Measures one case in one framework on a device, in a process of its own.

    python -m benchmarks.gpu.worker WORKLOAD FRAMEWORK PRECISION CONTEXT [--tiny]

Answers on standard output, one line of JSON each: first facts about the framework and the device; then for each line of
standard input, which has a number of steps, the mean seconds of a step. The device is waited for before and after the
steps, not between them, as in a training loop. The line "report" asks what of the graphs was recorded.
"""

import argparse
import contextlib
import functools
import importlib
import json
import sys
import time

PRECISIONS = ("float32", "tf32", "bfloat16")


def nn_core(module, precision, context):
    """(step, wait for the device, facts) of nn_core; what it launches stays as it is."""
    import nn_core as nn
    from nn_core.ext_utils import get_extension_context

    on_device = context in ("cuda", "cudnn")
    settings = {"type_config": "bfloat16" if precision == "bfloat16" else "float"}
    if on_device:
        settings["tf32"] = precision == "tf32"
    nn.set_default_context(get_extension_context(context, **settings))
    facts = {"version": nn.__version__}
    wait = _nothing
    if on_device:
        import cupy

        import nn_ext_cuda

        wait = nn_ext_cuda.device_synchronize
        versions = {"CuPy": cupy.__version__, "CUDA": cupy.cuda.runtime.runtimeGetVersion()}
        facts |= {"device": nn_ext_cuda.get_devices()[0], "libraries": versions}
    return module.nn_core(), wait, facts


def nn_core_together(module, precision, context):
    """Return the same with one launch a step."""
    import nn_core as nn

    step, wait, facts = nn_core(module, precision, context)

    def together():
        with nn.launch_together():
            step()

    return together, wait, facts


def torch(module, precision, context, build="torch"):
    """PyTorch eager, its inputs on the device."""
    import torch as th

    device = "cuda" if context in ("cuda", "cudnn") else "cpu"
    th.backends.cuda.matmul.allow_tf32 = th.backends.cudnn.allow_tf32 = precision == "tf32"
    th.backends.cudnn.benchmark = True
    th.set_default_device(device)
    from_numpy = th.from_numpy
    th.from_numpy = lambda array: from_numpy(array).to(device)  # workloads make their inputs by it
    function = getattr(module, build)
    if precision == "bfloat16":
        function = functools.partial(function, functools.partial(th.autocast, device, th.bfloat16))
    facts = {"version": th.__version__}
    if device == "cuda":
        versions = {"CUDA of PyTorch": th.version.cuda, "cuDNN of PyTorch": th.backends.cudnn.version()}
        facts |= {"device": th.cuda.get_device_name(), "libraries": versions}
    return function(), th.cuda.synchronize if device == "cuda" else _nothing, facts


def torch_compile(module, precision, context):
    """PyTorch compiled for few launches, which records CUDA graphs."""
    import torch as th

    th.compile = functools.partial(th.compile, mode="reduce-overhead")
    return torch(module, precision, context, "torch_compile")


FRAMEWORKS = (nn_core, nn_core_together, torch, torch_compile)


def load(workload, *, tiny):
    """Return the module of a workload; with `tiny` made small if it is large."""
    for package in ("benchmarks.gpu.workloads", "benchmarks.workloads"):
        with contextlib.suppress(ModuleNotFoundError):
            module = importlib.import_module(f"{package}.{workload}")
            break
    else:
        raise SystemExit(f"no workload {workload!r}")
    if tiny and hasattr(module, "shrink"):
        module.shrink()
    return module


def _nothing():
    """Wait for nothing: the host has done its work when a step returns."""


def recorded():
    """Return the report of recorded graphs of this process, as text."""
    report = sys.modules.get("nn_ext_cuda.launch.capture_report")
    return str(report.graph_report()) if report is not None else ""


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("framework", choices=[function.__name__ for function in FRAMEWORKS])
    parser.add_argument("precision", choices=PRECISIONS)
    parser.add_argument("context")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    answers, sys.stdout = sys.stdout, sys.stderr
    prepare = globals()[options.framework]
    step, wait, facts = prepare(load(options.workload, tiny=options.tiny), options.precision, options.context)
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() == "report":
            print(json.dumps(recorded()), file=answers, flush=True)
            continue
        steps = int(line)
        wait()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        print(json.dumps([(time.perf_counter() - start) / steps]), file=answers, flush=True)


if __name__ == "__main__":
    main()
