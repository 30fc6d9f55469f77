"""Turn the arguments of a call into the plain values that rules and kernels get.

This runs for each function of a dynamic graph, so what can be known from the specification alone is prepared once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.error_messages.whole import is_number, not_whole, whole
from nn_core.errors import ArgumentError, ArgumentTypeError, IntegerRangeError, SpecError
from nn_core.operators.rules.defaults import ADJUSTMENTS, DEFAULT_RULES, Adjustment, DefaultRule, OneNumber, one_number
from nn_core.operators.spec.model import ArgSpec, ArgValue, FunctionSpec, Required
from nn_core.typing import Shape

#: ``check(value, number of axes of the first input) -> ArgValue``; raises ArgumentError.
_Check: TypeAlias = Callable[[Any, int], Any]
#: An argument: name, type whose values need no check, check, plain default, rule for the default, whether the default
#: has to be checked, required, what one number in place of a sequence stands for.
_Prepared: TypeAlias = tuple[str, Any, _Check, ArgValue, DefaultRule | None, bool, bool, OneNumber | None]

#: Hints for one number in place of a sequence, where it could mean the last axis, the spatial axes or all axes.
_IN_PLACE_OF_ONE: Final[Mapping[str, str]] = {
    "shifts": "({0},) moves along the last axis, ({0}, {0}) along the last two",
    "pad_width": "({0}, {0}) pads the last axis before and after, ({0}, {0}, {0}, {0}) the last two",
}

#: One more than the largest integer that kernels and files hold.
_INT_LIMIT = 2**63
_INTEGERS = (int, np.integer)

_PREPARED: dict[FunctionSpec, tuple[frozenset[str], tuple[_Prepared, ...], Adjustment | None]] = {}


def resolve_args(  # noqa: C901  # for each call that is not known yet, and each argument; a call more would be felt
    spec: FunctionSpec, given: Mapping[str, Any], input_shapes: Sequence[Shape | None]
) -> dict[str, ArgValue]:
    """Return the value of every argument of `spec`: checked, plain, defaults filled in; None in `given` means the default.

    Raises:
        ArgumentError: for unknown names and for values that an argument cannot have; names the function.
    """
    prepared = _PREPARED.get(spec)
    if prepared is None:
        prepared = _prepare(spec)
    names, arguments, adjust = prepared
    first = input_shapes[0] if input_shapes else None
    ndim = 0 if first is None else len(first)
    args: dict[str, ArgValue] = {}
    try:
        for name, exact, check, default, rule, check_default, required, spread in arguments:
            value: Any = given.get(name)
            if type(value) is exact:
                args[name] = value or exact()  # 0.0 for -0.0: calls are looked up by settings, where both are equal
            elif value is not None:
                if spread is not None and is_number(value):
                    value = (value,) * spread(input_shapes, args)
                args[name] = check(value, ndim)
            elif required:
                raise ArgumentTypeError(f"{name} must be given, got none")
            else:
                value = default if rule is None else rule(input_shapes, args)
                args[name] = check(value, ndim) if check_default else value
        if not given.keys() <= names:
            _refuse_unknown(spec, given)
        if adjust is not None:
            adjust(input_shapes, args)
    except ArgumentError as error:
        raise type(error)(f"{spec.api}: {error}") from error.__cause__
    return args


def _refuse_unknown(spec: FunctionSpec, given: Mapping[str, object]) -> None:
    names = [arg.name for arg in spec.args]
    unknown = next(name for name in given if name not in names)
    raise ArgumentError(f"arguments must be among {', '.join(names) or '(none)'}, got {unknown!r}{suggestion(unknown, names)}")


def _prepare(spec: FunctionSpec) -> tuple[frozenset[str], tuple[_Prepared, ...], Adjustment | None]:
    names = frozenset(arg.name for arg in spec.args)
    prepared = names, tuple(_prepare_one(spec, arg) for arg in spec.args), ADJUSTMENTS.get(spec.name)
    _PREPARED[spec] = prepared
    return prepared


def _prepare_one(spec: FunctionSpec, arg: ArgSpec) -> _Prepared:
    rule = None
    if arg.default_rule is not None:
        if arg.default_rule not in DEFAULT_RULES:
            known = ", ".join(DEFAULT_RULES)
            raise SpecError(f"{spec.name}.{arg.name}: default rule must be one of {known}, got {arg.default_rule!r}")
        rule = DEFAULT_RULES[arg.default_rule]
    default = None if isinstance(arg.default, Required) else arg.default
    has_default = rule is not None or default is not None
    check_default = has_default and (arg.type == "axis" or (arg.type == "axes" and rule is None))
    limited = bool(arg.choices) or arg.minimum is not None or arg.maximum is not None
    exact = None if limited else _EXACT.get(arg.type)
    check = _limited(arg, _CHECKS[arg.type](arg.name))
    spread = one_number(arg) if arg.takes_one_number else None
    return arg.name, exact, check, default, rule, check_default, arg.required, spread


def _limited(arg: ArgSpec, check: _Check) -> _Check:
    """`check`, and then the choices, minimum and maximum of `arg`."""
    if arg.choices:
        return _one_of(arg.name, arg.choices, check)
    if arg.minimum is None and arg.maximum is None:
        return check
    return _between(arg.name, arg.minimum, arg.maximum, check)


def _one_of(name: str, choices: Sequence[str], check: _Check) -> _Check:
    def choose(value: Any, ndim: int) -> Any:
        if not isinstance(value, str) or value not in choices:
            kind = ArgumentError if isinstance(value, str) else ArgumentTypeError
            raise kind(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
        return check(value, ndim)

    return choose


def _between(name: str, low: float | None, high: float | None, check: _Check) -> _Check:
    def bound(value: Any, ndim: int) -> Any:
        value = check(value, ndim)
        for number in value if isinstance(value, tuple) else (value,):
            if low is not None and not number >= low:
                raise ArgumentError(f"{name} must be at least {low}, got {value!r}")
            if high is not None and not number <= high:
                raise ArgumentError(f"{name} must be at most {high}, got {value!r}")
        return value

    return bound


def _bool(name: str) -> _Check:
    def check(value: Any, ndim: int) -> Any:
        if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
            return bool(value)
        raise ArgumentTypeError(f"{name} must be True or False, or 1 or 0, got {value!r}")

    return check


def _int(name: str) -> _Check:
    def check(value: Any, ndim: int) -> Any:
        return _to_int(name, value)

    return check


def _to_int(name: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name} must be an integer, got {value!r}")
    try:
        number = whole(value)
    except TypeError as error:
        raise not_whole(f"{name} must be an integer", value) from error
    if not -_INT_LIMIT <= number < _INT_LIMIT:
        raise IntegerRangeError(f"{name} must be an integer of 64 bits, got {_shortened(number)}")
    return number


def _shortened(number: int) -> str:
    """Return a number of many digits, which Python may refuse to write in full, by its size."""
    return f"one of {number.bit_length()} bits"


def _float(name: str) -> _Check:
    def check(value: Any, ndim: int) -> Any:
        if type(value) is float:
            return value
        return _to_float(name, value)

    return check


def _to_float(name: str, value: Any) -> float:
    if isinstance(value, (str, bytes)) or getattr(getattr(value, "dtype", None), "kind", "f") not in "fiub":
        raise ArgumentTypeError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError as error:
        raise ArgumentError(f"{name} must be a number that a float can hold, got {_shortened(value)}") from error
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{name} must be a number, got {value!r}") from error


def _str(name: str) -> _Check:
    def check(value: Any, ndim: int) -> Any:
        if isinstance(value, str):
            return value
        raise ArgumentTypeError(f"{name} must be a string, got {value!r}")

    return check


def _sequence(name: str, kind: str, convert: Callable[[str, Any], Any]) -> _Check:
    each = f"each of {name}"

    def check(value: Any, ndim: int) -> Any:
        if type(value) is not tuple:
            if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
                raise ArgumentTypeError(f"{name} must be a sequence of {kind}, got {value!r}{_in_place_of_one(name, value)}")
            value = tuple(value)
        return tuple([convert(each, item) for item in value])

    return check


def _in_place_of_one(name: str, value: object) -> str:
    written = _IN_PLACE_OF_ONE.get(name) if isinstance(value, _INTEGERS) else None
    return f"\n  hint: {written.format(value)}" if written else ""


def _ints(name: str) -> _Check:
    return _sequence(name, "integers", _to_int)


def _floats(name: str) -> _Check:
    return _sequence(name, "numbers", _to_float)


def _shape(name: str) -> _Check:
    ints = _ints(name)

    def check(value: Any, ndim: int) -> Any:
        shape = ints(value, ndim)
        if shape and min(shape) < -1:
            raise ArgumentError(f"{name} must have no length below -1, got {shape!r}")
        return shape

    return check


#: The hint for an input without an axis of features.
_SAMPLES_FIRST: Final = "\n  hint: the first axis is that of samples; reshape(x, (-1, 1)) gives each of them one feature"


def _axis(name: str) -> _Check:
    to_int = _int(name)

    def check(value: Any, ndim: int) -> Any:
        axis = to_int(value, ndim)
        if 0 <= axis < ndim:
            return axis
        if -ndim <= axis < 0:
            return axis + ndim
        axes = "1 axis" if ndim == 1 else f"{ndim} axes"
        hint = _SAMPLES_FIRST if (axis, ndim) == (1, 1) else ""
        raise ArgumentError(f"{name} must be in [{-ndim}, {ndim}) for an input of {axes}, got {axis}{hint}")

    return check


def _axes(name: str) -> _Check:
    ints, one = _ints(name), _axis(name)

    def check(value: Any, ndim: int) -> Any:
        given = ints(value, ndim)
        axes = tuple(one(axis, ndim) for axis in given)
        if len(set(axes)) != len(axes):
            raise ArgumentError(f"{name} must differ from each other, got {given!r}")
        return axes

    return check


_CHECKS: dict[str, Callable[[str], _Check]] = {
    "bool": _bool,
    "int": _int,
    "float": _float,
    "str": _str,
    "ints": _ints,
    "floats": _floats,
    "shape": _shape,
    "axis": _axis,
    "axes": _axes,
}

_EXACT: dict[str, type] = {"bool": bool, "float": float, "str": str}
