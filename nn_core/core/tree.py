"""A module and the modules inside it as text, each with the number of its parameters."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from nn_core.engine.error_messages.refusal import described

if TYPE_CHECKING:
    from nn_core.core.module import Module


def shown(module: "Module") -> str:
    """Return the class of a module; one that is a dataclass with its fields, as it was called."""
    kind = type(module).__name__
    return f"{kind}({', '.join(_fields(module))})" if is_dataclass(module) else kind


def name_of(function: Any) -> str:
    """Return the name of a function, or the class of an object that can be called."""
    if isinstance(function, partial):
        return name_of(function.func)
    return str(getattr(function, "__name__", type(function).__name__))


def _fields(module: Any) -> Iterator[str]:
    """Yield the fields of a dataclass that have no default, then those that differ from it, with their names."""
    for field in fields(module):
        value = getattr(module, field.name, None)
        if field.default is MISSING and field.default_factory is MISSING:
            yield _value(value)
        elif not _is_default(field, value):
            yield f"{field.name}={_value(value)}"


def _is_default(field: "Field[Any]", value: Any) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return value is default or (type(value) is type(default) and not hasattr(value, "shape") and bool(value == default))


def _value(value: Any) -> str:
    return name_of(value) if callable(value) and hasattr(value, "__name__") else described(value)


def tree(module: "Module") -> str:
    """One line for each module; a parameter that is shared counts in each module that has it, and once in their parent."""
    return "\n".join(_lines(module, "", "", {}))


def html_tree(module: "Module") -> str:
    """Return the same tree for notebooks: modules with others inside can be folded."""
    return _folded([_split(line) for line in tree(module).splitlines()])


def _split(line: str) -> tuple[int, str]:
    text = line.lstrip()
    return (len(line) - len(text)) // 2, text


def _folded(lines: list[tuple[int, str]]) -> str:
    """Put what is below the first line inside it."""
    (level, text), below = lines[0], lines[1:]
    if not below:
        return f"<div>{escape(text)}</div>"
    starts = [position for position, (depth, _) in enumerate(below) if depth == level + 1]
    parts = [below[start:end] for start, end in zip(starts, [*starts[1:], len(below)], strict=True)]
    inside = "".join(map(_folded, parts))
    folded = f'<details open="open"><summary>{escape(text)}</summary>'
    return f'{folded}<div style="margin-left:1.5em">{inside}</div></details>'


def _lines(module: "Module", name: str, path: str, first: dict[int, str]) -> Iterator[str]:
    """Yield the lines of a module; `first` has the path under which each module was met."""
    label = f"{name}: {shown(module)}" if name else shown(module)
    if id(module) in first:
        yield f"{label}, the same as {first[id(module)]}"
        return
    first[id(module)] = path
    yield f"{label}, {_count(module)}"
    for member, inner in module.submodules.items():
        label = member.replace("/@", ".")
        for line in _lines(inner, label, f"{path}.{label}" if path else label, first):
            yield f"  {line}"


def _count(module: "Module") -> str:
    parameters = module.get_parameters().values()
    n_all = sum(parameter.size for parameter in parameters)
    n_trained = sum(parameter.size for parameter in parameters if parameter.need_grad)
    text = f"{n_all:,} parameter{'' if n_all == 1 else 's'}"
    return text if n_trained == n_all else f"{text}, {n_trained:,} of them trained"
