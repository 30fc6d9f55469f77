"""The standard interface of ONNX to backends: ``prepare``, ``run_model``, ``supports_device``."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

import nn_core as nn
from nn_core.ext import ArgumentError, NNCoreError
from nn_ext_onnx.importing.models import Loader, Network, read_model
from nn_ext_onnx.importing.sequences import equal
from nn_ext_onnx.importing.values import held

#: Graphs of a model that are kept, for the shapes and settings that came last.
_KEPT: Final = 8


class PreparedModel(BackendRep):
    """A model that runs on arrays; a graph is built for each set of shapes and settings that it gets."""

    def __init__(self, source: Any) -> None:
        model, base = read_model(source)
        self.loader = Loader(model, base)
        constants = {tensor.name for tensor in model.graph.initializer}
        types = {entry.name: entry.type for entry in model.graph.input if entry.name not in constants}
        self.names = list(types)
        self.structured = {name for name, given in types.items() if given.WhichOneof("value") != "tensor_type"}
        self.results = [e.name for e in model.graph.output]  # which may name one more than once
        self.networks: list[Network] = []

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the outputs for arrays in the order of the model's inputs, or by name."""
        arrays = self._arrays(inputs)
        network = self._network(arrays)
        for name, variable in network.inputs.items():
            variable.d = _computed(arrays[name])
        outputs = {**network.outputs, **network.structures}
        _compute([output for output in _variables(outputs) if output.parent is not None])
        return tuple(_result(outputs[name], network.dtypes[name]) for name in self.results)

    def _arrays(self, inputs: Any) -> dict[str, Any]:
        given = dict(inputs) if isinstance(inputs, dict) else dict(zip(self.names, _listed(inputs), strict=False))
        numbers = {name: value for name, value in given.items() if name not in self.structured}
        wrong = [name for name, value in numbers.items() if isinstance(value, (list, dict)) or value is None]
        if wrong or len(given) < len(self.names):
            raise ArgumentError(f"run: inputs must be an array for each of {self.names}, got {wrong or list(given)}")
        return {name: np.asarray(value) if name in numbers else value for name, value in given.items()}

    def _network(self, arrays: dict[str, Any]) -> Network:
        for network in self.networks:
            if _fits(network, arrays):
                return network
        made = self.loader.load({}, {}, arrays)
        self.networks = [made, *self.networks][:_KEPT]
        return made


def _variables(outputs: Any) -> list[nn.Variable]:
    """Return the variables in a dictionary or nested lists of outputs."""
    if isinstance(outputs, nn.Variable):
        return [outputs]
    parts = outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, list) else ()
    return [variable for part in parts for variable in _variables(part)]


def _result(output: Any, dtype: np.dtype[Any]) -> Any:
    """Return an output as arrays, in nested lists as sequences are."""
    if isinstance(output, list):
        return [_result(item, dtype) for item in output]
    return np.asarray(output.d).astype(dtype) if isinstance(output, nn.Variable) else output


def _compute(outputs: Sequence[nn.Variable]) -> None:
    for output in outputs:
        output.persistent = True
    nn.forward_all(outputs, clear_buffer=True)  # a sink would be a new graph, and need a new plan, in each run


def _fits(network: Network, arrays: dict[str, Any]) -> bool:
    shapes = all(variable.shape == arrays[name].shape for name, variable in network.inputs.items())
    return shapes and all(equal(array, arrays[name]) for name, array in network.bound.items())


def _listed(inputs: Any) -> Sequence[Any]:
    return inputs if isinstance(inputs, (list, tuple)) else [inputs]


def _computed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = held(array)
    return array if array.dtype.kind in "iu" or array.dtype == np.float64 else array.astype(np.float32)


class NnCoreBackend(Backend):
    """Runs models on nn_core, in the current context."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto | bytes | str, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Return a model, its bytes or its path, ready to run.

        Raises:
            ArgumentError: when it cannot be built.
        """
        return PreparedModel(model)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Return the outputs of a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Devices are chosen by contexts of nn_core; the name that ONNX uses for the current one is "CPU"."""
        return device == "CPU"

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return whether the graph can be built from the shapes that the model gives."""
        try:
            Loader(model).load({}, {}, {})
        except NNCoreError:
            return False
        return True


prepare = NnCoreBackend.prepare
run_model = NnCoreBackend.run_model
supports_device = NnCoreBackend.supports_device
is_compatible = NnCoreBackend.is_compatible
