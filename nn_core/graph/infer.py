"""What a call makes, from its settings and the shapes of its inputs: no array and no backend is needed."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from nn_core.dispatch.registry import shape_rule_of
from nn_core.errors import ArgumentError, NNCoreError
from nn_core.rules.broadcasting import broadcast_shapes
from nn_core.spec.model import ArgValue, FunctionSpec, OutputSpec
from nn_core.typing import Shape

#: More calls than this and the cache starts anew.
CACHE_LIMIT = 8192

_SHAPES: dict[Any, tuple[Shape | None, ...]] = {}


def infer(
    spec: FunctionSpec, args: Mapping[str, ArgValue], shapes: tuple[Shape | None, ...]
) -> tuple[Shape | None, ...]:
    """Shapes of all outputs, aux outputs included, from the shapes of the inputs; None: the settings leave it out."""
    key = (spec.name, tuple(args.values()), shapes)
    found = _SHAPES.get(key)
    if found is None:
        found = _infer(spec, args, shapes)
        if len(_SHAPES) > CACHE_LIMIT:
            _SHAPES.clear()
        _SHAPES[key] = found
    return found


def _infer(
    spec: FunctionSpec, args: Mapping[str, ArgValue], shapes: tuple[Shape | None, ...]
) -> tuple[Shape | None, ...]:
    try:
        if spec.shape.startswith("same_as "):
            names = [entry.name for entry in spec.inputs]
            return (shapes[names.index(spec.shape[8:])],) * len(spec.outputs)
        if spec.shape == "broadcast":
            return tuple([broadcast_shapes(*[shape for shape in shapes if shape is not None])] * len(spec.outputs))
        return tuple(shape and tuple(shape) for shape in shape_rule_of(spec.name)(*shapes, **args))
    except NNCoreError as error:
        raise type(error)(described(spec, str(error), args, shapes)) from None


def described(spec: FunctionSpec, complaint: str, args: Mapping[str, ArgValue], shapes: Sequence[Shape | None]) -> str:
    """`complaint` with the function's name in front, and the shapes of the inputs and the settings below it."""
    first, _, rest = complaint.partition("\n")
    named: list[str] = []
    for position, shape in enumerate(shapes):
        if shape is not None:
            entry = spec.inputs[min(position, len(spec.inputs) - 1)]
            suffix = f"[{position - len(spec.inputs) + 1}]" if entry.variadic else ""
            named.append(f"{entry.name}{suffix} {shape}")
    named += [f"{name} {value}" for name, value in args.items() if value not in (None, False, ())]
    lines = [f"{spec.api}: {first}", "  " + "  ".join(named)]
    return "\n".join([*lines, rest] if rest else lines)


def forget_shapes() -> None:
    """Drop what was inferred: rules may have changed."""
    _SHAPES.clear()


@functools.lru_cache(maxsize=4096)
def input_entries(spec: FunctionSpec, count: int) -> tuple[Any, ...]:
    """The input specification of each of `count` inputs, a variadic one repeated."""
    entries = spec.inputs
    if spec.variadic:
        return (*entries[:-1], *[entries[-1]] * (count - len(entries) + 1))
    return entries[:count]


def made_outputs(spec: FunctionSpec, shapes: Sequence[Shape | None]) -> list[tuple[OutputSpec, Shape]]:
    """The specification and the shape of each output that a call makes: its settings may leave some out."""
    entries = spec.outputs
    if entries and entries[0].variadic:
        entries = (entries[0],) * len(shapes)
    return [(entry, shape) for entry, shape in zip(entries, shapes, strict=False) if shape is not None]


def require_shapes(spec: FunctionSpec, inputs: Sequence[Any]) -> None:
    """Refuse a call that has too few inputs or lacks one that is not optional."""
    if spec.variadic:
        if len(inputs) < len(spec.inputs):
            raise ArgumentError(f"{spec.api}: at least {len(spec.inputs)} input must be given, got {len(inputs)}")
        return
    for entry, value in zip(spec.inputs, inputs, strict=True):
        if value is None and not entry.optional:
            raise ArgumentError(f"{spec.api}: input {entry.name} must be a Variable or an NdArray, got None")
