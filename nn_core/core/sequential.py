"""Sequential: modules one after the other."""

from typing import Any

from nn_core.core.module import Module
from nn_core.errors import ArgumentError
from nn_core.messages.refusal import described, door


class Sequential(Module):
    """A chain of modules; the output of one is the input of the next.

    Args:
        args: the modules, named by their class and position, or pairs of a name and a module.
        kwargs: further modules by name.

    Raises:
        ArgumentError: when something else than a module is given.

    Example:
        >>> class Dense(nn.Module):
        ...     def __init__(self, n_features):
        ...         self.n_features = n_features
        ...     def call(self, x):
        ...         return F.relu(PF.affine(x, self.n_features))
        >>> net = nn.Sequential(Dense(16), Dense(3))
        >>> net(nn.Variable((8, 4))).shape
        (8, 3)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for position, given in enumerate(args):
            if isinstance(given, tuple) and len(given) != 2:
                raise ArgumentError(f"Sequential: args[{position}] must be a module or (name, module), got {described(given)}")
            name, module = given if isinstance(given, tuple) else (f"{type(given).__name__.lower()}_{position}", given)
            self._add(name, module)
        for name, module in kwargs.items():
            self._add(name, module)

    @door
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The output of the last module."""
        modules = list(self.submodules.values())
        if not modules:
            return args[0]
        output = modules[0](*args, **kwargs)
        for module in modules[1:]:
            output = module(output)
        return output

    def __len__(self) -> int:
        return len(self.submodules)

    def __getitem__(self, position: int) -> Module:
        return list(self.submodules.values())[position]

    def flatten(self) -> list[Module]:
        """The modules in order, those of chains within in the place of the chain.

        Example:
            >>> class Same(nn.Module):
            ...     def call(self, x):
            ...         return x
            >>> len(nn.Sequential(Same(), nn.Sequential(Same(), Same())).flatten())
            3
        """
        flat: list[Module] = []
        for module in self.submodules.values():
            flat += module.flatten() if isinstance(module, Sequential) else [module]
        return flat

    def _add(self, name: str, module: Any) -> None:
        if not isinstance(module, Module):
            raise ArgumentError(f"Sequential: every layer must be a Module, got {type(module).__name__}")
        setattr(self, name, module)
