"""Networks of files, built again for each graph and each size of batches."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nn_core as nn
from nn_core.ext import ArgumentError, find_extension
from nn_ext_serve.predictor import BuiltNetwork, Graph


class NetworkFile:
    """A function of a number of samples that builds a network of a file; a file that changes meanwhile is refused.

    Args:
        path: A file of a format that an installed package reads, such as .onnx, .nnp and .nntxt.
        name: Which network of the file; None: the first one.
        dimensions: Lengths of axes that the file names, for files of ONNX.

    Raises:
        ArgumentError: when there is no network of that name, no package reads the format, or the file has changed since the
            first call.

    Example:
        >>> predictor = Predictor(NetworkFile("digits.onnx"))  # doctest: +SKIP
    """

    def __init__(self, path: str | Path, *, name: str | None = None, dimensions: Mapping[str, int] | None = None) -> None:
        self._path, self._name = Path(path), name
        self._settings: dict[str, Any] = {"dimensions": dict(dimensions)} if dimensions else {}
        self._read = find_extension("file_formats", self._path.suffix.lower(), "read_network")
        self._state: tuple[int, int, int] | None = None

    def again(self) -> "NetworkFile":
        """Return a builder that reads the file as it is now."""
        return NetworkFile(self._path, name=self._name, dimensions=self._settings.get("dimensions"))

    def __call__(self, n_samples: int) -> Graph:
        """Return the network for a number of samples."""
        before = self._file_state()
        with nn.parameter_scope("", {}):
            loaded = self._read(self._path, batch_size=n_samples, **self._settings)
        if before != self._file_state():
            raise ArgumentError(f"serve: {self._path} must stay as it is while it is read, got another one")
        network = self._chosen(loaded)
        dtypes = getattr(network, "dtypes", {})
        return Graph(dict(network.inputs), dict(network.outputs), dict(network.parameters), dict(dtypes))

    def _file_state(self) -> tuple[int, int, int]:
        """Return what changes when a file is written or replaced; all graphs must come from one state."""
        found = self._path.stat()
        state = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._state is None:
            self._state = state
        if self._state != state:
            raise ArgumentError(f"serve: {self._path} must stay as it is while it is read, got another one")
        return state

    def _chosen(self, loaded: Any) -> Any:
        networks: Mapping[str, BuiltNetwork] | None = getattr(loaded, "networks", None)
        if networks is None:
            return loaded
        if not networks or (self._name is not None and self._name not in networks):
            raise ArgumentError(f"serve: --name must be one of {list(networks)}, got {self._name!r}")
        return networks[self._name] if self._name is not None else next(iter(networks.values()))
