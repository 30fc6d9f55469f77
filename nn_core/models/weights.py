"""Files of weights: where they are looked for, and how their names and layouts fit the parameters of a model."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError, MissingFileError, ShapeError
from nn_core.files import read_entries
from nn_core.io.foreign import converted
from nn_core.io.pytorch import PYTORCH
from nn_core.models.utils import get_model_home, get_model_url_base_from_env
from nn_core.settings import is_nnabla_program, settings
from nn_core.utils.download import download
from nn_core.variable import Variable

#: The value of `weights` that stands for the file of the network in the folder of models.
PRETRAINED: Final = "pretrained"
#: Type of the argument `weights`.
Weights = str | os.PathLike[str] | None
#: Formats of that file; the first that is there counts.
_SUFFIXES: Final = (".nnp", ".safetensors", ".h5", ".npz")
_NETWORK_SUFFIXES: Final = (".nnp", ".nntxt", ".prototxt", ".protobuf")
#: Patterns of the names of models, and what NNabla calls their files; the other names are the same.
_NAMES_OF_NNABLA: Final = {
    "DeepLabV3plus_(.+)_(8|16)": r"DeepLabV3-\1-os-\2",
    "DenseNet": "DenseNet-161",
    "InceptionV3": "Inception-v3",
    "MobileNetV2": "MobileNet-v2",
    "ResNeXt(50|101)": r"ResNeXt-\1",
    "ResNet([0-9]+)": r"Resnet-\1",
    "SENet": "SENet-154",
    "ShuffleNet10": "ShuffleNet",
    "ShuffleNet([02])([05])": r"ShuffleNet-\1.\2x",
    "SqueezeNetV1([01])": r"SqueezeNet-1.\1",
    "VGG(11|13|16)": r"VGG-\1",
    "YoloV2_(.+)": r"yolov2-\1",
}


def is_network(path: Path) -> bool:
    """Return whether a file holds a network, and not parameters alone."""
    return path.suffix.lower() in _NETWORK_SUFFIXES


def weights_file(model: str, task: str, weights: Weights) -> Path | None:
    """Return the path that `weights` stands for; None: random initial values.

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
    names = [f"{model}{suffix}" for suffix in _SUFFIXES]
    if is_nnabla_program():
        names.append(f"{_name_in_nnabla(model)}.nnp")
    present = next((folder / name for name in names if (folder / name).is_file()), None)
    return present or _fetched(model, folder, names)


def _fetched(model: str, folder: Path, names: Sequence[str]) -> Path:
    """Fetch the file of weights from the address of models, as ours or NNabla's are laid out there."""
    base = get_model_url_base_from_env()
    if base is None:
        raise MissingFileError(
            f"{model}: weights must be in {folder} as {model} with one of {', '.join(_SUFFIXES)}, got no such file\n"
            f"  hint: {model}(weights=path) reads another file, also a state dict of PyTorch as safetensors;\n"
            f"  {model}(weights=None) starts from random values",
            str(folder / names[0]),
        )
    is_ours = settings().models_url_base is not None
    path = folder / names[0 if is_ours else -1]
    parent = f"{folder.name}/{path.stem}" if folder.name == "imagenet" and not is_ours else folder.name
    download(f"{base}{parent}/{path.name}", path, open_file=False)
    return path


def _name_in_nnabla(model: str) -> str:
    """Return the name of the file of weights that NNabla fetches for a model, without its suffix."""
    for pattern, name in _NAMES_OF_NNABLA.items():
        if found := re.fullmatch(pattern, model):
            return found.expand(name)
    return model


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
        """Return the values of the file for parameters, by name.

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
