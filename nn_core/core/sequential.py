"""Sequential: modules and functions one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nn_core.core.module import Module
from nn_core.core.tree import name_of, shown
from nn_core.engine.error_messages.refusal import described, fitted, fitted_methods
from nn_core.errors import ArgumentError, NNCoreError, SignatureError

#: How the line about a layer begins.
_IN_LAYER: Final = "\n  in layer "


@dataclass(eq=False, repr=False)
class Lambda(Module):
    """A function as a module; parametric functions in it keep their parameters in the module.

    Args:
        function: Any function, such as ``F.relu``.

    Raises:
        ArgumentError: when `function` is not a function, or a class.

    Example:
        >>> from nn_core.core.sequential import Lambda
        >>> last_step = Lambda(lambda y: y[-1])
        >>> last_step(nn.Variable((5, 8, 4))).shape
        (8, 4)
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        _require_function("Lambda: function must be a function", self.function)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        return self.function(*args, **kwargs)


@fitted_methods()
class Sequential(Module):
    """A chain of modules and functions; the output of one is the input of the next.

    Args:
        args: Modules and functions, named by their class or function and position, or pairs of a name and one of them.
        kwargs: Further modules and functions by name.

    Raises:
        ArgumentError: when something else is given.

    Example:
        >>> net = nn.Sequential(nn.layers.Affine(16), F.relu, nn.layers.Affine(3))
        >>> net(nn.Variable((8, 4))).shape
        (8, 3)
        >>> list(net.get_parameters())
        ['@affine_0/affine/W', '@affine_0/affine/b', '@affine_2/affine/W', '@affine_2/affine/b']
    """

    @fitted
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for position, given in enumerate(args):
            if isinstance(given, tuple) and len(given) != 2:
                raise ArgumentError(
                    f"Sequential: args[{position}] must be a module, a function or (name, layer), got {described(given)}"
                )
            name, module = given if isinstance(given, tuple) else (f"{_kind_of(given)}_{position}", given)
            self._add(name, module)
        for name, module in kwargs.items():
            self._add(name, module)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the last module.

        Raises:
            NNCoreError: of a layer, with a line that says which one it is.
        """
        if not args and not self.submodules:
            raise SignatureError("Sequential: must be given an input, got none")
        output: Any = args[0] if args else None
        for position, (name, module) in enumerate(self.submodules.items()):
            try:
                output = module(output) if position else module(*args, **kwargs)
            except NNCoreError as error:
                _name_layer(error, f"{name}: {shown(module)}", output)
                raise
        return output

    def __len__(self) -> int:
        return len(self.submodules)

    def __getitem__(self, position: int) -> Module:
        return list(self.submodules.values())[position]

    def flatten(self) -> list[Module]:
        """Return the modules in order, those of chains within in the place of the chain.

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
            _require_function("Sequential: every layer must be a Module or a function", module)
        setattr(self, name, module if isinstance(module, Module) else Lambda(module))


def _name_layer(error: NNCoreError, layer: str, given: Any) -> None:
    """Add to the text of an error which layer of a chain it comes from, the innermost one, and what that was given."""
    text = str(error.args[0]) if error.args else ""
    if _IN_LAYER in text:
        return
    what, hint, advice = text.partition("\n  hint: ")
    shape = getattr(given, "shape", None)
    line = f"{_IN_LAYER}{layer}" + ("" if shape is None else f", given shape {shape}")
    error.args = (f"{what}{line}{hint}{advice}", *error.args[1:])


def _require_function(rule: str, given: Any) -> None:
    """Refuse what is not a function, and classes, which are mistaken for what they make."""
    if isinstance(given, type):
        raise ArgumentError(f"{rule}, got the class {given.__name__}\n  hint: {given.__name__}(...)")
    if not callable(given):
        hint = "\n  hint: Sequential(*layers)" if isinstance(given, list) else ""
        raise ArgumentError(f"{rule}, got {described(given)}{hint}")


def _kind_of(layer: Any) -> str:
    """Return the class of a module, or the name of a function, in lower case."""
    name = type(layer).__name__ if isinstance(layer, Module) else name_of(layer)
    return name.lower() if name.isidentifier() else "function"
