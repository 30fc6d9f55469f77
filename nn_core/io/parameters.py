"""Save parameters to files and load them: HDF5 as NNabla lays it out, NPZ, and safetensors."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.errors import ArgumentError, FileFormatError, ShapeError
from nn_core.files import Entry, PathOrFile, extension_of, read_entries, write_entries
from nn_core.parametric_functions.scope import get_current_parameter_scope, get_parameters, set_parameter
from nn_core.variable import Variable

#: Formats of NNabla that hold networks, and parameters inside them.
_NETWORK_FORMATS: Final = (".nnp", ".nntxt", ".prototxt", ".protobuf", ".pb")


def save_parameters(
    path: PathOrFile, params: Mapping[str, Variable] | None = None, extension: str | None = None
) -> None:
    """Write parameters to a file, which takes the place of an older one only when it is complete.

    Args:
        path: Path that ends in .h5, .npz or .safetensors, or a binary file open for writing.
        params: Variables by name; None: all parameters of the current scope, trained or not.
        extension: Format of an open file; None: that of the path.

    Raises:
        ArgumentError: when the format is another one, or is not given for an open file.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> save_parameters(file, {"w": Variable((2, 3), need_grad=True)}, extension=".npz")
    """
    format_name = extension_of("save_parameters", path, extension)
    chosen = get_parameters(grad_only=False) if params is None else params
    entries = {
        name: Entry(variable.data.get_data("r"), {"need_grad": bool(variable.need_grad), "index": index})
        for index, (name, variable) in enumerate(chosen.items())
    }
    write_entries(path, entries, format_name)


def load_parameters(
    path: PathOrFile, proto: Any = None, needs_proto: bool = False, extension: str | None = ".nntxt"
) -> None:
    """Read parameters from a file into the current scope.

    Parameters that exist get the values of the file, in place; the others are made. The file says which are trained.
    When anything about the file is wrong, all parameters stay as they are.

    Args:
        path: Path of a file that ``save_parameters()`` or NNabla wrote, or a binary file open for reading.
        proto: Must be None; networks are loaded by ``nn_core.utils.load``.
        needs_proto: Must be False, likewise.
        extension: Format of an open file, for example ".h5".

    Raises:
        ArgumentError: when the format is not .h5, .npz or .safetensors, or a name is that of a scope.
        FileFormatError: when the file is damaged, of another format, or contradicts itself.
        ShapeError: when a parameter exists with another shape.
        FileNotFoundError: when there is no such file.
    """
    if proto is not None or needs_proto:
        raise ArgumentError("load_parameters: proto must be None and needs_proto False, got a request for a network")
    name, given = "the file", extension or ""
    if isinstance(path, (str, os.PathLike)):
        name, given = os.fspath(path), Path(path).suffix
    if given.lower() in _NETWORK_FORMATS:
        raise ArgumentError(f"load_parameters: files of networks are not read yet, got {given!r}\n  hint: save as .h5")
    entries = read_entries(path, extension_of("load_parameters", path, given))
    for key in entries:
        _require_own_place(key, entries, name)
    existing = {key: _existing(key, entry, name) for key, entry in entries.items()}
    fresh = {
        key: Variable.from_numpy_array(entry.values, need_grad=bool(entry.attributes.get("need_grad", True)))
        for key, entry in entries.items()
        if existing[key] is None
    }
    for key in sorted(entries, key=lambda key: entries[key].attributes.get("index", 0)):
        parameter = existing[key]
        if parameter is None:
            fresh[key].name = key.rpartition("/")[2]
            set_parameter(key, fresh[key])
            continue
        parameter.d = np.asarray(entries[key].values)
        need_grad = bool(entries[key].attributes.get("need_grad", parameter.need_grad))
        if parameter.need_grad != need_grad:
            parameter.need_grad = need_grad


def _require_own_place(key: str, entries: Mapping[str, Entry], file_name: str) -> None:
    parts = key.split("/")
    if not all(parts):
        raise FileFormatError(f"{file_name}: parameters must have names, got {key!r}")
    if any("/".join(parts[:n]) in entries for n in range(1, len(parts))):
        raise FileFormatError(f"{file_name}: a parameter must not be inside another one, got {key!r}")


def _existing(key: str, entry: Entry, file_name: str) -> Variable | None:
    """The parameter that `entry` belongs to, None if there is none yet; refuses an entry that does not fit."""
    found: Any = get_current_parameter_scope()
    for part in key.split("/"):
        if isinstance(found, Variable):
            raise ArgumentError(f"load_parameters: {file_name} must not put {key!r} inside a parameter, got it there")
        found = found.get(part)
        if found is None:
            return None
    if not isinstance(found, Variable):
        raise ArgumentError(f"load_parameters: {file_name} must not name a scope, got {key!r}")
    if found.shape != entry.values.shape:
        raise ShapeError(
            f"load_parameters: parameter {key!r} must keep its shape {found.shape}, "
            f"got {entry.values.shape} in {file_name}"
        )
    return found
