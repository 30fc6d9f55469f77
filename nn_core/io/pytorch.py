"""Weights of PyTorch: tensors of a safetensors file under the names and in the layouts of nn_core's layers."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nn_core.errors import ArgumentError, ShapeError
from nn_core.files import PathOrFile, extension_of, read_entries
from nn_core.io.parameters import LoadReport
from nn_core.messages.refusal import door
from nn_core.parametric_functions.scope import get_parameters
from nn_core.typing import Shape
from nn_core.variable import Variable

#: The name that PyTorch gives to the parameter that a layer of nn_core calls by the key.
_NAMES: Final[Mapping[str, str]] = {
    "W": "weight",
    "b": "bias",
    "gamma": "weight",
    "beta": "bias",
    "mean": "running_mean",
    "var": "running_var",
    "slope": "weight",
}
#: Tensors without a counterpart.
_IGNORED: Final = ("num_batches_tracked",)


@door
def load_pytorch_parameters(
    path: PathOrFile, layers: Mapping[str, str], parameters: Mapping[str, Variable] | None = None
) -> LoadReport:
    """Take the weights of layers from a safetensors file that PyTorch's users write.

    Affine weights are transposed, as PyTorch stores (outputs, inputs); statistics and scales of normalizations and
    depthwise kernels are reshaped; everything else has one layout. When anything is wrong, all parameters stay as they are.

    Args:
        path: The file, or a binary file open for reading: ``safetensors.torch.save_file(model.state_dict(), path)``.
        layers: For each layer of the file the scope of the layer here: ``{"features.0": "conv1", "classifier": "fc"}``.
            Affine layers, convolutions of any kind, embeddings, normalizations and PReLU can be loaded.
        parameters: The parameters by name, as a network that was built or a Module has them; None: all of the current scope.

    Returns:
        Which parameters were loaded, which have no layer in the file, and which tensors of the file were left out.

    Raises:
        ArgumentError: when a scope has no parameters, or the file lacks the tensor of one.
        ShapeError: when a tensor has another shape than its parameter.
        FileFormatError: when the file is damaged or of another format.

    Example:
        >>> import io
        >>> from nn_core.io import load_pytorch_parameters
        >>> file = io.BytesIO()  # in place of a file that PyTorch wrote
        >>> tensors = {"fc.weight": nn.Variable((3, 4)), "fc.bias": nn.Variable((3,))}
        >>> nn.save_parameters(file, tensors, extension=".safetensors")
        >>> y = PF.affine(nn.Variable((8, 4)), 3, name="output")
        >>> print(load_pytorch_parameters(io.BytesIO(file.getvalue()), {"fc": "output"}))
        2 loaded
    """
    is_path = not hasattr(path, "read")
    entries = read_entries(path, extension_of("load_pytorch_parameters", path, None if is_path else ".safetensors"))
    own = get_parameters(grad_only=False) if parameters is None else parameters
    values: dict[str, np.ndarray[Any, Any]] = {}
    used: set[str] = set()
    for layer, scope in layers.items():
        for name in _names_in(scope, own):
            tensor = f"{layer}.{_NAMES.get(name.rpartition('/')[2], '?')}"
            if tensor not in entries:
                raise ArgumentError(
                    f"load_pytorch_parameters: the file must have {tensor!r} for the parameter {name!r}, got none"
                )
            values[name] = _fitted(name, own[name].shape, tensor, np.asarray(entries[tensor].values))
            used.add(tensor)
    for name, array in values.items():
        own[name].d = array
    missing = tuple(name for name in own if name not in values)
    unexpected = tuple(name for name in entries if name not in used and not name.endswith(_IGNORED))
    return LoadReport(loaded=tuple(values), missing=missing, unexpected=unexpected)


def _names_in(scope: str, own: Mapping[str, Variable]) -> list[str]:
    names = [name for name in own if name.startswith(f"{scope}/")]
    if not names:
        known = ", ".join(sorted({name.rpartition("/")[0] for name in own})) or "no parameters at all"
        raise ArgumentError(f"load_pytorch_parameters: layers must name scopes with parameters, got {scope!r} among {known}")
    return names


def _fitted(name: str, shape: Shape, tensor: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values in the layout of the parameter called `name`."""
    layer, _, parameter = name.rpartition("/")
    if parameter == "W" and layer.rpartition("/")[2] == "affine":
        values = values.T
    elif _long(values.shape) == _long(shape):  # (C,) is (1, C, 1, 1) here; (C, 1, 3, 3) is (C, 3, 3) in depthwise kernels
        values = values.reshape(shape)
    if values.shape != shape:
        raise ShapeError(f"load_pytorch_parameters: {tensor!r} must fit {name!r} of shape {shape}, got {values.shape}")
    return values


def _long(shape: Shape) -> Shape:
    return tuple(length for length in shape if length != 1)
