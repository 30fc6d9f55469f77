"""Base of all networks of this package: weights from a file, parts of a network by key, the parameters of a model."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from nn_core.engine.error_messages.refusal import described, fitted, fitted_constructor, fitted_methods
from nn_core.errors import ArgumentError, FileFormatError, MissingFileError
from nn_core.logger import logger
from nn_core.models.layers import Layers
from nn_core.models.network_file import NetworkFile
from nn_core.models.utils import get_model_home
from nn_core.models.weights import PRETRAINED, WeightFile, Weights, is_network, weights_file
from nn_core.parametric_functions.scope import Scope, get_parameter, get_parameters, parameter_scope, set_parameter
from nn_core.variable import Variable


@fitted_constructor
@dataclass(frozen=True)
class BuiltNetwork:
    """A network that was built.

    Attributes:
        inputs: The input, by its name.
        outputs: The result, by key.
        variables: The input, and the variable of each key, as far as the network was built.

    Example:
        >>> from nn_core.models.imagenet import ShuffleNet05
        >>> net = ShuffleNet05(weights=None)(nn.Variable((8, 3, 224, 224)), use_up_to="pool", returns_net=True)
        >>> {key: variable.shape for key, variable in net.outputs.items()}
        {'pool': (8, 480, 1, 1)}
    """

    inputs: Mapping[str, Variable]
    outputs: Mapping[str, Variable]
    variables: Mapping[str, Variable]


@dataclass(frozen=True)
class Request:
    """The arguments of a call that decide how a network is built."""

    training: bool = False
    force_global_pooling: bool = False
    check_global_pooling: bool = True
    with_aux_tower: bool = False
    #: Results beside the main one, which builders append.
    further: list[Variable] = field(default_factory=list)


@fitted_methods()
class PretrainedModel(ABC):
    """Base class of networks with weights.

    A model object has one set of parameters. They are made once, with the values of the file; every call builds a graph with
    them, and puts them into the current parameter scope under the name of the model, where `get_parameters` finds them.

    Args:
        weights: "pretrained": the file ``<task>/<name>.nnp`` (or .safetensors, .h5, .npz) in `get_model_home()`, fetched from
            below NN_CORE_MODELS_URL_BASE if that is set and the file is not there. A path: that file; a safetensors file may
            also be a state dict of PyTorch. None: random initial values.

    Raises:
        MissingFileError: when there is no such file; the message says what to put where.

    Example:
        >>> from nn_core.models.imagenet import ShuffleNet05
        >>> model = ShuffleNet05(weights=None)
        >>> y = model(nn.Variable((8, 3, 224, 224)), training=True)
        >>> len(nn.get_parameters()), list(nn.get_parameters())[0]
        (149, 'ShuffleNet05/conv1/conv/W')
    """

    #: The folder of the files, the keys of `use_up_to` in order, and what is added to variances in normalizations.
    task: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    eps: ClassVar[float] = 1e-5
    #: Length of both axes of the images for which the network was made.
    image_size: ClassVar[int]

    @fitted
    def __init__(self, weights: Weights = PRETRAINED) -> None:
        self._scope: Scope = {}
        self._filled: set[str] = set()
        self._network: NetworkFile | None = None
        self._values: WeightFile | None = None
        path = weights_file(self.name, self.task, weights)
        if path is not None and is_network(path):
            self._network = NetworkFile(self.name, path, self._scope)
        elif path is not None:
            self._values = WeightFile(self.name, path)

    @property
    def name(self) -> str:
        """Name of the network, of its file, and of the scope of its parameters."""
        return type(self).__name__

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Shape (C, H, W) of the images for which the network was made."""
        return (3, self.image_size, self.image_size)

    @abstractmethod
    def _stages(self, x: Variable, layers: Layers, request: Request) -> Iterator[tuple[str, Variable]]:
        """Build the network, and yield the variable of each key, in order."""

    def get_parameters(self, grad_only: bool = False) -> dict[str, Variable]:
        """Return the parameters by name that calls have made so far.

        Example:
            >>> from nn_core.models.imagenet import SqueezeNetV11
            >>> model = SqueezeNetV11(weights=None)
            >>> y = model(nn.Variable((1, 3, 227, 227)))
            >>> sum(w.size for w in model.get_parameters().values())
            1235496
        """
        with parameter_scope("", self._scope):
            return get_parameters(grad_only=grad_only)

    def get_input_var(self, input_var: Variable | None = None) -> Variable:
        """`input_var`, or a Variable for one image.

        Raises:
            ArgumentError: when it is no Variable of shape (N, C, H, W), with the C of `input_shape`.
        """
        if input_var is None:
            return Variable((1, *self.input_shape))
        if not isinstance(input_var, Variable) or input_var.ndim != 4 or input_var.shape[1] != self.input_shape[0]:
            given = f"shape {input_var.shape}" if isinstance(input_var, Variable) else described(input_var)
            raise ArgumentError(f"{self.name}: input_var must have the shape (N, {self.input_shape[0]}, H, W), got {given}")
        return input_var

    def use_up_to(self, key: str, callback: Any, **variable_format_dict: Any) -> None:
        """Let `callback` leave out what follows `key` in the network of an .nnp file.

        Args:
            key: One of the keys of the network.
            callback: An ``NnpNetworkPass``, or another object with a method ``use_up_to(name)``.
            variable_format_dict: Values for braces in the name of the variable.

        Raises:
            ArgumentError: when there is no such key, or the model has no .nnp file.
        """
        self._require_key(key)
        name = self._network_file("use_up_to").variable_name(key)
        callback.use_up_to(name.format(**variable_format_dict))

    def _names_in(self, function: str, file: str, n_names: int) -> list[str]:
        """Return the names in a file of this task in `get_model_home()`, one in each line."""
        path = Path(get_model_home()) / self.task / file
        if not path.is_file():
            raise MissingFileError(f"{function}: {path} must have a name in each line, got no file", str(path))
        names = path.read_text(encoding="utf-8").splitlines()
        if len(names) != n_names:
            raise FileFormatError(f"{function}: {path} must have {n_names} lines, got {len(names)}")
        return names

    def _network_file(self, function: str) -> NetworkFile:
        if self._network is None:
            raise ArgumentError(f"{self.name}.{function}: weights must be a file with a network (.nnp), got none")
        return self._network

    def _call(self, input_var: Variable | None, use_from: Any, key: str, request: Request, net: bool, verbose: int) -> Any:
        if use_from is not None:
            raise ArgumentError(f"{self.name}: use_from must be None, got {described(use_from)}")
        self._require_key(key)
        x = self.get_input_var(input_var)
        if self._network is not None:
            force, check = request.force_global_pooling, request.check_global_pooling
            variables = self._network.build(x, key, request.training, force, check)
        else:
            variables = self._built(x, key, request)
        self._publish()
        for name, variable in variables.items() if verbose else ():
            logger.info("%s: %s has the shape %s", self.name, name, variable.shape)
        if net:
            return BuiltNetwork({"x": x}, {key: variables[key]}, {"x": x, **variables})
        return (variables[key], *request.further) if request.with_aux_tower else variables[key]

    def _built(self, x: Variable, key: str, request: Request) -> dict[str, Variable]:
        variables: dict[str, Variable] = {}
        with parameter_scope("", self._scope):
            for name, variable in self._stages(x, Layers(request.training, self.eps), request):
                variables[name] = variable
                if name == key:
                    break
        self._fill()
        return variables

    def _fill(self) -> None:
        """Give parameters that are new the values of the file."""
        fresh = {name: parameter for name, parameter in self.get_parameters().items() if name not in self._filled}
        if self._values is not None:
            for name, values in self._values.values_for(fresh).items():
                fresh[name].d = values
        self._filled.update(fresh)

    def _publish(self) -> None:
        """Let the current scope have the parameters under the name of the model."""
        for own, parameter in self.get_parameters().items():
            name = f"{self.name}/{own.removeprefix(f'{self.name}/')}"  # a network that was saved has the name already
            present = get_parameter(name)
            if present is not None and present is not parameter:
                raise ArgumentError(
                    f"{self.name}: the scope must have no other parameter {name}, got that of another model\n"
                    "  hint: call one of them within nn_core.parameter_scope"
                )
            if present is None:
                set_parameter(name, parameter)

    def _require_key(self, key: str) -> None:
        if key not in self.keys:
            raise ArgumentError(f"{self.name}: use_up_to must be one of {', '.join(self.keys)}, got {described(key)}")
