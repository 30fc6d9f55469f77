"""Inference of models that PyTorch exported to ONNX: imported by nn_ext_onnx, and run by ONNX Runtime.

    python -m benchmarks.imported_models --torch-python /path/to/python

The interpreter has torch==2.13.0, onnx and onnxscript. Both run the same file for the same input in this process on one thread
and take turns; the figure is the processor's time of the fastest of many runs. The results are compared with PyTorch's.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before the libraries are loaded

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

EXPORTER = Path(__file__).parent / "peers" / "torch_exports.py"
ROUNDS = 60


def imported(path: Path, x: Any) -> Callable[[], Any]:
    """Return a run of the model on the CPU backend."""
    import nn_core as nn
    import nn_ext_onnx
    from nn_core.ext_utils import get_extension_context

    with nn.context_scope(get_extension_context("cpu")):
        network = nn_ext_onnx.load(path)
    (variable,), (y,) = network.inputs.values(), network.outputs.values()

    def run() -> Any:
        variable.d = x
        y.forward(clear_buffer=True)
        return y.d

    return run


def session(path: Path, x: Any) -> Callable[[], Any]:
    """Return a run of ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (name,) = (entry.name for entry in made.get_inputs())
    return lambda: made.run(None, {name: x})[0]


def milliseconds(run: Callable[[], Any]) -> float:
    """Time of the processor for one run."""
    start = time.process_time()
    run()
    return 1000 * (time.process_time() - start)


@click.command()
@click.option("--torch-python", required=True, help="An interpreter with torch, onnx and onnxscript.")
def main(torch_python: str) -> None:
    """Export, compare, measure, and print a table in Markdown."""
    lines = ["| model | nn_core, ms | ONNX Runtime, ms | nn_core / ONNX Runtime | difference |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([torch_python, EXPORTER, name], check=True, capture_output=True)
        for path in sorted(Path(name).glob("*.onnx")):
            values = np.load(path.with_suffix(".npz"))
            runs = [make(path, values["x"]) for make in (imported, session)]
            scale = float(np.abs(values["y"]).max())
            difference = max(float(np.abs(run() - values["y"]).max()) for run in runs) / scale
            times = [[milliseconds(run) for run in runs] for _ in range(ROUNDS)]
            ours, theirs = np.min(times, axis=0)
            lines.append(f"| {path.stem} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} | {difference:.1e} |")
    click.echo("\n".join(lines))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.imported_models")
