"""The networks of a file, whatever its format."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nn_core.ext import ArgumentError
from nn_ext_nnp.document import OWN_EXTENSIONS
from nn_ext_nnp.exchange import graph_of
from nn_ext_nnp.nnp_graph import NnpLoader


def networks_of(path: Path, command: str, names: Sequence[str], dimensions: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return graphs of networks by name, with the parameters in the current scope.

    Args:
        path: the file.
        command: its name, for messages.
        names: which networks; none: all.
        dimensions: lengths of the axes that files of other formats name.

    Raises:
        ArgumentError: when there is no network of a name.
    """
    if path.suffix.lower() in OWN_EXTENSIONS:
        loader = NnpLoader(path)
        known = loader.get_network_names()
        _require(command, names, known)
        return {name: loader.get_network(name) for name in names or known}
    network = graph_of(path, 1, dimensions)
    _require(command, names, [network.name])
    return {network.name: network}


def _require(command: str, names: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ArgumentError(f"{command}: --network must be one of {list(known)}, got {unknown[0]!r}")
