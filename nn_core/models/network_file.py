"""Models that are read as networks from .nnp files; needs the package nn-ext-nnp."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from nn_core.errors import ArgumentError
from nn_core.files.network_package import network_part
from nn_core.function import Function
from nn_core.parametric_functions.scope import Scope, parameter_scope
from nn_core.variable import Variable

_ACTIVATIONS: Final = ("ReLU", "ReLU6", "LeakyReLU")
_POOLINGS: Final = ("AveragePooling", "GlobalAveragePooling", "MaxPooling")
_PROBABILITIES: Final = ("Softmax", "LogSoftmax")
#: Names that NNabla gives to the networks of its models.
_NAMES: Final = ("Training", "runtime")


class NetworkFile:
    """The network of a file, and the places in it that belong to the keys of a classifier.

    The places follow from the structure of the network: "classifier" is the result before a softmax, "pool" and "prepool" are
    behind and before the last pooling, "lastconv+relu" is the same as "prepool", "lastconv" is before the activation there,
    and "lastfeature" is the result of the last affine layer but one. Where no pooling is behind the last convolution, its
    result is "convdetect", and "lastconv" is what it reads. Where the network ends with an interpolation, that is
    "segmentation", the last convolution reads "lastconv+relu", and "lastconv" is before the activation there.

    Args:
        model: Name of the model, for messages.
        path: Of the file. It has one network, or one called "Training" or "runtime".
        scope: Dictionary for the parameters.

    Raises:
        ArgumentError: when the file has several networks, or another input than images.
        BackendNotFoundError: when nn-ext-nnp is not installed.
        FileFormatError: when the file is damaged.
    """

    def __init__(self, model: str, path: Path, scope: Scope) -> None:
        self._model = model
        self._file = path.name
        self._scope = scope
        self._loader = network_part("nnp_graph", "NnpLoader")(str(path), scope)
        names = self._loader.get_network_names()
        chosen = names if len(names) == 1 else [name for name in names if name in _NAMES]
        if len(chosen) != 1:
            raise ArgumentError(f"{model}: {self._file} must have one network, or one called {_NAMES[0]}, got {names}")
        self._name = chosen[0]

    def variable_name(self, key: str) -> str:
        """Return the name that the variable of a key has in the file.

        Raises:
            ArgumentError: when the network has no such place.
        """
        network = self._plain()
        place = self._place(network, key)
        return next(name for name, variable in network.variables.items() if variable == place or variable is place)

    def build(self, x: Variable, key: str, training: bool, force: bool, check: bool) -> dict[str, Variable]:
        """Build the network on `x` up to a key; the result is by that key.

        Args:
            x: The input.
            key: Of the result.
            training: Normalize by the batch and train all parameters; if not, all are fixed.
            force: Let the last average pooling take the mean of images of any size.
            check: Refuse images of another size than that of the file, unless `force` is set.
        """
        plain = self._plain()
        name, expected = self._input(plain)
        if check and not force and x.shape[2:] != expected.shape[2:]:
            raise ArgumentError(
                f"{self._model}: images must have the size {expected.shape[2:]}, got {x.shape[2:]}\n"
                "  hint: classifiers take the mean of images of any size with force_global_pooling=True"
            )
        change = network_part("nnp_graph", "NnpNetworkPass")()
        change.set_variable(name, x)
        change.set_batch_normalization_batch_stat_all(training)
        if not training:
            change.fix_parameters()
        poolings = _of_types(_functions(plain), _POOLINGS) if force else []
        if poolings and poolings[-1].info.type_name == "AveragePooling":
            change.force_average_pooling_global(self._function_name(self.variable_name("pool")))
        change.use_up_to(self.variable_name(key))
        network = self._get(x.shape[0], change)
        (output,) = network.outputs.values()
        return {key: output}

    def _plain(self) -> Any:
        return self._get(None, None)

    def _get(self, batch_size: int | None, callback: Any) -> Any:
        with parameter_scope("", self._scope):
            return self._loader.get_network(self._name, batch_size, callback)

    def _input(self, network: Any) -> tuple[str, Variable]:
        inputs = list(network.inputs.items())
        if len(inputs) != 1 or inputs[0][1].ndim != 4:
            raise ArgumentError(f"{self._model}: {self._file} must have images as its only input, got {list(network.inputs)}")
        name, variable = inputs[0]
        return name, variable

    def _function_name(self, output: str) -> str:
        """Return the name of the function that computes the variable called `output`."""
        found: list[str] = []

        def look(function: Any, variables: Any, scope: Any) -> None:
            if any(variable.name == output for variable in function.results):
                found.append(function.name)

        search = network_part("nnp_graph", "NnpNetworkPass")()
        search.on_function_pass_by_type("AveragePooling")(look)
        self._get(None, search)
        return found[0]

    def _place(self, network: Any, key: str) -> Variable:
        place = self._places(network).get(key)
        if place is None:
            raise ArgumentError(f"{self._model}: the network of {self._file} must have a place for {key!r}, got none")
        return place

    def _places(self, network: Any) -> dict[str, Variable]:
        functions = _functions(network)
        last = functions[-1]
        places = {"classifier": last.inputs[0] if last.info.type_name in _PROBABILITIES else last.outputs[0]}
        places["detection"] = last.outputs[0]
        affines = _of_types(functions, ("Affine",))
        if len(affines) > 1:
            places["lastfeature"] = affines[-2].outputs[0]
        ends = _of_types(functions, ("Convolution", *_POOLINGS))
        if not ends:
            return places
        if last.info.type_name == "Interpolate":
            convolution = _of_types(functions, ("Convolution",))[-1]
            return places | {"segmentation": last.outputs[0]} | _places_of_features(convolution.inputs[0])
        if ends[-1].info.type_name == "Convolution":
            return places | {"convdetect": ends[-1].outputs[0], "lastconv": ends[-1].inputs[0]}
        return places | {"pool": ends[-1].outputs[0], "prepool": ends[-1].inputs[0]} | _places_of_features(ends[-1].inputs[0])


def _places_of_features(features: Variable) -> dict[str, Variable]:
    """Return the values of the keys before and behind the last activation."""
    places = {"lastconv+relu": features}
    if features.parent is not None and features.parent.info.type_name in _ACTIVATIONS:
        places["lastconv"] = features.parent.inputs[0]
    return places


def _of_types(functions: Sequence[Function], types: Collection[str]) -> list[Function]:
    return [function for function in functions if function.info.type_name in types]


def _functions(network: Any) -> list[Function]:
    """Return the functions of the first result, in an order in which they can run."""
    found: list[Function] = []
    next(iter(network.outputs.values())).visit(found.append)
    return found
