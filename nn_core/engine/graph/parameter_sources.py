"""Parameters by name, from anything that has some: a dictionary, a scope, a module, or the name of a scope."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.engine.graph.node import Storage, Value
from nn_core.engine.runtime.holders import CURRENT_SCOPE, Holder, modules_with_parameters, where_parameters_are
from nn_core.errors import ArgumentError, UnknownNameError

if TYPE_CHECKING:
    from nn_core.variable import Variable


@runtime_checkable
class HasParameters(Protocol):
    """A module, or another object with parameters by name."""

    def get_parameters(self) -> "Mapping[str, Variable]":
        """Return all parameters by name."""
        ...


#: Variables by name, also in dictionaries of dictionaries as scopes are; a module; or the name of a scope.
ParameterSource: TypeAlias = Mapping[str, Any] | HasParameters | str


@fitted
def parameters_of(
    function: str, source: ParameterSource | None, *, grad_only: bool = False, argument: str = "params"
) -> "dict[str, Variable]":
    """Return the parameters of a source by name.

    Args:
        function: Name of the function that was given the source, for messages.
        source: Variables by name; a scope, whose names are joined by '/'; a module; the name of a scope inside the current
            one, whose parameters keep it in front of their names; None: the current scope.
        grad_only: Only those that need a gradient, except of a dictionary of Variables, which is returned as it is.
        argument: Name of the argument, for messages.

    Raises:
        ArgumentError: when the source is something else, or holds something else.
        UnknownNameError: when there is no scope of the name.

    Example:
        >>> from nn_core.ext import parameters_of
        >>> net = nn.Sequential(nn.layers.Affine(3))
        >>> y = net(nn.Variable((8, 4)))
        >>> list(parameters_of("save", net))
        ['@affine_0/affine/W', '@affine_0/affine/b']
    """
    if isinstance(source, Mapping):
        is_flat = not any(isinstance(member, Mapping) for member in source.values())
        return _listed(function, argument, source, grad_only and not is_flat)
    if source is None or isinstance(source, str):
        return _listed(function, argument, _scope(function, source), grad_only)
    if isinstance(source, HasParameters) and not isinstance(source, type):
        return _listed(function, argument, source.get_parameters(), grad_only)
    raise ArgumentError(
        f"{function}: {argument} must be Variables by name, a module, or the name of a scope, got {described(source)}\n"
        "  hint: nn_core.get_parameters(), module.get_parameters(), or {'w': w}"
    )


def require_some(function: str, source: ParameterSource | None, found: "Mapping[str, Variable]") -> None:
    """Refuse a module or a scope without parameters; an empty dictionary is what the caller wrote."""
    if found or (isinstance(source, Mapping) and not source):
        return
    if isinstance(source, HasParameters):
        text = f"{function}: module {type(source).__name__} must have parameters, got none{where_parameters_are()}"
        raise ArgumentError(f"{text}\n  hint: call the module once, which makes the parameters of its layers")


def known_parameters(used: Collection[Storage] | None = None) -> "dict[str, Variable]":
    """Return the parameters of the current scope and of all modules, by name.

    Names that several modules have get the class of the module and its number in front, such as ``Net_2/@hidden/affine/W``.

    Args:
        used: Leave out modules that have none of these storages; None: none.
    """
    found = parameters_of("known_parameters", None)
    for prefix, _, parameters in named_modules(found, used):
        found.update({f"{prefix}{name}": parameter for name, parameter in parameters.items()})
    return found


def named_modules(
    found: Mapping[str, Any], used: Collection[Storage] | None = None
) -> "Iterator[tuple[str, Holder, Mapping[str, Variable]]]":
    """Yield modules with what stands in front of the names of their parameters, and these.

    Args:
        found: The names that are taken; who asks for the next module has added those of the last one.
        used: See `known_parameters`.
    """
    modules = [
        (module, parameters)
        for module, parameters in modules_with_parameters()
        if used is None or any(parameter.storage in used for parameter in parameters.values())
    ]
    for number, (module, parameters) in enumerate(modules, 1):
        yield f"{type(module).__name__}_{number}/" if found.keys() & parameters.keys() else "", module, parameters


def scopes_of_parameters(used: Collection[Storage] | None = None) -> dict[Storage, str]:
    """Return the scope of each parameter that `known_parameters` finds, by its storage."""
    return {parameter.storage: name.rpartition("/")[0] for name, parameter in known_parameters(used).items()}


def _scope(function: str, name: str | None) -> Mapping[str, Any]:
    """Return the current scope, or of it what has a name, which stays in front."""
    current = CURRENT_SCOPE[-1]()
    if name is None:
        return current
    parts = name.split("/")
    member: Any = current
    for part in parts:
        member = member.get(part) if isinstance(member, Mapping) else None
    if member is None or not all(parts):
        known = ", ".join(current) or "none"
        raise UnknownNameError(
            f"{function}: the name must be that of a scope ({known}), got {name!r}{where_parameters_are(current)}"
        )
    return {name: member}


def _listed(function: str, argument: str, source: Mapping[str, Any], grad_only: bool) -> "dict[str, Variable]":
    found: dict[str, Variable] = {}
    for name, variable in leaves_of(source):
        if not isinstance(variable, Value):
            raise ArgumentError(f"{function}: {argument} must be Variables by name, got {described(variable)} under {name!r}")
        if variable.need_grad or not grad_only:
            found[name] = variable  # type: ignore[assignment]  # Variable is the class of all values that programs see
    return found


def leaves_of(source: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what is in a dictionary, and in those inside it, by names that '/' joins; `path` stands in front of all."""
    for name, member in list(source.items()):  # other threads may add parameters meanwhile
        if isinstance(member, Mapping):
            yield from leaves_of(member, f"{path}{name}/")
        else:
            yield f"{path}{name}", member
