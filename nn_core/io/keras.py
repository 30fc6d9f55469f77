"""Weights of Keras."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from nn_core.engine.error_messages.refusal import door
from nn_core.engine.graph.parameter_sources import ParameterSource
from nn_core.errors import ArgumentError, ShapeError
from nn_core.files import PathOrFile
from nn_core.io.foreign import Layout, Values, load_foreign
from nn_core.io.parameters import LoadReport
from nn_core.typing import Shape

#: Places of the gates i, o, f, g of `lstm_cell` among those of Keras, i, f, c, o; and of r, z, n of `gru` among z, r, h.
_CELL_GATES: Final = (0, 3, 1, 2)
_GRU_GATES: Final = (1, 0, 2)


@door
def load_keras_parameters(
    path: PathOrFile, layers: Mapping[str, str] | None = None, parameters: ParameterSource | None = None
) -> LoadReport:
    """Take the weights of layers from a file that holds the variables of a Keras model by their paths.

    Kernels of convolutions are transposed from (*spatial, in, out); kernels and recurrent kernels become one weight, with the
    gates in our order; statistics and scales of normalizations are reshaped. A dense layer behind ``Flatten`` sees images of
    Keras in the order (H, W, C): transpose the image before it is flattened here, ``F.transpose(x, (0, 2, 3, 1))``. When
    anything is wrong, all parameters stay as they are.

    Args:
        path: The file, or a binary file open for reading:
            ``safetensors.numpy.save_file({w.path: w.numpy() for w in model.weights}, path)``.
        layers: For each layer of the file the scope of the layer here: ``{"dense": "fc"}``. Dense layers, convolutions
            (not separable ones), embeddings, normalizations, PReLU, SimpleRNN, LSTM, and GRU with ``reset_after`` can be
            loaded, recurrent ones with one layer and one direction. None: the names of scopes are those of layers.
        parameters: The parameters by name, a module that was called, or the name of a scope; None: all of the current scope.

    Returns:
        Which parameters were loaded, which have no layer in the file, and which tensors of the file were left out.

    Raises:
        ArgumentError: when a scope has no parameters, the file lacks the tensor of one, or a layer has no counterpart.
        ShapeError: when a tensor has another shape than its parameter.
        FileFormatError: when the file is damaged or of another format.

    Example:
        >>> import io
        >>> from nn_core.io import load_keras_parameters
        >>> file = io.BytesIO()  # in place of a file with the variables of a Keras model
        >>> tensors = {"dense/kernel": nn.Variable((4, 3)), "dense/bias": nn.Variable((3,))}
        >>> nn.save_parameters(file, tensors, extension=".safetensors")
        >>> y = PF.affine(nn.Variable((8, 4)), 3, name="output")
        >>> print(load_keras_parameters(io.BytesIO(file.getvalue()), {"dense": "output"}))
        2 loaded
    """
    return load_foreign("load_keras_parameters", path, layers, parameters, KERAS)


def _in_our_axes(kind: str, key: str, values: Values, shape: Shape) -> Values:
    if key != "W" or kind not in ("conv", "deconv", "depthwise_conv", "depthwise_deconv"):
        return values
    spatial = range(values.ndim - 2)
    if kind.startswith("depthwise"):  # (*spatial, channels, multiplier) to (channels * multiplier, *spatial)
        return values.transpose(-2, -1, *spatial).reshape(shape[0], *values.shape[:-2])
    return values.transpose(-1, -2, *spatial)


def _recurrent(read: Callable[[str], Values], key: str, shape: Shape) -> Values:
    """SimpleRNN and LSTM: kernels of shape (I, gates * H) and (H, gates * H), in our order of gates."""
    _require_single(key, shape)
    if key == "bias":
        return read("bias").reshape(shape)
    return _gates(read, shape[-2]).reshape(*shape[:-1], -1)


def _gru(read: Callable[[str], Values], key: str, shape: Shape) -> Values:
    _require_single(key, shape)
    if key == "weight_l0":
        return _gates(read, shape[-2])[None, list(_GRU_GATES)]
    biases = read("bias")
    if biases.ndim != 2:
        raise ArgumentError("load_keras_parameters: GRU must have reset_after=True, with two biases a gate, got one")
    of_x, of_h = biases.reshape(2, 3, -1)[:, list(_GRU_GATES)]
    return np.concatenate([of_x[:2] + of_h[:2], of_x[2:], of_h[2:]])[None, None]


def _cell(read: Callable[[str], Values], key: str, shape: Shape) -> Values:
    if key == "b":
        return read("bias").reshape(4, -1)[list(_CELL_GATES)]
    return _gates(read, shape[-1])[list(_CELL_GATES)].transpose(2, 0, 1)


def _gates(read: Callable[[str], Values], n_hidden: int) -> Values:
    """Shape (gates, H, I + H)."""
    kernels = np.concatenate([read("kernel"), read("recurrent_kernel")])
    if kernels.shape[1] % n_hidden:
        raise ShapeError(f"load_keras_parameters: the gates must have {n_hidden} outputs each, got {kernels.shape[1]} in all")
    return kernels.reshape(len(kernels), -1, n_hidden).transpose(1, 2, 0)


def _require_single(key: str, shape: Shape) -> None:
    if key == "weight" or (key == "bias" and shape[:2] != (1, 1)) or (key == "weight_l0" and shape[0] != 1):
        raise ArgumentError(
            "load_keras_parameters: recurrent layers must have one layer and one direction each, got several of them\n"
            "  hint: build them as layers of their own, as Keras has them"
        )


def _endings(*names: str) -> tuple[str, ...]:
    """With the ``:0`` that paths of older versions have at the end."""
    return tuple(f"/{name}{end}" for name in names for end in ("", ":0"))


KERAS: Final = Layout(
    names={
        "W": _endings("kernel", "depthwise_kernel", "embeddings"),
        "b": _endings("bias"),
        "gamma": _endings("gamma"),
        "beta": _endings("beta"),
        "mean": _endings("moving_mean"),
        "var": _endings("moving_variance"),
        "slope": _endings("alpha"),
    },
    converted=_in_our_axes,
    recurrent={"rnn": _recurrent, "lstm": _recurrent, "gru": _gru, "lstm_cell": _cell},
    separator="/",
    cells={"rnn": "simple_rnn_cell", "lstm": "lstm_cell", "gru": "gru_cell"},
    cell_endings=("", ":0"),
)
