"""The command ``nn-core summary``: what the networks of a file consist of."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nn_core.errors import ArgumentError
from nn_core.ext import axis_lengths, find_extension
from nn_core.network_summary import summary
from nn_core.parameter import parameter_scope


def summaries(path: Path, names: Sequence[str], batch_size: int, dimensions: Sequence[str]) -> str:
    """Return the tables of the networks of a file, of any format that an installed package reads.

    Args:
        path: The file.
        names: Which networks; none: all.
        batch_size: Number of samples, for files that leave it open.
        dimensions: Lengths of the axes that the file names, as ``NAME=LENGTH``.

    Raises:
        ArgumentError: when no package reads the format, or there is no network of a name.
    """
    read = find_extension("file_formats", path.suffix.lower(), "read_network")
    settings: dict[str, Any] = {"dimensions": axis_lengths("summary", dimensions)} if dimensions else {}
    with parameter_scope("", {}):
        loaded = read(path, batch_size=batch_size, **settings)
        found: Mapping[str, Any] = getattr(loaded, "networks", {getattr(loaded, "name", "") or "network": loaded})
        if not found:
            raise ArgumentError(f"summary: {path} must have a network, got none")
        unknown = [name for name in names if name not in found]
        if unknown:
            raise ArgumentError(f"summary: --network must be one of {list(found)}, got {unknown[0]!r}")
        return "\n".join(f"Network {name}:\n{summary(list(found[name].outputs.values()))}" for name in names or found)
