"""Names, paths, outputs and inputs that users give to the exporters."""

import os
import re
from pathlib import Path
from typing import Any

import nn_core as nn
from nn_core.ext import ArgumentError, atomic_writer
from nn_core.graph_rewriting import network_ports, without_python
from nn_ext_c.source import Source, identifier


def check_name(name: str) -> None:
    """Refuse a name that C does not allow.

    Raises:
        ArgumentError: when it is none.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or identifier(name) != name:
        raise ArgumentError(f"export: name must be letters, digits and underscores as in 'my_net', got {name!r}")


def network_of(outputs: Any, inputs: Any) -> tuple[dict[str, nn.Variable], dict[str, nn.Variable]]:
    """Return outputs and inputs by name; functions in Python are expressed by others where these say how.

    Raises:
        ArgumentError: when an output or input is something else than a Variable, or an input is no leaf or given twice.
    """
    wanted, leaves = network_ports(outputs, inputs)
    for variable in leaves.values():
        if variable.parent is not None:
            raise ArgumentError(f"export: inputs must be Variables that no function computes, got {variable!r}")
    return dict(zip(wanted, without_python(list(wanted.values())), strict=True)), leaves


def target_of(path: str | os.PathLike[str], name: str | None) -> tuple[Path, str]:
    """Return the path of both files without their suffixes, and the stem of all names in C.

    Args:
        path: a folder, or the path of either file, with the suffix or without.
        name: the stem of all names; by default that of the file. In a folder it is the stem of the files, too.

    Raises:
        ArgumentError: when the path is that of another kind of file.
    """
    target = Path(path)
    if target.is_dir():
        stem = name or "network"
        return target / stem, stem
    if target.suffix not in (".c", ".h", ""):
        raise ArgumentError(f"export: path must be a folder, or a file whose suffix is .c or .h, got {os.fspath(path)!r}")
    return target.parent / target.stem, name or identifier(target.stem)


def save_source(source: Source, target: Path) -> None:
    """Write the header and the source beside each other."""
    for suffix, text in ((".h", source.header), (".c", source.code)):
        with atomic_writer(target.parent / f"{target.name}{suffix}") as file:
            file.write(text.encode())
