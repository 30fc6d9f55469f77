"""Files of weights: where they are looked for, and how their names and layouts fit the parameters of a model."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.errors import ArgumentError, MissingFileError, ShapeError
from nn_core.files import read_entries
from nn_core.io.foreign import converted
from nn_core.io.pytorch import PYTORCH
from nn_core.messages.refusal import described
from nn_core.models.utils import get_model_home, get_model_url_base_from_env
from nn_core.utils.download import download
from nn_core.variable import Variable

#: The value of `weights` that stands for the file of the network in the folder of models.
PRETRAINED: Final = "pretrained"
#: Type of the argument `weights`.
Weights = str | os.PathLike[str] | None
#: Formats of that file; the first that is there counts.
_SUFFIXES: Final = (".nnp", ".safetensors", ".h5", ".npz")
_NETWORK_SUFFIXES: Final = (".nnp", ".nntxt", ".prototxt", ".protobuf")


def is_network(path: Path) -> bool:
    """Whether a file holds a network, and not parameters alone."""
    return path.suffix.lower() in _NETWORK_SUFFIXES


def weights_file(model: str, task: str, weights: Weights) -> Path | None:
    """The path that `weights` stands for; None: random initial values.

    Raises:
        MissingFileError: when there is no such file.
    """
    if weights is None:
        return None
    if not isinstance(weights, (str, os.PathLike)):
        raise ArgumentError(f"{model}: weights must be {PRETRAINED!r}, a path or None, got {described(weights)}")
    if weights != PRETRAINED:
        path = Path(weights)
        if not path.is_file():
            raise MissingFileError(f"{model}: the file of weights must exist, got no {path}", str(path))
        return path
    folder = Path(get_model_home()) / task
    for suffix in _SUFFIXES:
        if (folder / f"{model}{suffix}").is_file():
            return folder / f"{model}{suffix}"
    base = get_model_url_base_from_env()
    path = folder / f"{model}.nnp"
    if base is None:
        raise MissingFileError(
            f"{model}: weights must be in {folder} as {model} with one of {', '.join(_SUFFIXES)}, got no such file\n"
            f"  hint: {model}(weights=path) reads another file, also a state dict of PyTorch as safetensors;\n"
            f"  {model}(weights=None) starts from random values",
            str(path),
        )
    download(f"{base}{task}/{model}.nnp", path, open_file=False)
    return path


class WeightFile:
    """Values of parameters from a file that `save_parameters` wrote, or a state dict of PyTorch.

    Args:
        model: Name of the model, for messages; the names of the file may begin with it.
        path: Of the file: .h5, .npz or .safetensors.

    Raises:
        FileFormatError: when the file is damaged or of another format.
    """

    def __init__(self, model: str, path: Path) -> None:
        self._model = model
        self._path = path
        entries = read_entries(path, path.suffix.lower())
        self._is_pytorch = bool(entries) and not any("/" in name for name in entries)
        self._entries = {name.removeprefix(f"{model}/"): entry for name, entry in entries.items()}

    def values_for(self, parameters: Mapping[str, Variable]) -> dict[str, np.ndarray[Any, Any]]:
        """The values of the file for parameters, by name.

        Raises:
            ArgumentError: when it lacks one.
            ShapeError: when one has another shape.
        """
        if self._is_pytorch:
            return converted(self._model, self._entries, None, parameters, PYTORCH).values
        values = {}
        for name, parameter in parameters.items():
            if name not in self._entries:
                raise ArgumentError(f"{self._model}: {self._path.name} must have the parameter {name!r}, got none")
            values[name] = np.asarray(self._entries[name].values)
            if values[name].shape != parameter.shape:
                raise ShapeError(
                    f"{self._model}: {name!r} of {self._path.name} must have the shape {parameter.shape}, "
                    f"got {values[name].shape}"
                )
        return values
