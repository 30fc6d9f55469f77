"""Lengths of axes that remember where they were read, so that a graph follows when a leaf gets another shape.

In a static graph ``x.shape[0]`` is a `Length`: an ``int`` that knows the variable and the axis. Arithmetic with numbers and
other lengths gives a `Length`, or a `Ratio`, a ``float`` of this kind. A function that gets one as a setting keeps it
(`ResolvedCall.given`), and `nn_core.engine.graph.reshape` evaluates it anew when shapes are inferred again.
Whatever turns it into a plain number (``int()``, ``range``, NumPy, a format string) makes it a constant.

Below the settings of functions there are plain numbers only: caches, plans, arrays and kernels never see a `Length`.
"""

import math
import operator
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from nn_core.engine.runtime.context_values import Ambient
from nn_core.errors import ShapeError
from nn_core.typing import Shape

#: Whether shapes are read as plain numbers: in parts of a graph that are built again as a whole for other shapes.
PLAIN_SHAPES: Final[Ambient[bool]] = Ambient("plain shapes", False)

#: Returns the present shape of a `nn_core.engine.graph.node.Value`.
ShapeOf: TypeAlias = Callable[[Any], Shape]


class Origin:
    """A variable that lengths were read from, or that a part of a graph starts from.

    Those who hold it see another variable as soon as that one takes the place of the first one: `move_origin`.
    """

    __slots__ = ("__weakref__", "value")
    value: Any


class _Reference(weakref.ref[Origin]):
    """A reference to an origin that knows the identity of its variable."""

    __slots__ = ("key",)
    key: int


#: The origins that are in use, by the identity of their variables. No dictionary of `weakref`, whose truth takes a call: most
#: calls of functions find none here, and so look for no length among their settings.
_ORIGINS: Final[dict[int, _Reference]] = {}


def origin_of(value: Any) -> Origin:
    """Return the origin of what is read from a variable; one for each variable."""
    reference = _ORIGINS.get(id(value))
    origin = None if reference is None else reference()
    if origin is None:
        origin = _new_origin(Origin)
        origin.value = value
        _enter(id(value), origin)
    return origin


def _enter(key: int, origin: Origin) -> None:
    _ORIGINS[key] = reference = _Reference(origin, _drop)
    reference.key = key


def _drop(reference: _Reference) -> None:
    if _ORIGINS.get(reference.key) is reference:  # else another variable has got the identity
        del _ORIGINS[reference.key]


def move_origin(value: Any, other: Any) -> None:
    """Let what was read from `value` belong to `other`, which takes its place in the graph."""
    reference = _ORIGINS.pop(id(value), None)
    origin = None if reference is None else reference()
    if origin is not None:
        origin.value = other
        if id(other) not in _ORIGINS:
            _enter(id(other), origin)


class _Derived:
    """The part that `Length` and `Ratio` share: how the number was computed.

    Attributes:
        origin: Where it was read; None for the result of an operation.
        axis: The axis that was read.
        operation: Computes it from the operands; None for a length that was read.
        operands: Numbers, among them lengths and ratios.
    """

    origin: Origin | None = None
    axis: int = 0
    operation: Callable[..., Any] | None = None
    operands: tuple[Any, ...] = ()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        """Return another object that remembers the same, as programs expect of a deep copy of none of Python's types."""
        kind: Any = type(self)
        made = kind(self)
        vars(made).update(vars(self))
        return made


class Length(_Derived, int):
    """The length of an axis: an int that remembers where it was read, or what it was computed from.

    Equality, order, hash and text are those of the int.
    """

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        """Pickle the number alone: another process has another graph."""
        return int, (int(self),)


class Ratio(_Derived, float):
    """A number computed from lengths, such as 1 / n: a float that remembers how."""

    def as_whole(self) -> Any:
        """Return the number as a Length, which stays a whole number when it is computed anew, or is an error."""
        return _computed(_WHOLE, self)

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


_new_origin: Final[Callable[[type[Origin]], Origin]] = object.__new__
#: The types of numbers that remember.
KINDS: Final[frozenset[type]] = frozenset((Length, Ratio))
_NUMBERS: Final[frozenset[type]] = frozenset((int, float, bool, Length, Ratio))


def _computed(operation: Callable[..., Any], *operands: Any) -> Any:
    """Return the result of an operation on numbers, which remembers it."""
    number = operation(*operands)
    kind = Length if isinstance(number, int) else Ratio if isinstance(number, float) else None
    if kind is None:  # such as a complex root
        return number
    made = kind(number)
    made.operation, made.operands = operation, operands
    return made


def _binary(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compute(self: Any, other: Any) -> Any:
        return _computed(operation, self, other) if type(other) in _NUMBERS else NotImplemented

    return compute


def _reflected(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compute(self: Any, other: Any) -> Any:
        return _computed(operation, other, self) if type(other) in _NUMBERS else NotImplemented

    return compute


def _unary(operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: _computed(operation, self)


def _round(self: Any, digits: int | None = None) -> Any:
    return _computed(_ROUND, self) if digits is None else _computed(_ROUND, self, digits)


def _exactly(operation: Callable[..., Any]) -> Callable[..., Any]:
    """`operation` on the plain numbers of its operands, whose own operators would remember it once more."""

    def operate(*operands: Any) -> Any:
        return operation(*map(_number, operands))

    operate.__name__ = operation.__name__
    return operate


def _number(value: Any) -> Any:
    kind = type(value)
    return int(value) if kind is Length else float(value) if kind is Ratio else value


def whole(number: float) -> int:
    """Return a whole number as an int.

    Raises:
        ShapeError: when it is none.
    """
    if number != math.floor(number):
        raise ShapeError(f"a length must be whole, got {number!r}\n  hint: // divides without a fraction")
    return int(number)


def product(*numbers: int) -> int:
    """Return the product of all numbers."""
    return math.prod(numbers)


_ROUND: Final = _exactly(round)
_PRODUCT: Final = _exactly(product)
_WHOLE: Final = _exactly(whole)
#: The operators that keep where a number comes from. Comparisons do not: a branch of a program is taken once.
_BINARY: Final = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_UNARY: Final[Mapping[str, Callable[..., Any]]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": operator.abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
}


def _give_operators() -> None:
    for kind in (Length, Ratio):
        for name in _BINARY:
            operation = _exactly(getattr(operator, name))
            setattr(kind, f"__{name}__", _binary(operation))
            setattr(kind, f"__r{name}__", _reflected(operation))
        for name, function in _UNARY.items():
            setattr(kind, f"__{name}__", _unary(_exactly(function)))
        setattr(kind, "__round__", _round)  # noqa: B010  # as the others


_give_operators()


# Reading --------------------------------------------------------------------------------------------------------------


def lengths_of(value: Any, shape: Shape) -> Shape:
    """Return the lengths of the axes of a variable of shape `shape`, which remember that they were read from it."""
    origin = origin_of(value)
    lengths = tuple(map(Length, shape))
    axis = 0
    for length in lengths:
        length.origin, length.axis = origin, axis
        axis += 1  # noqa: SIM113  # `enumerate` would take a tuple and a name more for each axis, in each reading of a shape
    return lengths


def size_of(shape: Shape) -> int:
    """Return the number of elements of a shape, which remembers its lengths if they remember where they were read."""
    size: int = _computed(_PRODUCT, *shape) if shape and type(shape[0]) is Length else math.prod(shape)
    return size


# Settings of functions ------------------------------------------------------------------------------------------------


def lengths_among(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings of a call that are lengths or ratios, or sequences with some."""
    found: dict[str, Any] = {}
    if not _ORIGINS:  # there is no length at all
        return found
    for name, value in settings.items():
        kind = type(value)
        if kind in KINDS:
            found[name] = value
        elif (kind is tuple or kind is list) and not KINDS.isdisjoint(map(type, value)):
            found[name] = tuple(value)
    return found


def present_settings(function: str, settings: Mapping[str, Any], shape_of: ShapeOf) -> dict[str, Any]:
    """Return the present numbers of settings that `lengths_among` has found.

    Raises:
        ShapeError: when there is none any more; names the function.
    """
    try:
        return {name: settled(value, shape_of) for name, value in settings.items()}
    except ShapeError as error:
        raise ShapeError(f"{function}: {error}") from error.__cause__


def origins_of(value: Any) -> tuple[Origin, ...]:
    """Origins of the lengths in `value`: a number, or tuples, lists, mappings and slices of some."""
    origins: dict[Origin, None] = {}
    seen: set[int] = set()
    stack = [value]
    while stack:
        part = stack.pop()
        if type(part) in KINDS:
            if part.origin is not None:
                origins[part.origin] = None
            elif id(part) not in seen:  # n + n has one operand
                seen.add(id(part))
                stack.extend(part.operands)
        else:
            stack.extend(_parts(part))
    return tuple(origins)


def settled(value: Any, shape_of: ShapeOf) -> Any:
    """`value` with the present numbers in place of lengths and ratios, also in tuples, lists, mappings and slices."""
    kind = type(value)
    if kind is Length and value.operation is None:
        return _axis_of(shape_of(value.origin.value), value.axis)
    if kind in KINDS:
        return _evaluated(value, shape_of)
    if kind is tuple or kind is list:
        return kind([settled(part, shape_of) for part in value])
    if kind is slice:
        return slice(*[settled(part, shape_of) for part in _parts(value)])
    if kind is dict:
        return {name: settled(part, shape_of) for name, part in value.items()}
    return value


def renewed(value: Any, counterpart: Callable[[Any], Any] = lambda source: source) -> Any:
    """`value` with lengths and ratios that have the present numbers, and the variables of origins.

    Args:
        value: A number, or tuples, lists, mappings and slices of some.
        counterpart: Returns the variable whose lengths take the place of those of another one.
    """
    kind = type(value)
    if kind in KINDS:
        return recomputed(value, lambda length: _renewed(counterpart(length.origin.value), length.axis), _computed)
    if kind is Origin:
        return counterpart(value.value)
    if kind is tuple or kind is list:
        return kind([renewed(part, counterpart) for part in value])
    if kind is slice:
        return slice(*[renewed(part, counterpart) for part in _parts(value)])
    if kind is dict:
        return {name: renewed(part, counterpart) for name, part in value.items()}
    return value


def present_shape(value: Any) -> Shape:
    """Return the shape of a variable as it is now, in plain numbers."""
    shape: Shape = value.plain_shape
    return shape


def _parts(value: Any) -> tuple[Any, ...]:
    kind = type(value)
    if kind is tuple or kind is list:
        return tuple(value)
    if kind is slice:
        return value.start, value.stop, value.step
    return tuple(value.values()) if kind is dict else ()


def _length(value: Any, axis: int, number: int) -> Length:
    length = Length(number)
    length.origin, length.axis = origin_of(value), axis
    return length


def _renewed(value: Any, axis: int) -> Length:
    return _length(value, axis, _axis_of(present_shape(value), axis))


def _axis_of(shape: Shape, axis: int) -> int:
    if axis >= len(shape):
        raise ShapeError(f"axis {axis}, of which a length was read, must still exist, got {shape}")
    return shape[axis]


def recomputed(number: Any, read: Callable[[Any], Any], operate: Callable[..., Any]) -> Any:
    """Compute a length or a ratio anew. Iterative: a sum that a loop makes may have any number of terms.

    Args:
        number: What to compute.
        read: Returns what stands for a length that was read.
        operate: Called with an operation and what stands for its operands.
    """
    found: dict[int, Any] = {}
    stack = [number]
    while stack:
        part = stack[-1]
        missing = [one for one in part.operands if type(one) in KINDS and id(one) not in found]
        if missing:
            stack += missing
            continue
        stack.pop()
        if part.operation is None:
            found[id(part)] = read(part)
        else:
            operands = [found[id(one)] if type(one) in KINDS else one for one in part.operands]
            found[id(part)] = _operated(operate, part.operation, operands)
    return found[id(number)]


def _operated(operate: Callable[..., Any], operation: Callable[..., Any], operands: list[Any]) -> Any:
    try:
        return operate(operation, *operands)
    except ArithmeticError as error:
        raise ShapeError(f"a number that follows from lengths must exist, got {error} for {operands}") from error


def _plainly(operation: Callable[..., Any], *operands: Any) -> Any:
    return operation(*operands)


def _evaluated(number: Any, shape_of: ShapeOf) -> Any:
    """Return the present number of a length or a ratio."""
    return recomputed(number, lambda length: _axis_of(shape_of(length.origin.value), length.axis), _plainly)
