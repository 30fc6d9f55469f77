"""Look at files of networks, and turn them into others."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import click
import numpy as np

from nn_core.ext import (
    ArgumentError,
    Entry,
    FileFormatError,
    atomic_writer,
    axis_lengths,
    one_line,
    open_to_read,
    read_entries,
    say,
    write_entries,
)
from nn_ext_nnp.commands.conversion import imported, keep_executor
from nn_ext_nnp.commands.dimensions import dimension_option
from nn_ext_nnp.commands.failing import clean_failures, refused_options
from nn_ext_nnp.document import read_document

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("-F", "--dump-functions", "functions", is_flag=True, help="Print the functions of each network.")
@click.option("-V", "--dump-variables", "variables", is_flag=True, help="Print the variables of each network.")
@click.option("-v", "--dump-verbose", "verbose", is_flag=True, help="Print functions and variables.")
@click.option("--dump-limit", "limit", type=click.IntRange(min=0), help="Print so many functions and variables at most.")
@click.option("-n", "--dump-variable-name", "name", default="", help="Print the variables of this name.")
@click.option("--network", default="", help="Print this network only.")
@click.option("-E", "--nnp-import-executor-index", "executor", type=int, help="Print this executor, from 0, and its network.")
@click.option("--nnp-no-expand-network", "keep_loops", is_flag=True, help="Leave loops as they are.")
@dimension_option
@click.option(
    "-I", "--import-format", type=click.Choice(["NNP", "NNB", "ONNX"]), help="Format; that of the extensions by default."
)
@refused_options("functions of preprocessing are part of the network here", ("--nnp-exclude-preprocess",), are_flags=True)
@clean_failures
def dump(
    files: tuple[Path, ...],
    functions: bool,
    variables: bool,
    verbose: bool,
    limit: int | None,
    name: str,
    network: str,
    executor: int | None,
    keep_loops: bool,
    dimensions: tuple[str, ...],
    import_format: str | None,
) -> None:
    """Print what FILES say together: networks, optimizers, monitors, executors.

    Formats: .nnp, .nnb, .nntxt, .prototxt, .protobuf, .onnx with the package nn-ext-onnx, and .h5 for parameters.

    Example: nn-core dump -F network.nnp
    """
    document = imported(files, import_format, keep_loops=keep_loops, dimensions=axis_lengths("dump", dimensions))
    if executor is not None:
        keep_executor(document, executor)
    for found in _chosen(document.proto.network, network):
        say(_network_text(found, functions or verbose, variables or verbose or bool(name), name, limit))
    say(f"Parameters: {len(document.parameters)}, {sum(e.values.size for e in document.parameters.values())} values")
    shapes = {n.name: {v.name: list(v.shape.dim) for v in n.variable} for n in document.proto.network}
    for kind in ("optimizer", "monitor", "executor"):
        for index, part in enumerate(getattr(document.proto, kind)):
            if network in ("", part.network_name):
                say(_part_text(kind.capitalize(), index, part, shapes.get(part.network_name, {})))


def _chosen(networks: Sequence[Any], name: str) -> list[Any]:
    """Return the network of this name; all if it is empty."""
    names = [network.name for network in networks]
    if name and name not in names:
        raise ArgumentError(f"dump: --network must be one of {names}, got {name!r}")
    return [network for network in networks if name in ("", network.name)]


def _network_text(network: Any, functions: bool, variables: bool, name: str, limit: int | None) -> str:
    counts = f"{len(network.variable)} variables, {len(network.function)} functions"
    lines = [f"Network {network.name}: batch size {network.batch_size}, {counts}"]
    if variables:
        lines += [f"  {v.type:9} {v.name} {list(v.shape.dim)}" for v in network.variable if name in ("", v.name)][:limit]
    if functions:
        lines += [f"  {f.type} {f.name}: {', '.join(f.input)} -> {', '.join(f.output)}" for f in network.function][:limit]
    return "\n".join(lines)


def _part_text(kind: str, index: int, part: Any, shapes: dict[str, list[int]]) -> str:
    lines = [f"{kind}[{index}]: {part.name}, network {part.network_name}"]
    for title in ("data", "generator", "loss", "monitor", "output"):
        for variable in getattr(part, f"{title}_variable", ()):
            name = variable.variable_name
            lines.append(f"{kind}[{index}]: {title.capitalize():9} {name} {shapes.get(name, 'unknown')}")
    return "\n".join(lines)


@click.command("decode_param")
@click.option("-p", "--param", required=True, type=_FILE, help="File of parameters.")
@click.option("-o", "--outdir", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder of the texts.")
@clean_failures
def decode_param(param: Path, outdir: Path) -> None:
    """Write each parameter to a text file: its shape, then a number a line.

    Example: nn-core decode_param -p parameters.h5 -o texts
    """
    entries = _entries(param)
    outdir.mkdir(parents=True, exist_ok=True)
    for name, entry in entries.items():
        numbers = "".join(f"\n{number!r}" for number in entry.values.astype(np.float64).ravel().tolist())
        with atomic_writer(outdir / f"{_file_name(name)}.txt") as file:
            file.write(f"{tuple(entry.values.shape)}{numbers}".encode())
    say(f"{len(entries)} parameters")


@click.command("encode_param")
@click.option("-i", "--indir", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder.")
@click.option("-p", "--param", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@clean_failures
def encode_param(indir: Path, param: Path) -> None:
    """Read the texts that decode_param has written and write a file of parameters.

    Example: nn-core encode_param -i texts -p parameters.h5
    """
    entries = {
        "/".join(unquote(part) for part in path.stem.split("~")): Entry(_values(path), {"need_grad": True, "index": index})
        for index, path in enumerate(sorted(indir.glob("*.txt")))
    }
    if not entries:
        raise ArgumentError(f"encode_param: {indir} must have files .txt, got none")
    if param.suffix.lower() not in (".h5", ".protobuf", ".nntxt", ".prototxt", ".nnp"):
        raise ArgumentError(f"encode_param: --param must be .h5, .protobuf, .nntxt, .prototxt or .nnp, got {param.suffix!r}")
    write_entries(param, entries, param.suffix.lower())
    say(f"{len(entries)} parameters")


def _file_name(parameter: str) -> str:
    """Return the name with ~ for /; what files cannot have in their names is percent-encoded."""
    return "~".join(quote(part, safe="").replace("~", "%7E") for part in parameter.split("/"))


def _entries(path: Path) -> dict[str, Entry]:
    return dict(read_entries(path, ".h5")) if path.suffix.lower() == ".h5" else read_document(path).parameters


def _values(path: Path) -> "np.ndarray[Any, Any]":
    with open_to_read(path) as file:
        content = file.read()
    try:
        head, *lines = content.decode().split("\n")
        shape = tuple(int(part) for part in head.strip().strip("()").split(",") if part.strip())
        values = np.array([float(line) for line in lines if line.strip()], np.float32)
    except ValueError as error:
        raise FileFormatError(f"{path}: must have a shape, then a number a line, got: {one_line(error)}") from error
    if min((0, *shape)) < 0 or math.prod(shape) != values.size:
        raise FileFormatError(f"{path}: must have as many numbers as the shape {shape} says, got {values.size}")
    return values.reshape(shape)
