"""Weights of PyTorch."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from nn_core.engine.error_messages.refusal import door
from nn_core.engine.graph.parameter_sources import ParameterSource
from nn_core.files import PathOrFile
from nn_core.io.foreign import Layout, Values, load_foreign
from nn_core.io.parameters import LoadReport
from nn_core.typing import Shape

#: Places of the gates i, o, f, g of `lstm_cell` among PyTorch's, i, f, g, o.
_CELL_GATES: Final = (0, 3, 1, 2)


@door
def load_pytorch_parameters(
    path: PathOrFile,
    layers: Mapping[str, str] | None = None,
    parameters: ParameterSource | None = None,
    conv1d: bool = False,
) -> LoadReport:
    """Take the weights of layers from a file of PyTorch: safetensors, or what ``torch.save`` wrote.

    Affine weights are transposed, as PyTorch stores (outputs, inputs); statistics and scales of normalizations and
    depthwise kernels are reshaped; the two weights of a recurrent layer become one, and so do its biases, with the gates in
    our order; everything else has one layout. When anything is wrong, all parameters stay as they are.

    Args:
        path: The file: ``safetensors.torch.save_file(model.state_dict(), path)``, or a binary file of this format that is open
            for reading; or, with the extension .pth, .pt, .ckpt or .bin, ``torch.save(model.state_dict(), path)`` of PyTorch
            1.6 and later, of a checkpoint its ``state_dict`` or ``model``. Nothing in the pickle of such a file is called.
        layers: For each layer of the file the scope of the layer here: ``{"features.0": "conv1", "classifier": "fc"}``,
            or, for a tensor that is no part of a layer, the name of its parameter. Affine layers, convolutions of any kind,
            embeddings, normalizations, PReLU, RNN, LSTM and GRU can be loaded. None: all parameters, which are in scopes of
            the same names with slashes for dots: "layer1.0.conv1" is the scope ``layer1/0/conv1``.
        parameters: The parameters by name, a module that was called, or the name of a scope; None: all of the current scope.
        conv1d: The file has affine weights as (inputs, outputs), as the Conv1D layers of GPT-2 do.

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
    layout = PYTORCH if not conv1d else replace(PYTORCH, converted=_as_stored)
    return load_foreign("load_pytorch_parameters", path, layers, parameters, layout)


def _in_our_axes(kind: str, key: str, values: Values, shape: Shape) -> Values:
    return values.T if (kind, key) == ("affine", "W") else values


def _as_stored(kind: str, key: str, values: Values, shape: Shape) -> Values:
    return values


def _recurrent(read: Callable[[str], Values], key: str, shape: Shape) -> Values:
    """RNN, LSTM and GRU: ``weight_ih_l0`` and ``weight_hh_l0`` are columns of one weight; PyTorch's order of gates is ours."""
    if key == "bias":
        return np.stack([[_bias(read, f"l{n}{d}", shape[2:]) for d in _directions(shape[1])] for n in range(shape[0])])
    if key == "weight_l0":
        return np.stack([_weight(read, f"l0{d}", shape[1:]) for d in _directions(shape[0])])
    return np.stack([[_weight(read, f"l{n + 1}{d}", shape[2:]) for d in _directions(shape[1])] for n in range(shape[0])])


def _directions(n: int) -> tuple[str, ...]:
    return ("", "_reverse")[:n]


def _weight(read: Callable[[str], Values], layer: str, shape: Shape) -> Values:
    """Shape (gates, H, I + H), or (H, I + H) where there are no gates."""
    joined = np.concatenate([read(f"weight_ih_{layer}"), read(f"weight_hh_{layer}")], axis=1)
    return joined.reshape(*shape[:-1], -1)


def _bias(read: Callable[[str], Values], layer: str, shape: Shape) -> Values:
    """Shape (gates, H); a GRU has four: the two of its candidate stay apart."""
    of_x, of_h = (read(f"bias_{part}_{layer}").reshape(-1, shape[-1]) for part in ("ih", "hh"))
    if len(of_x) == 3:
        return np.concatenate([of_x[:2] + of_h[:2], of_x[2:], of_h[2:]])
    return (of_x + of_h).reshape(shape)


def _cell(read: Callable[[str], Values], key: str, shape: Shape) -> Values:
    """LSTMCell: shape (I + H, 4, H) of W, (4, H) of b."""
    n_hidden = shape[-1]
    if key == "b":
        values = (read("bias_ih") + read("bias_hh")).reshape(4, n_hidden)
        return values[list(_CELL_GATES)]
    joined = np.concatenate([read("weight_ih"), read("weight_hh")], axis=1)
    return joined.reshape(4, n_hidden, -1)[list(_CELL_GATES)].transpose(2, 0, 1)


#: "in_proj_weight" is how MultiheadAttention calls the weight of the layer "in_proj".
PYTORCH: Final = Layout(
    names={
        "W": (".weight", "_weight"),
        "b": (".bias", "_bias"),
        "gamma": (".weight",),
        "beta": (".bias",),
        "mean": (".running_mean",),
        "var": (".running_var",),
        "slope": (".weight",),
    },
    converted=_in_our_axes,
    recurrent={"rnn": _recurrent, "lstm": _recurrent, "gru": _recurrent, "lstm_cell": _cell},
    separator=".",
    ignored=("num_batches_tracked",),
)
