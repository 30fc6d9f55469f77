"""Processor time of registering a plugin of 2,000 operators, beside as many operators of torch.library.

python -m benchmarks.registration
python -m benchmarks.registration --torch-python ~/torch/bin/python

An operator of nn_core has a shape rule, a gradient and a kernel. Those of torch.library have a kernel alone, or also what
stands for the other two, `register_fake` and `register_autograd`. Each run has a process of its own; they take turns.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 2000
OURS = """
import json, sys, time, types
import nn_core.functions
from nn_core.ext import FunctionPackage, gradient, hookimpl, kernel, register
module = sys.modules["nn_ext_acme"] = types.ModuleType("nn_ext_acme")
spec = json.dumps([
    {{"name": f"acme.Op{{i}}", "api": f"acme_op{{i}}", "topic": "activation", "doc": f"Operator {{i}}.", "shape": "same_as x",
      "inputs": {{"x": {{"doc": {input}}}}}, "outputs": {{"y": {{"doc": {output}}}}}, "backward": {{"needs": ["x"]}}}}
    for i in range({count})
])
start = time.process_time()
for i in range({count}):
    def forward(xp, x): return x
    def backward(F, call): return call.grad
    forward.__module__ = backward.__module__ = module.__name__
    kernel(f"acme.Op{{i}}")(forward)
    gradient(f"acme.Op{{i}}")(backward)
@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=spec)]
module.nn_core_functions = nn_core_functions
register(module, name="acme")
print(time.process_time() - start)
"""
TORCH = """
import time, torch
start = time.process_time()
library = torch.library.Library("acme", "DEF")
for i in range({count}):
    def forward(x): return x
    library.define(f"op{{i}}(Tensor x) -> Tensor")
    library.impl(f"op{{i}}", forward, "CPU")
{rest}
print(time.process_time() - start)
"""
REST = """
    torch.library.register_fake(f"acme::op{i}", lambda x: torch.empty_like(x), lib=library)
    torch.library.register_autograd(f"acme::op{i}", lambda context, grad: grad, lib=library)
"""


def programs(torch_python: str | None) -> dict[str, tuple[str, str]]:
    """Return the programs and their interpreters, by what they register."""
    alike, different = ('"Input."', '"Output."'), ('f"Input {i}."', 'f"Output {i}."')
    found = {
        f"nn_core, {name}": (sys.executable, OURS.format(count=COUNT, input=words[0], output=words[1]))
        for name, words in (("operators alike", alike), ("all different", different))
    }
    if torch_python is not None:
        found["torch.library, kernels alone"] = (torch_python, TORCH.format(count=COUNT, rest=""))
        found["torch.library, shapes and gradients too"] = (torch_python, TORCH.format(count=COUNT, rest=REST))
    return found


def main() -> None:
    """Print the median of each in seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", help="An interpreter that has PyTorch.")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    chosen = programs(options.torch_python)
    times: dict[str, list[float]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"  # PyTorch looks for the lines of whoever registers, which `-c` does not have
        for _ in range(options.runs):
            for name, (python, program) in chosen.items():
                path.write_text(program, encoding="utf-8")
                output = subprocess.run([python, "-P", str(path)], check=True, capture_output=True, text=True).stdout
                times[name].append(float(output))
    for name, seconds in times.items():
        print(f"{name:42}{statistics.median(seconds):6.2f} s")


if __name__ == "__main__":
    main()
