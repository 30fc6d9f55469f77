"""Inference of models that ONNX Runtime quantized: imported by nn_ext_onnx, and run by ONNX Runtime; both also in float32.

Beside these stands what `nn_core.utils.quantization` makes of the float32 model, compared with ONNX Runtime's QDQ.

    python -m benchmarks.quantized_models [--rounds 20]

Networks with random weights (a residual one like ResNet-18, a separable one like MobileNet, a transformer of six layers) are
quantized dynamically, as QDQ and as QOperator. All forms of a network run in this process on one thread and take turns; the
figures are the processor's time of the fastest run and of the middle one.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before the libraries are loaded

import logging
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.imported_models import imported, milliseconds, session

SIDE = 112


class Network:
    """Nodes and weights of a model that is being written."""

    def __init__(self, shape: list[int]) -> None:
        self.rng, self.shape = np.random.default_rng(0), shape
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int) -> str:
        """Add a weight and return its name."""
        array = self.rng.normal(size=shape) / math.sqrt(max(math.prod(shape[1:]), 1))
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), f"w{len(self.weights)}"))
        return str(self.weights[-1].name)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a function and return the name of its output."""
        self.nodes.append(helper.make_node(kind, list(inputs), [f"v{len(self.nodes)}"], **attributes))
        return str(self.nodes[-1].output[0])

    def conv(self, x: str, channels: int, filters: int, size: int = 3, stride: int = 1, group: int = 1) -> str:
        """Add a convolution with its bias."""
        weight, bias = self.weight(filters, channels // group, size, size), self.weight(filters)
        return self.node("Conv", x, weight, bias, pads=[size // 2] * 4, strides=[stride] * 2, group=group)

    def model(self, y: str) -> onnx.ModelProto:
        """Return the model whose output is `y`."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        graph = helper.make_graph(self.nodes, "g", [x], [onnx.ValueInfoProto(name=y)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def residual() -> onnx.ModelProto:
    """Return a residual network like ResNet-18."""
    net = Network([1, 3, SIDE, SIDE])
    x = net.node("Relu", net.conv("x", 3, 64, 7, 2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for filters in (64, 64, 128, 128, 256, 256, 512, 512):
        stride = 1 if filters == channels else 2
        y = net.node("Relu", net.conv(x, channels, filters, 3, stride))
        y = net.conv(y, filters, filters)
        x = x if stride == 1 else net.conv(x, channels, filters, 1, 2)
        x, channels = net.node("Relu", net.node("Add", x, y)), filters
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model(net.node("Gemm", x, net.weight(1000, 512), net.weight(1000), transB=1))


def separable() -> onnx.ModelProto:
    """Return a network of depthwise and pointwise convolutions like MobileNet."""
    net, channels = Network([1, 3, SIDE, SIDE]), 32
    x = net.node("Relu", net.conv("x", 3, channels, 3, 2))
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        x = net.node("Relu", net.conv(x, channels, channels, 3, stride, channels))
        x, channels = net.node("Relu", net.conv(x, channels, filters, 1)), filters
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model(net.node("Gemm", x, net.weight(1000, 1024), net.weight(1000), transB=1))


def transformer(width: int = 256, length: int = 128, n_heads: int = 4) -> onnx.ModelProto:
    """Return six layers of attention and two products each."""
    net = Network([1, length, width])
    shape = numpy_helper.from_array(np.array([1, length, n_heads, width // n_heads]), "split")
    whole = numpy_helper.from_array(np.array([1, length, width]), "whole")
    net.weights += [shape, whole]
    x = "x"
    for _ in range(6):
        q, k, v = (net.node("Reshape", net.node("MatMul", x, net.weight(width, width)), "split") for _ in range(3))
        q, v = (net.node("Transpose", value, perm=[0, 2, 1, 3]) for value in (q, v))
        scores = net.node("Softmax", net.node("MatMul", q, net.node("Transpose", k, perm=[0, 2, 3, 1])), axis=-1)
        mixed = net.node("Reshape", net.node("Transpose", net.node("MatMul", scores, v), perm=[0, 2, 1, 3]), "whole")
        x = net.node("Add", x, net.node("MatMul", mixed, net.weight(width, width)))
        hidden = net.node("Relu", net.node("Add", net.node("MatMul", x, net.weight(width, 4 * width)), net.weight(4 * width)))
        x = net.node("Add", x, net.node("MatMul", hidden, net.weight(4 * width, width)))
    return net.model(x)


NETWORKS = {"residual": residual, "separable": separable, "transformer": transformer}


def quantized(model: onnx.ModelProto, folder: Path) -> dict[str, Path]:
    """Write the model in float32 and in three quantized forms."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

    class Samples(CalibrationDataReader):  # type: ignore[misc]  # without types
        def __init__(self) -> None:
            shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim]
            rng = np.random.default_rng(1)
            self.rest = iter([{"x": rng.normal(size=shape).astype(np.float32)} for _ in range(2)])

        def get_next(self) -> Any:
            return next(self.rest, None)

    paths = {name: folder / f"{name}.onnx" for name in ("float32", "dynamic", "QDQ", "QOperator")}
    onnx.save(model, paths["float32"])
    quantize_dynamic(paths["float32"], paths["dynamic"], weight_type=QuantType.QInt8)
    for name in ("QDQ", "QOperator"):
        settings = {"quant_format": QuantFormat[name], "weight_type": QuantType.QInt8, "per_channel": name == "QDQ"}
        quantize_static(paths["float32"], paths[name], Samples(), activation_type=QuantType.QUInt8, **settings)
    return paths


def calibrated(path: Path, x: Any) -> Callable[[], Any]:
    """Return a run of the float32 model as this package quantizes it."""
    import nn_core as nn
    import nn_ext_onnx
    from nn_core.ext_utils import get_extension_context
    from nn_core.utils.quantization import quantize

    rng = np.random.default_rng(1)
    with nn.context_scope(get_extension_context("cpu")):
        samples = np.concatenate([rng.normal(size=x.shape).astype(np.float32) for _ in range(2)])
        network = quantize(nn_ext_onnx.load(path), calibration=samples)
    return lambda: network(x)


def measured(runs: dict[Any, Callable[[], Any]], rounds: int) -> dict[Any, tuple[float, float]]:
    """Return the fastest and the middle time of each run."""
    for run in [*runs.values()] * 3:
        run()
    times = np.array([[milliseconds(run) for run in runs.values()] for _ in range(rounds)])
    return {name: (float(np.min(column)), float(np.median(column))) for name, column in zip(runs, times.T, strict=True)}


def rows_of(name: str, paths: dict[str, Path], x: Any, rounds: int) -> list[str]:
    """Measure the forms of a network; return the rows of the table."""
    runs: dict[Any, Callable[[], Any]] = {("ours", form): imported(path, x) for form, path in paths.items()}
    runs |= {("theirs", form): session(path, x) for form, path in paths.items()}
    runs["ours", "calibrated"] = calibrated(paths["float32"], x)
    found = measured(runs, rounds)
    whole, rows = found["ours", "float32"][0], []
    for form in (*paths, "calibrated"):
        ours, theirs = found["ours", form], found["theirs", "QDQ" if form == "calibrated" else form]
        cells = [f"{fastest:.2f} ({middle:.2f})" for fastest, middle in (ours, theirs)]
        rows.append(f"| {name} | {form} | {' | '.join(cells)} | {ours[0] / theirs[0]:.2f} | {ours[0] / whole:.2f} |")
    return rows


@click.command()
@click.option("--rounds", default=20, help="Runs of each.")
@click.option("--network", "names", multiple=True, default=tuple(NETWORKS), help="Only these.")
def main(rounds: int, names: tuple[str, ...]) -> None:
    """Quantize, measure, and print a table in Markdown."""
    logging.disable(logging.WARNING)
    click.echo(
        "| network | form | nn_core, ms | ONNX Runtime, ms | nn_core / ONNX Runtime | of float32 |\n|---|---|---|---|---|---|"
    )
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            model = NETWORKS[name]()
            shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim]
            x = np.random.default_rng(2).normal(size=shape).astype(np.float32)
            click.echo("\n".join(rows_of(name, quantized(model, Path(folder)), x, rounds)))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.quantized_models")
