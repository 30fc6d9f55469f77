"""Models as modules: networks that are called with Variables of any shape that the model allows."""

import os
from typing import Any, Final

import onnx

import nn_core as nn
from nn_core.ext import ArgumentError, ShapeError, naming_file
from nn_ext_onnx.importing.models import Loader, read_model

_N_SHOWN: Final = 8


class OnnxModule(nn.Module):
    """A model as a module: a call builds its graph for the inputs that it gets, and all graphs read the same parameters.

    The parameters have the names of the model, and are made by the first call. Dropout is off, batch normalization uses the
    statistics of the model, where the model says so.

    Args:
        source: a path, the bytes of a file, or a model.

    Raises:
        FileFormatError: when the file is damaged.
        ArgumentError: by a call, when it has not the inputs of the model, or the model cannot be built for them.
        ShapeError: by a call, when an input has another shape than the model allows.

    Example:
        >>> from onnx import parser
        >>> text = '''<ir_version: 8, opset_import: ["": 17]> g (float[N, 2] x) => (float[N, 3] y)
        ... <float[2, 3] w = {1, 2, 3, 4, 5, 6}> { y = MatMul(x, w) }'''
        >>> net = OnnxModule(parser.parse_model(text))
        >>> net(nn.Variable((4, 2))).shape, net(nn.Variable((1, 2))).shape
        ((4, 3), (1, 3))
        >>> list(net.get_parameters())
        ['w']
        >>> nn.predict(net, [[1.0, 0.0]]).tolist()
        [[1.0, 2.0, 3.0]]
    """

    def __init__(self, source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> None:
        with naming_file(source):
            self._loader = Loader(*read_model(source))
        constants = {tensor.name for tensor in self._loader.graph.initializer}
        self.inputs = {entry.name: entry for entry in self._loader.graph.input if entry.name not in constants}
        self.outputs = [entry.name for entry in self._loader.graph.output]

    def call(self, *args: nn.Variable, **kwargs: nn.Variable) -> Any:
        """Return the output, or a tuple where the model has several; inputs in the order of the model, or by name."""
        given = dict(zip(self.inputs, args, strict=False)) | kwargs
        if len(args) + len(kwargs) != len(given) or given.keys() != self.inputs.keys():
            got = f"{len(args)} and {list(kwargs)}" if kwargs else len(args)
            raise ArgumentError(f"{self._title()}: the inputs must be {list(self.inputs)}, got {got}")
        for name, value in given.items():
            self._require_fit(name, value)
        shapes = {name: value.shape for name, value in given.items()}
        kept = self.get_parameters(grad_only=False)
        network = self._loader.load({}, shapes, {}, {**kept, **given})
        for name in network.parameters.keys() - kept.keys():
            nn.parameter.set_parameter(name, network.parameters[name])
        if network.structures:
            raise ArgumentError(f"{self._title()}: outputs must be tensors, got others under {sorted(network.structures)}")
        outputs = tuple(network.outputs[name] for name in self.outputs)
        if nn.get_auto_forward():  # the graph was built without, since most of it needs no numbers
            nn.forward_all(outputs)
        return outputs if len(outputs) > 1 else outputs[0]

    def _require_fit(self, name: str, value: Any) -> None:
        if not isinstance(value, nn.Variable):
            hint = "\n  hint: nn_core.predict(net, array) computes arrays"
            raise ArgumentError(f"{self._title()}: {name} must be a Variable, got {type(value).__name__}{hint}")
        kind = self.inputs[name].type.tensor_type
        if not kind.HasField("shape"):
            return
        axes = kind.shape.dim
        fits = len(axes) == value.ndim and all(
            not axis.HasField("dim_value") or axis.dim_value == length for axis, length in zip(axes, value.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join(str(axis.dim_value) if axis.HasField("dim_value") else axis.dim_param or "?" for axis in axes)
            raise ShapeError(f"{self._title()}: {name} must have shape ({wanted}), got {value.shape}")

    def _title(self) -> str:
        return self._loader.graph.name or type(self).__name__
