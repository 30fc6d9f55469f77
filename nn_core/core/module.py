"""Module: a part of a network that owns its parameters, and the modules inside it.

Attributes that are modules are its submodules. Their parameters get the name of the attribute with an ``@`` in front,
so that ``self.block = Block()`` in a network gives ``@block/conv/W``.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from nn_core.errors import ArgumentError, ShapeError
from nn_core.io.parameters import load_parameters, save_parameters
from nn_core.parametric_functions.scope import Scope, get_parameters, parameter_scope, set_parameter
from nn_core.variable import Variable

#: What stands in front of the name of a submodule.
SUBMODULE_MARK = "@"


class Module:
    """Base class of modules: a subclass makes its submodules in ``__init__`` and computes in ``call``.

    Parametric functions that ``call`` uses keep their parameters in the module, whatever scope it is called in.

    Example:
        >>> import nn_core as nn
        >>> import nn_core.functions as F
        >>> import nn_core.parametric_functions as PF
        >>> class Block(Module):
        ...     def __init__(self, maps):
        ...         self.maps = maps
        ...     def call(self, x):
        ...         return F.relu(PF.convolution(x, self.maps, (3, 3), pad=(1, 1)))
        >>> class Net(Module):
        ...     def __init__(self):
        ...         self.first, self.second = Block(4), Block(8)
        ...     def call(self, x):
        ...         return self.second(self.first(x))
        >>> net = Net()
        >>> net(nn.Variable((1, 3, 8, 8))).shape
        (1, 8, 8, 8)
        >>> list(net.get_parameters())
        ['@first/conv/W', '@first/conv/b', '@second/conv/W', '@second/conv/b']
    """

    # Subclasses need not call __init__ of this class: the attributes are made when they are first used.
    _scope: Scope
    _parent: "Module | None"
    _name: str
    _training: bool

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Module):
            object.__setattr__(value, "_parent", self)
            object.__setattr__(value, "_name", name)
        object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with parameter_scope("", scope=self.parameter_scope):
            return self.call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}: call() must be defined")

    @property
    def parameter_scope(self) -> Scope:
        """The parameters of this module without those of its submodules."""
        if "_scope" not in self.__dict__:
            object.__setattr__(self, "_scope", OrderedDict())
        return self._scope

    @property
    def parent(self) -> "Module | None":
        """The module that has this one as an attribute."""
        return self.__dict__.get("_parent")

    @property
    def name(self) -> str:
        """Name of the attribute under which the parent has this module; "" for a root."""
        return str(self.__dict__.get("_name", ""))

    @property
    def submodules(self) -> "OrderedDict[str, Module]":
        """The modules that are attributes of this one, by name."""
        children = ((name, value) for name, value in self.__dict__.items() if name != "_parent")
        return OrderedDict((name, value) for name, value in children if isinstance(value, Module))

    @property
    def training(self) -> bool:
        """Whether the network trains; setting it sets it for all submodules too. A submodule answers for its root."""
        if "_training" in self.__dict__:
            return self._training
        return True if self.parent is None else self.parent.training

    @training.setter
    def training(self, training: bool) -> None:
        for _, module in self.walk():
            object.__setattr__(module, "_training", bool(training))

    def is_root(self) -> bool:
        """Whether no module has this one as an attribute."""
        return self.parent is None

    def get_scope_name(self) -> str:
        """Name of the scope of this module's parameters in its parent."""
        return SUBMODULE_MARK + self.name if self.name else ""

    def get_path_name(self) -> str:
        """Names of the scopes from the root to this module, joined by '/'."""
        if self.parent is None:
            return self.get_scope_name()
        return "/".join(part for part in (self.parent.get_path_name(), self.get_scope_name()) if part)

    def walk(self, path: str = "") -> "Iterator[tuple[str, Module]]":
        """This module and all modules inside it, each with the path that stands before its parameters."""
        yield path, self
        for name, module in self.submodules.items():
            yield from module.walk(f"{path}{SUBMODULE_MARK}{name}/")

    def get_parameters(
        self, recursive: bool = True, grad_only: bool = False, memo: Any = None
    ) -> "OrderedDict[str, Variable]":
        """Parameters by name, those of submodules first.

        Args:
            recursive: with the submodules.
            grad_only: only parameters that need a gradient.
            memo: a set of parameters that are left out; those found are added to it.
        """
        known: set[Variable] = set() if memo is None else memo
        found: OrderedDict[str, Variable] = OrderedDict()
        if recursive:
            for name, module in self.submodules.items():
                for key, parameter in module.get_parameters(True, grad_only, known).items():
                    found[f"{SUBMODULE_MARK}{name}/{key}"] = parameter
        with parameter_scope("", scope=self.parameter_scope):
            own = get_parameters(grad_only=grad_only)
        for key, parameter in own.items():
            if parameter not in known:
                known.add(parameter)
                found[key] = parameter
        return found

    def set_parameter(self, key: str, param: Variable, raise_if_missing: bool = False) -> None:
        """Put a parameter under its name; one that is there already keeps its place and takes over the values.

        Raises:
            ArgumentError: when there is no such submodule, or with `raise_if_missing` no such parameter.
            ShapeError: when the parameter that is there has another shape.
        """
        first, _, rest = key.partition("/")
        if first.startswith(SUBMODULE_MARK):
            module = self.submodules.get(first[len(SUBMODULE_MARK) :])
            if module is None:
                if raise_if_missing:
                    raise ArgumentError(f"set_parameter: the module must have a submodule for {key!r}, got none")
                return
            module.set_parameter(rest, param, raise_if_missing)
            return
        present = self.get_parameters(recursive=False).get(key)
        if present is None:
            if raise_if_missing:
                raise ArgumentError(f"set_parameter: the module must have the parameter {key!r}, got none")
            with parameter_scope("", scope=self.parameter_scope):
                set_parameter(key, param)
            return
        if present.shape != param.shape:
            raise ShapeError(f"set_parameter: {key} must have the shape {present.shape}, got {param.shape}")
        present.data.copy_from(param.data)
        present.need_grad = param.need_grad

    def set_parameters(self, params: Mapping[str, Variable], raise_if_missing: bool = False) -> None:
        """Put parameters under their names; see ``set_parameter``."""
        for key, param in params.items():
            self.set_parameter(key, param, raise_if_missing)

    def update_parameter(self) -> None:
        """Nothing to do: a module and the graphs built by it share their parameters."""

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to zero."""
        for parameter in self.get_parameters(grad_only=True).values():
            parameter.grad.zero()

    def save_parameters(self, path: Any, extension: str = ".h5") -> None:
        """Write all parameters to a file."""
        save_parameters(path, self.get_parameters(), extension=extension)

    def load_parameters(self, path: Any, extension: str = ".h5", raise_if_missing: bool = True) -> None:
        """Read parameters from a file that ``save_parameters`` wrote.

        A module that has not been called yet has no parameters; it takes all from the file.

        Raises:
            FileFormatError: when the file cannot be read; nothing is changed then.
            ArgumentError: when the file has a parameter for a submodule that does not exist.
        """
        scope: Scope = OrderedDict()
        with parameter_scope("", scope=scope):
            load_parameters(path, extension=extension)
            read = get_parameters(grad_only=False)
        for key, parameter in read.items():
            self.set_parameter(key, parameter, raise_if_missing and not self._has(key))

    def _has(self, key: str) -> bool:
        """Whether the submodules that `key` names exist."""
        module: Module = self
        for part in key.split("/"):
            if part.startswith(SUBMODULE_MARK):
                child = module.submodules.get(part[len(SUBMODULE_MARK) :])
                if child is None:
                    return False
                module = child
        return True

    def __repr__(self) -> str:
        return type(self).__name__
