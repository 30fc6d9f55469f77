"""The outputs of a call, from its arguments and the shapes of its inputs: no array and no backend is needed."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nn_core.engine.dispatch.blame import PluginCall
from nn_core.engine.dispatch.registry import REGISTRY, shape_rule_of
from nn_core.errors import InputTypeError, NNCoreError, PluginError, ShapeError
from nn_core.logger import logger
from nn_core.operators.rules.broadcasting import broadcast_shapes
from nn_core.operators.spec.model import ArgValue, FunctionSpec, OutputSpec
from nn_core.typing import Shape

#: Elements of the largest array that a call may make: more than a machine has, but addressable.
MAX_SIZE = 2**48


def infer(spec: FunctionSpec, args: Mapping[str, ArgValue], shapes: tuple[Shape | None, ...]) -> tuple[Shape | None, ...]:
    """Shapes of all outputs, aux outputs included, from the shapes of the inputs; None: the settings leave it out."""
    try:
        found = _by_rule(spec, args, shapes)
        for shape in found:
            if shape is not None and math.prod(shape) > MAX_SIZE:
                raise ShapeError(f"a result must have at most 2^48 elements, got shape {shape}")
    except NNCoreError as error:  # rules complain of shapes alone; who was called with what is known here
        raise _as_ours(error)(described(spec, str(error), args, shapes)) from error.__cause__
    return found


def _as_ours(error: NNCoreError) -> Callable[[str], NNCoreError]:
    """Return the class of an error of ours; of one that a plugin derives, whose constructor may take anything, its base."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == NNCoreError.__module__)


def _by_rule(spec: FunctionSpec, args: Mapping[str, ArgValue], shapes: tuple[Shape | None, ...]) -> tuple[Shape | None, ...]:
    if spec.shape.startswith("same_as "):
        # the two most common rules are written in the specification
        names = [entry.name for entry in spec.inputs]
        return (shapes[names.index(spec.shape[8:])],) * len(spec.outputs)
    if spec.shape == "broadcast":
        return tuple([broadcast_shapes(*[shape for shape in shapes if shape is not None])] * len(spec.outputs))
    rule, added = shape_rule_of(spec.name), REGISTRY.added(spec.name)
    if added is None:
        return _checked(spec, rule(*shapes, **args))
    with PluginCall(added.plugin, f"the shape rule of F.{added.key}"):
        return _checked(spec, rule(*shapes, **args))


def _checked(spec: FunctionSpec, result: Any) -> tuple[Shape | None, ...]:
    """Check that a shape rule returned the shapes of all outputs, and return them as tuples."""
    if not isinstance(result, (tuple, list)) or not all(shape is None or _is_shape(shape) for shape in result):
        raise PluginError(f"a shape rule must return a shape for each output, got {result!r}")
    if len(result) != len(spec.outputs) and not any(entry.variadic for entry in spec.outputs):
        raise PluginError(f"a shape rule must return {len(spec.outputs)} shapes, got {result!r}")
    _require_outputs(spec, result)
    return tuple(None if shape is None else tuple(map(int, shape)) for shape in result)


def _require_outputs(spec: FunctionSpec, result: Sequence[Shape | None]) -> None:
    """Refuse a rule without a result: settings may leave any output out, as ``only_index=True`` does, but not all."""
    if spec.outputs and all(shape is None for shape in result):
        raise PluginError(f"a shape rule must return the shape of {spec.outputs[0].name}, got {result!r}")


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, (tuple, list)) and all(isinstance(n, (int, np.integer)) and n >= 0 for n in shape)


#: Losses of whose shapes a warning was logged.
_TOLD: Final[set[str]] = set()


def warn_of_all_pairs(spec: FunctionSpec, shapes: Sequence[Shape | None], result: Shape) -> None:
    """Log once for each loss that compares each prediction with each target, as (N, 1) beside (N,) does by broadcasting."""
    sizes = [math.prod(shape) for shape in shapes if shape is not None]
    if spec.shape != "broadcast" or spec.name in _TOLD or math.prod(result) <= max(sizes, default=0):
        return
    _TOLD.add(spec.name)
    given = " and ".join(str(shape) for shape in shapes if shape is not None)
    logger.warning(
        "%s: a loss compares numbers at the same places, got the shapes %s, by which all pairs are compared: the result "
        "has the shape %s\n  hint: F.reshape(t, y.shape)", spec.api, given, result,
    )  # fmt: skip


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


@functools.lru_cache(maxsize=4096)
def input_entries(spec: FunctionSpec, count: int) -> tuple[Any, ...]:
    """Return the input specification of each of `count` inputs, a variadic one repeated."""
    entries = spec.inputs
    if spec.variadic:
        return (*entries[:-1], *[entries[-1]] * (count - len(entries) + 1))
    return entries[:count]


def made_outputs(spec: FunctionSpec, shapes: Sequence[Shape | None]) -> list[tuple[OutputSpec, Shape]]:
    """Return the specification and the shape of each output that a call makes: its settings may leave some out."""
    entries = spec.outputs
    if entries and entries[0].variadic:
        entries = (entries[0],) * len(shapes)
    return [(entry, shape) for entry, shape in zip(entries, shapes, strict=False) if shape is not None]


def require_shapes(spec: FunctionSpec, inputs: Sequence[Any]) -> None:
    """Refuse a call that has too few inputs or lacks one that is not optional."""
    if spec.variadic and len(inputs) < len(spec.inputs):
        raise InputTypeError(f"{spec.api}: at least {len(spec.inputs)} input must be given, got {len(inputs)}")
    for entry, value in zip(input_entries(spec, len(inputs)), inputs, strict=True):
        if value is None and not entry.optional:
            raise InputTypeError(f"{spec.api}: input {entry.name} must be a Variable or an NdArray, got None")
