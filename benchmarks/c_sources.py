"""Networks as C source, beside ONNX Runtime.

    python -m benchmarks.c_sources [--flags "-O3"]

Both compute the same input in this process on one thread and take turns; the figure is the processor's time of the fastest of
many runs, of as many calls each as take about two milliseconds. The table has the ratio, and the largest difference of both.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before the libraries are loaded

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

ROUNDS = 40
SECONDS = 2e-3


def networks() -> dict[str, tuple[Any, Any]]:
    """Return inputs and outputs of nets of several kinds."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF

    def digits(x: Any) -> Any:
        h = F.relu(F.max_pooling(PF.convolution(x, 16, (5, 5), name="a"), (2, 2)))
        h = F.relu(F.max_pooling(PF.convolution(h, 32, (3, 3), name="b"), (2, 2)))
        return F.softmax(PF.affine(F.relu(PF.affine(h, 64, name="c")), 10, name="d"))

    def residual(x: Any) -> Any:
        h = F.relu(PF.convolution(x, 32, (3, 3), pad=(1, 1), name="a"))
        for k in range(3):
            r = F.relu(PF.convolution(h, 32, (3, 3), pad=(1, 1), name=f"b{k}"))
            h = F.relu(h + PF.convolution(r, 32, (3, 3), pad=(1, 1), name=f"c{k}"))
        return PF.affine(F.global_average_pooling(h), 10)

    def separable(x: Any) -> Any:
        h = F.relu6(PF.convolution(x, 16, (3, 3), pad=(1, 1), stride=(2, 2), name="a"))
        for k, n in enumerate((32, 64, 64)):
            h = F.relu6(PF.depthwise_convolution(h, (3, 3), pad=(1, 1), stride=(2 - k % 2,) * 2, name=f"d{k}"))
            h = F.relu6(PF.convolution(h, n, (1, 1), name=f"p{k}"))
        return PF.affine(F.average_pooling(h, (2, 2)), 10)

    def layers(x: Any) -> Any:
        for k in range(3):
            x = F.tanh(PF.affine(x, 256, name=f"a{k}"))
        return F.softmax(PF.affine(x, 10))

    def upsampled(x: Any) -> Any:
        h = F.relu(PF.convolution(x, 16, (3, 3), pad=(1, 1), name="a"))
        h = F.interpolate(F.average_pooling(h, (2, 2)), scale=(2, 2), mode="linear")
        return F.sigmoid(PF.convolution(h, 4, (1, 1), name="b"))

    def signal(x: Any) -> Any:
        h = F.relu(PF.convolution(x, 32, (9,), pad=(4,), stride=(2,), name="a"))
        h = F.relu(PF.convolution(h, 32, (5,), pad=(4,), dilation=(2,), name="b"))
        return PF.affine(F.mean(h, axis=2), 5)

    shapes: dict[Callable[[Any], Any], tuple[int, ...]]
    shapes = {digits: (1, 1, 28, 28), residual: (1, 3, 32, 32), separable: (1, 3, 64, 64)}
    shapes |= {layers: (1, 256), upsampled: (1, 3, 48, 48), signal: (1, 8, 512)}
    made = {}
    for build, shape in shapes.items():
        with nn.parameter_scope(build.__name__):
            x = nn.Variable(shape)
            made[build.__name__] = (x, build(x))
    return made


def compiled(folder: Path, x: Any, y: Any, flags: str) -> tuple[Callable[[], None], Any]:
    """Return a run of the C code, and the array that it writes."""
    from nn_ext_c import export

    made = export(folder / "net.c", {"y": y}, {"x": x})
    command = [
        "gcc",
        "-std=c99",
        *flags.split(),
        "-shared",
        "-fPIC",
        str(folder / "net.c"),
        "-o",
        str(folder / "net.so"),
        "-lm",
    ]
    subprocess.run(command, check=True)
    run = ctypes.CDLL(str(folder / "net.so")).net_run
    arrays: list[Any] = [np.zeros(made.arena_bytes, np.uint8), np.array(x.d, np.float32), np.zeros(y.shape, np.float32)]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

    def call() -> None:
        run(*pointers)
        arrays[0].shape  # noqa: B018  the arrays live as long as the function

    return call, arrays[2]


def session(folder: Path, x: Any, y: Any) -> tuple[Callable[[], None], Any]:
    """Return a run of ONNX Runtime, and the array that it writes."""
    import onnxruntime

    import nn_ext_onnx

    nn_ext_onnx.export(folder / "net.onnx", {"y": y}, {"x": x})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = onnxruntime.InferenceSession(folder / "net.onnx", options, providers=["CPUExecutionProvider"])
    binding = made.io_binding()
    given, result = np.array(x.d, np.float32), np.zeros(y.shape, np.float32)
    binding.bind_cpu_input("x", given)
    binding.bind_output("y", "cpu", element_type=np.float32, shape=y.shape, buffer_ptr=result.ctypes.data)
    return lambda: made.run_with_iobinding(binding), result


def microseconds(run: Callable[[], None], count: int) -> float:
    """Return the time of the processor for one call of several."""
    start = time.process_time()
    for _ in range(count):
        run()
    return 1e6 * (time.process_time() - start) / count


@click.command()
@click.option("--flags", default="-O3", help="Of gcc.", show_default=True)
def main(flags: str) -> None:
    """Compare, measure, and print a table in Markdown."""
    lines = ["| network | C, us | ONNX Runtime, us | C / ONNX Runtime | difference |", "|---|---|---|---|---|"]
    for name, (x, y) in networks().items():
        x.d = np.random.default_rng(0).normal(size=x.shape)
        with tempfile.TemporaryDirectory() as folder:
            runs = [compiled(Path(folder), x, y, flags), session(Path(folder), x, y)]
            counts = [max(1, int(SECONDS * 1e6 / max(microseconds(run, 3), 1))) for run, _ in runs]
            times = [[microseconds(run, count) for (run, _), count in zip(runs, counts, strict=True)] for _ in range(ROUNDS)]
            ours, theirs = np.min(times, axis=0)
            difference = float(np.abs(runs[0][1] - runs[1][1]).max())
        lines.append(f"| {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | {difference:.1e} |")
    click.echo("\n".join(lines))


if __name__ == "__main__":
    main()
