"""A module and the modules inside it as text, each with the number of its parameters."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nn_core.core.module import Module


def tree(module: "Module") -> str:
    """One line for each module; a parameter that is shared counts in each module that has it, and once in their parent."""
    return "\n".join(_lines(module, "", "", {}))


def _lines(module: "Module", name: str, path: str, first: dict[int, str]) -> Iterator[str]:
    """The lines of a module; `first` has the path under which each module was met."""
    label = f"{name}: {type(module).__name__}" if name else type(module).__name__
    if id(module) in first:
        yield f"{label}, the same as {first[id(module)]}"
        return
    first[id(module)] = path
    yield f"{label}, {_count(module)}"
    for member, inner in module.submodules.items():
        shown = member.replace("/@", ".")
        for line in _lines(inner, shown, f"{path}.{shown}" if path else shown, first):
            yield f"  {line}"


def _count(module: "Module") -> str:
    parameters = module.get_parameters().values()
    n_all = sum(parameter.size for parameter in parameters)
    n_trained = sum(parameter.size for parameter in parameters if parameter.need_grad)
    text = f"{n_all:,} parameter{'' if n_all == 1 else 's'}"
    return text if n_trained == n_all else f"{text}, {n_trained:,} of them trained"
