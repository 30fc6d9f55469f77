"""Files of networks: seconds to load an NNP archive of 100 MB beside NNabla, and to export a ResNet-50 as ONNX.

    python -m benchmarks.network_files --nnabla-python /path/to/python3.10

Both packages load the same archives: one that NNabla writes, with parameters as .h5, and two that nn_core writes, one with
parameters as .h5, one as .protobuf. Each measurement is a process of its own, and they take turns; the time is what passes
from the call of `load_parameters` or `load` to its return. A small archive is loaded first, so that what is imported for it
is not counted.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROUNDS = 5
#: Affine layers of a million parameters each.
LAYERS = 25

_LOAD = """
import sys, time
import {package} as package
from {package}.utils.load import load
def act(path):
    if sys.argv[3] == "parameters":
        package.load_parameters(path)
    else:
        load(path, prepare_data_iterator=False)
    assert package.get_parameters(grad_only=False)["layer0/affine/W"].d.size
act(sys.argv[1])
package.clear_parameters()
start = time.perf_counter()
act(sys.argv[2])
print("seconds", time.perf_counter() - start)
assert sum(p.size for p in package.get_parameters(grad_only=False).values()) >= {count}
"""

_SAVE = """
import sys
import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
from nnabla.utils.save import save
x = y = nn.Variable((1, int(sys.argv[3])))
for number in range(int(sys.argv[2])):
    y = F.relu(PF.affine(y, int(sys.argv[3]), name=f"layer{number}"))
network = {"name": "net", "batch_size": 1, "names": {"x": x}, "outputs": {"y": y}}
executor = {"name": "run", "network": "net", "data": ["x"], "output": ["y"]}
save(sys.argv[1], {"networks": [network], "executors": [executor]})
"""

_EXPORT = """
import sys, time
import nn_core as nn
import nn_ext_onnx
from benchmarks.network_files import resnet50
x, y = resnet50()
start = time.perf_counter()
nn_ext_onnx.export(sys.argv[1], {"y": y}, {"x": x}, **eval(sys.argv[2]))
print("seconds", time.perf_counter() - start)
"""


def resnet50(batch: int = 1):  # type: ignore[no-untyped-def]  # Variables, which are imported only here
    """Return a ResNet-50 in test mode: the input of shape (B, 3, 224, 224), the scores of shape (B, 1000)."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF

    def conv(h: nn.Variable, n: int, kernel: int, name: str, stride: int = 1) -> nn.Variable:
        with nn.parameter_scope(name):
            pad = (kernel // 2, kernel // 2)
            h = PF.convolution(h, n, (kernel, kernel), pad=pad, stride=(stride, stride), with_bias=False)
            return PF.batch_normalization(h, batch_stat=False)

    x = nn.Variable((batch, 3, 224, 224))
    h = F.max_pooling(F.relu(conv(x, 64, 7, "first", 2)), (3, 3), (2, 2), pad=(1, 1))
    for stage, (n, repeats) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(repeats):
            stride = 2 if stage and not block else 1
            with nn.parameter_scope(f"stage{stage}/block{block}"):
                branch = F.relu(conv(h, n, 1, "a"))
                branch = conv(F.relu(conv(branch, n, 3, "b", stride)), 4 * n, 1, "c")
                h = F.relu(branch + (h if block else conv(h, 4 * n, 1, "short", stride)))
    return x, PF.affine(F.global_average_pooling(h), 1000, name="classes")


def write_archives(nnabla_python: str, folder: Path, layers: int = LAYERS, width: int = 1000) -> list[Path]:
    """Networks with 100 MB of parameters, or fewer: of NNabla, and of nn_core in both formats that archives have."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF
    from nn_core.utils.save import save

    folder.mkdir(exist_ok=True)
    paths = [folder / "nnabla_h5.nnp"]
    program = [nnabla_python, "-c", _SAVE, str(paths[0]), str(layers), str(width)]
    subprocess.run(program, capture_output=True, check=True)
    with nn.parameter_scope("", {}):
        x = nn.Variable((1, width))
        y = x
        for number in range(layers):
            y = F.relu(PF.affine(y, width, name=f"layer{number}"))
        contents = {
            "networks": [{"name": "net", "batch_size": 1, "names": {"x": x}, "outputs": {"y": y}}],
            "executors": [{"name": "run", "network": "net", "data": ["x"], "output": ["y"]}],
        }
        for kind in (".h5", ".protobuf"):
            paths.append(folder / f"parameters_{kind[1:]}.nnp")
            save(paths[-1], contents, parameter_format=kind)
    return paths


def seconds(python: str, program: str, *arguments: str) -> float:
    """Return the number that a process prints."""
    done = subprocess.run([python, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout.split("seconds")[-1])


def row(label: str, *values: float) -> str:
    """Return a line of a table."""
    return f"| {label} | " + " | ".join(f"{value:.3f}" for value in values) + " |"


@click.command()
@click.option("--nnabla-python", required=True, help="An interpreter in which NNabla can be imported.")
def main(nnabla_python: str) -> None:
    """Measure, and print tables in Markdown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = ["| load | nn_core, s | NNabla, s | NNabla / nn_core |", "|---|---|---|---|"]
        large = write_archives(nnabla_python, folder)
        small_ones = write_archives(nnabla_python, folder / "small", 2, 10)
        for path, small in zip(large, small_ones, strict=True):
            for what in ("parameters", "network"):
                times: dict[str, list[float]] = {}
                for _ in range(ROUNDS):
                    for python, package in ((sys.executable, "nn_core"), (nnabla_python, "nnabla")):
                        program = _LOAD.format(package=package, count=LAYERS * 10**6)
                        times.setdefault(package, []).append(seconds(python, program, str(small), str(path), what))
                ours, theirs = (statistics.median(times[package]) for package in ("nn_core", "nnabla"))
                size = path.stat().st_size / 1e6
                lines.append(row(f"{what}, {path.stem} of {size:.0f} MB", ours, theirs, theirs / ours))
        click.echo("\n".join(lines))
        lines = ["", "| export of ResNet-50 as ONNX | s |", "|---|---|"]
        for settings in ("{}", "{'dynamic_batch': True}", "{'external_data': True}"):
            found = [seconds(sys.executable, _EXPORT, str(folder / "net.onnx"), settings) for _ in range(ROUNDS)]
            lines.append(row(f"`{settings}`", statistics.median(found)))
        click.echo("\n".join(lines))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.network_files")
