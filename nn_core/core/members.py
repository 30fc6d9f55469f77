"""The members of a module: the modules and variables in its attributes, also in lists, tuples and dictionaries.

Every one has a path, the name of the attribute followed by positions and keys: the second block of ``self.layers`` has
``("layers", "1")``.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from nn_core.engine.error_messages.overlooked import overlook
from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError, ShapeError, UnknownAttributeError
from nn_core.variable import Variable

#: Prefix of the names of submodules.
SUBMODULE_MARK: Final = "@"
#: The name of an attribute, and the positions and keys inside it.
Path: TypeAlias = tuple[str, ...]


def found_in(value: Any, kinds: tuple[type, ...], path: Path, above: tuple[Any, ...] = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the objects of `kinds` in `value`, each with its path.

    Args:
        value: An object of `kinds`, or lists, tuples and dictionaries of them, also nested; other values hold nothing.
        kinds: Classes to look for.
        path: Path of `value`.
        above: The containers around `value`; one that contains itself is not entered again.

    Raises:
        ArgumentError: when an object has a key in a dictionary that cannot be part of a parameter's name.
    """
    if isinstance(value, kinds):
        yield path, value
    elif isinstance(value, dict):
        if not any(value is container for container in above):
            for key, inner in value.items():
                for inner_path, found in found_in(inner, kinds, (*path, str(key)), (*above, value)):
                    _require_name(path, key)
                    yield inner_path, found
    elif isinstance(value, (list, tuple)) and not any(value is container for container in above):
        for position, inner in enumerate(value):
            yield from found_in(inner, kinds, (*path, str(position)), (*above, value))


def _require_name(path: Path, key: Any) -> None:
    name = str(key)
    if not isinstance(key, (str, int)) or not name or "/" in name or name.startswith("@"):
        raise ArgumentError(
            f"Module: a key under which a module or a parameter is kept must be an int or a str without '/' and without "
            f"'@' in front, got {key!r} in {'.'.join(path)}"
        )


def require_no_set(name: str, value: Any, kinds: tuple[type, ...]) -> None:
    """Refuse a set of objects of `kinds`: it has no order that could name them."""
    if isinstance(value, (set, frozenset)) and any(isinstance(inner, kinds) for inner in value):
        raise ArgumentError(
            f"Module: modules and parameters must be kept in lists, tuples or dictionaries, which name them, got a set "
            f"in {name}"
        )


def is_computed(owner: object, base: type, name: str, value: Any) -> bool:
    """Tell whether `name` is an attribute that `base` computes and that no value can replace: an assignment has no effect.

    NNabla takes such an assignment and never reads the value.

    Raises:
        UnknownAttributeError: when it is, unless an unchanged program of NNabla runs.
    """
    found = getattr(base, name, None)
    if not isinstance(found, property) or found.fset is not None or getattr(type(owner), name) is not found:
        return False
    kind = type(owner).__name__
    text = (
        f"{kind}: {name} is computed and cannot be assigned, got {described(value)}\n  hint: give the attribute another name"
    )
    overlook(UnknownAttributeError(text), "which has no effect")
    return True


def take_over(key: str, present: Variable, param: Variable) -> None:
    """Give the parameter `present`, called `key`, the values of another one.

    Raises:
        ShapeError: when it has another shape.
    """
    if present.shape != param.shape:
        raise ShapeError(f"set_parameter: {key} must have the shape {present.shape}, got {param.shape}")
    present.data.copy_from(param.data)
    present.need_grad = param.need_grad


def place_of(key: str) -> tuple[str, str]:
    """Return the path of the module that has the parameter `key`, with a '/' at its end, and its name there."""
    parts = key.split("/")
    n_modules = 0
    while n_modules < len(parts) and parts[n_modules].startswith(SUBMODULE_MARK):
        n_modules += 1
    return "".join(f"{part}/" for part in parts[:n_modules]), "/".join(parts[n_modules:])
