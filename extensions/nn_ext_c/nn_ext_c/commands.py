"""The subcommand of ``nn-core``."""

import zipfile
from pathlib import Path
from typing import Any

import click

import nn_core as nn
from nn_core.ext import (
    ArgumentError,
    FileFormatError,
    NNCoreError,
    axis_lengths,
    find_extension,
    one_line,
    open_to_read,
    read_entries,
    read_npy,
    say,
)
from nn_ext_c.exporting import export
from nn_ext_c.integer.calibration import METHODS

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("network", type=_FILE)
@click.argument("output", type=click.Path(path_type=Path))
@click.option("-n", "--name", help="Which network of the file; the first by default.")
@click.option("-b", "--batch_size", default=1, help="Number of samples, for files that leave it open.", show_default=True)
@click.option("-d", "--dimension", multiple=True, metavar="NAME=LENGTH", help="The length of an axis that the file names.")
@click.option("-c", "--calibration", type=_FILE, help="Samples in a .npy or .npz file: the network is written in int8.")
@click.option("-m", "--method", type=click.Choice(METHODS), default="minmax", help="How ranges follow from the samples.")
def export_c(
    network: Path,
    output: Path,
    name: str | None,
    batch_size: int,
    dimension: tuple[str, ...],
    calibration: Path | None,
    method: str,
) -> None:
    """Write a network of a file (.nnp, .nntxt, .onnx) as C source, OUTPUT.h and OUTPUT.c.

    A package that reads the file must be installed: nn-ext-nnp or nn-ext-onnx.

    Example: nn-core export-c network.nnp firmware/digits.c -c samples.npy
    """
    try:
        with nn.parameter_scope("", {}):
            loaded = _loaded(network, name, batch_size, dimension)
            settings: dict[str, Any] = {}
            if calibration is not None:
                settings = {"dtype": "int8", "calibration": _samples(calibration), "method": method}
            made = export(output, dict(loaded.outputs), dict(loaded.inputs), **settings)
    except (NNCoreError, OSError) as error:
        raise click.ClickException(str(error)) from error
    say(f"{made.arena_bytes} bytes of memory, {made.constant_bytes} bytes of constants")


def _loaded(path: Path, name: str | None, batch_size: int, dimension: tuple[str, ...]) -> Any:
    """Return a network with inputs and outputs by name."""
    read = find_extension("file_formats", path.suffix, "read_network")
    loaded = read(path, batch_size=batch_size, **({"dimensions": axis_lengths("export-c", dimension)} if dimension else {}))
    networks = getattr(loaded, "networks", None)
    if networks is None:
        return loaded
    if not networks or (name is not None and name not in networks):
        raise ArgumentError(f"export-c: --name must be one of {list(networks)}, got {name!r}")
    return networks[name] if name is not None else next(iter(networks.values()))


def _samples(path: Path) -> Any:
    """Return an array, or arrays by name."""
    try:
        with open_to_read(path) as file:
            if zipfile.is_zipfile(file):
                return {name: entry.values for name, entry in read_entries(file, ".npz").items()}
            file.seek(0)
            return read_npy(file, path.name, path.stat().st_size)
    except (ValueError, EOFError) as error:
        raise FileFormatError(f"export-c: {path} must be a .npy or .npz file of arrays, got {one_line(error)}") from error
