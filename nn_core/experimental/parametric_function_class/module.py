"""The base class of networks made of layers as objects."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nn_core.auto_forward import auto_forward
from nn_core.errors import ArgumentError
from nn_core.files import PathOrFile
from nn_core.io.parameters import load_into, read_parameters, save_parameters
from nn_core.parametric_functions.scope import parameter_scope
from nn_core.variable import Variable


class Module:
    """A network whose attributes are layers, other modules, and parameters (leaf Variables).

    ``nn_core.Module`` makes parameters when it is first called, and keeps modules in lists as well; this class follows
    NNabla's experimental one, where every parameter exists from the start.

    Example:
        >>> import nn_core as nn
        >>> from nn_core.experimental.parametric_function_class.affine import Affine
        >>> class Net(Module):
        ...     def __init__(self):
        ...         self.hidden, self.out = Affine(4, 3), Affine(3, 2, with_bias=False)
        ...     def __call__(self, x):
        ...         return self.out(self.hidden(x))
        >>> net = Net()
        >>> net(nn.Variable((8, 4))).shape, list(net.get_parameters())
        ((8, 2), ['hidden/W', 'hidden/b', 'out/W'])
    """

    def get_modules(self, memo: "set[Module] | None" = None, prefix: str = "") -> "Iterator[tuple[str, Module]]":
        """Return this module and those inside it, each once, with its path.

        Args:
            memo: Modules that are left out; those that are found are added.
            prefix: Path of this module.
        """
        known = set() if memo is None else memo
        if self in known:
            return
        known.add(self)
        yield prefix, self
        for name, member in list(vars(self).items()):
            if isinstance(member, Module):
                yield from member.get_modules(known, f"{prefix}/{name}" if prefix else name)

    def get_parameters(self, grad_only: bool = True) -> "OrderedDict[str, Variable]":
        """Parameters by path.

        Args:
            grad_only: Only those that need a gradient; if not, also frozen ones and statistics.
        """
        found: OrderedDict[str, Variable] = OrderedDict()
        for path, module in self.get_modules():
            for name, member in vars(module).items():
                if isinstance(member, Variable) and member.is_leaf and (member.need_grad or not grad_only):
                    found[f"{path}/{name}" if path else name] = member
        return found

    def save_parameters(self, path: PathOrFile, grad_only: bool = False) -> None:
        """Write parameters to a file whose extension names the format.

        Args:
            path: The file, such as net.h5 or net.npz.
            grad_only: Only those that need a gradient.

        Raises:
            ArgumentError: when the extension is that of no format.
        """
        save_parameters(path, self.get_parameters(grad_only))

    def load_parameters(self, path: PathOrFile) -> None:
        """Read parameters from a file that `save_parameters` wrote.

        Raises:
            ArgumentError: when the file has parameters that the module lacks. Nothing is changed then.
            FileFormatError: when the file cannot be read.
            ShapeError: when shapes differ.
        """
        own = self.get_parameters(grad_only=False)
        load_into(
            "load_parameters",
            read_parameters("load_parameters", path, None),
            own,
            own.get,
            _refuse_to_create,
            lambda key: False,
            None,
            refuse_unexpected=True,
        )

    def _make(self, function: Callable[..., Any], sample: Variable, settings: Mapping[str, Any]) -> None:
        """Set the attributes that a parametric function makes as parameters for an input of the shape of `sample`."""
        scope: dict[str, Any] = {}
        with parameter_scope("", scope=scope), auto_forward(False):
            # The function inside the decorator, which would open a scope of its own.
            function.__wrapped__(sample, **settings)  # type: ignore[attr-defined]  # set by functools.wraps
        for name, parameter in scope.items():
            parameter.need_grad = parameter.need_grad and not settings.get("fix_parameters", False)
            setattr(self, name, parameter)


def _refuse_to_create(key: str, parameter: Variable) -> None:
    raise ArgumentError(f"load_parameters: the module must have the parameter {key!r}, got none")
