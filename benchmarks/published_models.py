"""Networks that packages ship as .onnx files: imported, computed, written back, measured; ONNX Runtime is the judge.

    python -m benchmarks.published_models FOLDER [--nnabla-python /path/to/python3.10] [--rounds 20] [--only NAME]

FOLDER has the models, and beside `NAME.onnx` an archive `NAME.npz` with its inputs where those that are drawn do not suit it:
axes without a length get the first one of a list that ONNX Runtime accepts. Each model runs in a process of its own. The table
has the largest differences, relative to the largest magnitude that is expected but to 1 at least:

- of nn_core from ONNX Runtime,
- of ONNX Runtime from nn_core for the model that nn_core has written back,
- of nn_core and of NNabla from nn_core for the network as .nnp,
- of the network as C, compiled by gcc,

or why there is none; the time of the processor on one thread, both in turn, the fastest of many runs; and the peak of memory
while the model is loaded and run once, less what the process had before.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before the libraries are loaded

import ctypes
import itertools
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from benchmarks.imported_models import milliseconds

#: Lengths for axes without one: of the first axis, of the second of images, of all others.
_BATCH: Final = 1
_CHANNELS: Final = (3, 1)
_LENGTHS: Final = (64, 320, 48, 512, 576, 640, 16, 10, 1)
#: Limits of integers, which may be bytes or indices of tables; scalars are settings, such as rates of samples.
_INTEGERS: Final = (100, 2)
_SCALAR: Final = 16000
_COLUMNS: Final = {
    "import": "nn_core",
    "onnx": "back to ONNX",
    "nnp": ".nnp, nn_core",
    "nnabla": ".nnp, NNabla",
    "c": "C",
    "ours": "nn_core, ms",
    "theirs": "ONNX Runtime, ms",
    "ratio": "ratio",
    "our_memory": "nn_core, MB",
    "their_memory": "ONNX Runtime, MB",
}
_NNABLA: Final = """
import sys
import numpy as np
import nnabla as nn
import nnabla.functions as F
from nnabla.utils.nnp_graph import NnpLoader
loader = NnpLoader(sys.argv[1])
network = loader.get_network(loader.get_network_names()[0], batch_size=1)
arrays = np.load(sys.argv[2])
for name in network.inputs:
    network.inputs[name].d = arrays["in:" + name]
outputs = {name: network.variables[name] for name in (key[4:] for key in arrays.files if key.startswith("out:"))}
for output in outputs.values():
    output.persistent = True
(list(outputs.values())[0] if len(outputs) == 1 else F.sink(*outputs.values())).forward()
np.savez(sys.argv[3], **{name: np.array(output.d) for name, output in outputs.items()})
"""


def session(path: Path) -> Any:
    """Return the model in ONNX Runtime, on one thread."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def inputs_of(path: Path, made: Any) -> dict[str, Any]:
    """Return arrays for the inputs of a model: those beside it, or the first that are drawn and accepted.

    Raises:
        ClickException: when ONNX Runtime accepts none.
    """
    given = path.with_suffix(".npz")
    if given.exists():
        with np.load(given) as file:
            return dict(file)
    refusal: Exception | None = None
    for length, channels, largest in itertools.product(_LENGTHS, _CHANNELS, _INTEGERS):
        rng = np.random.default_rng(0)
        entries = made.get_inputs()
        samples = {entry.shape[0] for entry in entries if entry.shape and isinstance(entry.shape[0], str)}
        arrays = {entry.name: _drawn(entry, samples, length, channels, largest, rng) for entry in entries}
        try:
            made.run(None, arrays)
        except Exception as error:  # a class of its own for each status
            refusal = error
        else:
            return arrays
    raise click.ClickException(f"{path.name}: inputs must be given in {given.name}, got {str(refusal)[:300]}")


def _drawn(entry: Any, samples: Set[str], length: int, channels: int, largest: int, rng: np.random.Generator) -> Any:
    """Return an array for an input; `samples` are names of first axes."""
    shape = [axis if isinstance(axis, int) else _BATCH if axis in samples else length for axis in entry.shape]
    if shape and not isinstance(entry.shape[0], int):
        shape[0] = _BATCH
    if len(shape) == 4 and not isinstance(entry.shape[1], int):
        shape[1] = channels
    if entry.type in ("tensor(float)", "tensor(double)", "tensor(float16)"):
        dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}[entry.type]
        return rng.uniform(-1, 1, size=shape).astype(dtype)
    if entry.type == "tensor(bool)":
        return rng.integers(2, size=shape).astype(bool)
    dtype = np.dtype(entry.type.removeprefix("tensor(").removesuffix(")"))
    return np.full(shape, _SCALAR, dtype) if not shape else rng.integers(largest, size=shape).astype(dtype)


def difference(found: Sequence[Any], expected: Sequence[Any]) -> str:
    """Return the largest difference of results, or how they differ otherwise."""
    worst = 0.0
    for mine, theirs in zip(found, expected, strict=True):
        a, b = np.asarray(mine), np.asarray(theirs)
        if a.shape != b.shape:
            return f"shape {a.shape} in place of {b.shape}"
        if a.dtype.kind in "OSU":
            worst = max(worst, float((a != b).any()))
        elif a.size:
            a, b = a.astype(np.float64), b.astype(np.float64)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
            worst = max(worst, float(np.where(same, 0.0, np.abs(a - b)).max()) / scale)
    return f"{worst:.1e}"


def tried(check: Callable[[], Any]) -> Any:
    """Return what a check gives, or the reason why it gives nothing."""
    try:
        return check()
    except Exception as error:  # whatever it is, it stands in the table
        return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


class Judged:
    """One model, with its inputs and what ONNX Runtime computes."""

    def __init__(self, path: Path, nnabla_python: str | None, rounds: int) -> None:
        import nn_core as nn
        from nn_core.ext_utils import get_extension_context

        nn.set_default_context(get_extension_context("cpu"))
        self.path, self.nnabla_python, self.rounds = path, nnabla_python, rounds
        self.session = session(path)
        self.arrays = inputs_of(path, self.session)
        self.expected = self.session.run(None, self.arrays)
        self.names = [entry.name for entry in self.session.get_outputs()]

    def row(self) -> dict[str, Any]:
        """Return all cells of the table."""
        from nn_ext_onnx.backend import prepare

        row: dict[str, Any] = {}
        prepared = prepare(str(self.path))
        row["import"] = tried(lambda: difference(prepared.run(self.arrays), self.expected))
        with tempfile.TemporaryDirectory() as name:
            for key in ("onnx", "nnp", "c"):
                row[key] = tried(partial(getattr(self, f"through_{key}"), Path(name)))
            if self.nnabla_python and (Path(name) / "net.nnp").exists():
                row["nnabla"] = tried(lambda: self.through_nnabla(Path(name)))
        if self.rounds:
            runs = (lambda: prepared.run(self.arrays), lambda: self.session.run(None, self.arrays))
            times = [[milliseconds(run) for run in runs] for _ in range(self.rounds)]
            ours, theirs = np.min(times, axis=0)
            row |= {"ours": f"{ours:.2f}", "theirs": f"{theirs:.2f}", "ratio": f"{ours / theirs:.2f}"}
        return row

    def network(self) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
        """Return the inputs and outputs of the graph, with the data, and what it computes."""
        import nn_core.functions as F
        import nn_ext_onnx

        shapes = {name: np.shape(array) for name, array in self.arrays.items()}
        network = nn_ext_onnx.load(str(self.path), shapes=shapes, values=self.arrays)
        if network.structures:
            raise ValueError(f"outputs that are no arrays of numbers: {list(network.structures)}")
        for name, variable in network.inputs.items():
            variable.d = self.arrays[name]
        outputs: dict[str, Any] = {}
        for name in self.names:
            variable = network.outputs[name]
            is_taken = variable.parent is None or variable in outputs.values()
            outputs[name] = F.identity(variable) if is_taken else variable
            outputs[name].persistent = True
        F.sink(*outputs.values()).forward()
        return network.inputs, outputs, [np.array(output.d) for output in outputs.values()]

    def through_onnx(self, folder: Path) -> str:
        """Write the network and compute it by ONNX Runtime."""
        import nn_ext_onnx

        inputs, outputs, computed = self.network()
        nn_ext_onnx.export(folder / "net.onnx", outputs, inputs)
        made = session(folder / "net.onnx")
        return difference(made.run(None, {entry.name: self.arrays[entry.name] for entry in made.get_inputs()}), computed)

    def through_nnp(self, folder: Path) -> str:
        """Write the network as .nnp and read that."""
        import nn_core as nn
        import nn_core.functions as F
        from nn_core.utils.nnp_graph import NnpLoader
        from nn_core.utils.save import save

        inputs, outputs, computed = self.network()
        contents = {"name": "net", "batch_size": 1, "names": inputs, "outputs": outputs}
        executor = {"name": "run", "network": "net", "data": list(inputs), "output": list(outputs)}
        save(folder / "net.nnp", {"networks": [contents], "executors": [executor]}, variable_batch_size=False)
        data: dict[str, Any] = {f"in:{name}": np.array(variable.d) for name, variable in inputs.items()}
        data |= {f"out:{name}": y for name, y in zip(outputs, computed, strict=True)}
        np.savez(folder / "data.npz", **data)
        with nn.parameter_scope("", {}):
            network = NnpLoader(str(folder / "net.nnp")).get_network("net", batch_size=1)
            for name, variable in network.inputs.items():
                variable.d = self.arrays[name]
            found = [network.variables[name] for name in outputs]
            for variable in found:
                variable.persistent = True
            F.sink(*found).forward()
            return difference([variable.d for variable in found], computed)

    def through_nnabla(self, folder: Path) -> str:
        """Let NNabla compute the .nnp file."""
        command = [
            str(self.nnabla_python),
            "-c",
            _NNABLA,
            *(str(folder / name) for name in ("net.nnp", "data.npz", "their.npz")),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-300:])
        with np.load(folder / "data.npz") as data, np.load(folder / "their.npz") as found:
            names = [key for key in data.files if key.startswith("out:")]
            return difference([found[key[4:]] for key in names], [data[key] for key in names])

    def through_c(self, folder: Path) -> str:
        """Write the network as C, compile and run it."""
        import nn_ext_c

        inputs, outputs, computed = self.network()
        made = nn_ext_c.export(folder / "net.c", outputs, inputs)
        command = ["gcc", "-std=c99", "-O1", "-shared", "-fPIC", str(folder / "net.c"), "-o", str(folder / "net.so"), "-lm"]
        subprocess.run(command, check=True, capture_output=True)
        given = [np.ascontiguousarray(self.arrays[name], np.float32) for name in inputs]
        results = [np.zeros(max(prod(y.shape), 1), np.float32) for y in computed]
        arrays: list[Any] = [np.zeros(made.arena_bytes, np.uint8), *given, *results]
        status = ctypes.CDLL(str(folder / "net.so")).net_run(*[ctypes.c_void_p(array.ctypes.data) for array in arrays])
        if status:
            return "an index outside of its table"
        return difference([y.reshape(x.shape) for x, y in zip(computed, results, strict=True)], computed)


def peak_memory(path: Path, arrays: Mapping[str, Any], is_ours: bool) -> float:
    """Return the megabytes by which the peak of this process grows while a model is loaded and run."""
    import onnxruntime  # so that neither pays for the other's modules

    import nn_core as nn
    from nn_core.ext_utils import get_extension_context
    from nn_ext_onnx.backend import prepare

    nn.set_default_context(get_extension_context("cpu"))
    _ = onnxruntime
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    start = _kilobytes("VmRSS")
    run = prepare(str(path)).run if is_ours else lambda given: session(path).run(None, dict(given))
    run(dict(arrays))
    return (_kilobytes("VmHWM") - start) / 1024


def _kilobytes(name: str) -> int:
    """Return a figure of the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


def judged(path: Path, nnabla_python: str | None, rounds: int, timeout: int) -> dict[str, Any]:
    """Return the cells of a model, each part from a process of its own."""
    row: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for part in ("row", "our_memory", "their_memory"):
            command = [sys.executable, "-m", "benchmarks.published_models", str(path), "--part", part, "--rounds", str(rounds)]
            command += ["--arrays", f"{name}/arrays.npz", *(["--nnabla-python", nnabla_python] if nnabla_python else [])]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
                row |= json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {part: done.stderr.strip()[-300:]}
            except subprocess.TimeoutExpired:
                row[part] = f"no end within {timeout} s"
    return row


def print_part(part: str, path: Path, arrays: Path, nnabla_python: str | None, rounds: int) -> None:
    """Print cells of one model as JSON; the first part writes the inputs, which the others read."""
    if part == "row":
        made = Judged(path, nnabla_python, rounds)
        np.savez(arrays, **made.arrays)
        cells = made.row()
    else:
        with np.load(arrays) as file:
            cells = {part: f"{peak_memory(path, dict(file), part == 'our_memory'):.0f}"}
    click.echo(json.dumps(cells))


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--nnabla-python", help="An interpreter in which NNabla can be imported.")
@click.option("--rounds", default=20, help="Runs of each for the times; 0: none.", show_default=True)
@click.option("--only", default="", help="Models whose names have this part.")
@click.option("--timeout", default=600, help="Seconds for one model.", show_default=True)
@click.option("--part", type=click.Choice(["row", "our_memory", "their_memory"]), hidden=True)
@click.option("--arrays", type=click.Path(path_type=Path), default=Path(), hidden=True)
def main(
    folder: Path, nnabla_python: str | None, rounds: int, only: str, timeout: int, part: str | None, arrays: Path
) -> None:
    """Judge the models of a folder, and print a table in Markdown."""
    warnings.simplefilter("ignore")  # of models, about which nothing can be done here
    if part is not None:
        print_part(part, folder, arrays, nnabla_python, rounds)
        return
    click.echo(f"| model | MB | {' | '.join(_COLUMNS.values())} |\n|{'---|' * (len(_COLUMNS) + 2)}")
    for path in sorted(folder.glob("*.onnx")):
        if only in path.stem:
            cells = judged(path, nnabla_python, rounds, timeout)
            texts = [str(cells.get(key, "")).replace("\n", " ").replace("|", "/") for key in _COLUMNS]
            unknown = [f"{key}: {value}" for key, value in cells.items() if key not in _COLUMNS]
            click.echo(f"| {path.stem} | {path.stat().st_size / 1e6:.1f} | {' | '.join([*texts, *unknown])} |")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.published_models")
