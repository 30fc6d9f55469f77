"""The numbers of a solver: as arguments of its constructor, as its attributes, and their checks."""

import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nn_core.engine.error_messages.refusal import described, require_fit
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.errors import ArgumentError, SignatureError

if TYPE_CHECKING:
    from nn_core.solvers.base import Solver

#: Names that other frameworks give to the learning rate.
RATE_NAMES: Final = ("lr", "alpha", "eta", "learning_rate", "rate")
#: Numbers that count something.
_COUNTS: Final = frozenset({"interval", "history", "max_iterations"})
#: Bounds of numbers by name, with their wording in messages.
_BOUNDS: Final[Sequence[tuple[Collection[str], Callable[[float], bool], str]]] = (
    ({*RATE_NAMES, "clip_norm"}, lambda number: number >= 0, "at least 0"),
    (RATE_NAMES, math.isfinite, "finite"),
    (_COUNTS, lambda number: number >= 1 and number % 1 == 0, "a whole number of at least 1"),
    ({"gamma"}, lambda number: number > 0, "greater than 0"),
    ({"beta1", "beta2"}, lambda number: 0 <= number < 1, "from 0 to below 1"),
)


class Number:
    """One number of a solver as its attribute.

    Args:
        index: Its place in `hyper_names`.
        name: Its name.
        fixed: Whether it cannot be changed.
    """

    def __init__(self, index: int, name: str, fixed: bool) -> None:
        self._index = index
        self._name = name
        self._fixed = fixed

    def __get__(self, solver: "Solver | None", owner: type["Solver"]) -> Any:
        if solver is None:
            return self
        kind = solver._types[self._index]
        return kind(solver._numbers[self._index])

    def __set__(self, solver: "Solver", value: Any) -> None:
        if self._fixed:
            raise ArgumentError(
                f"{solver.name}: {self._name} must be given to the constructor, since states depend on it, "
                f"got an assignment of {value!r}"
            )
        solver._set_number(self._index, checked_number(solver.name, self._name, value))


class shown:  # noqa: N801  # a decorator, as `property`
    """A method that is read as an attribute; an object that is assigned under its name takes its place."""

    def __init__(self, method: Callable[[Any], Any]) -> None:
        functools.update_wrapper(self, method)  # type: ignore[arg-type]  # for what reads documentation
        self._method = method

    def __get__(self, owned: object, owner: type) -> Any:
        return self if owned is None else self._method(owned)


def checked_number(function: str, name: str, value: Any) -> float:
    """`value` as a float, in the range that the number called `name` must have.

    Raises:
        ArgumentError: when it is no number or out of range.
    """
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError) as error:
        holds_parameters = isinstance(value, (Mapping, Iterator)) or hasattr(value, "get_parameters")
        hint = "\n  hint: parameters are given to set_parameters(), once the solver is made" if holds_parameters else ""
        raise ArgumentError(f"{function}: {name} must be a number, got {described(value)}{hint}") from error
    if math.isnan(number):
        raise ArgumentError(f"{function}: {name} must be a number, got {value!r}")
    for names, is_right, bound in _BOUNDS:
        if name in names and not is_right(number):
            raise ArgumentError(f"{function}: {name} must be {bound}, got {value!r}")
    return number


def kind_of(name: str, value: float) -> type:
    """Return the type in which a number is shown."""
    return bool if isinstance(value, bool) else int if name in _COUNTS else float


def first_rate(rate: float) -> float:
    """Return `rate` as the initial rate of a schedule: infinity for 0, so that 0 divided by it is 0 and not NaN."""
    return rate or math.inf


def unknown_number(solver: str, names: Sequence[str], name: str) -> str:
    """Return the message about an attribute that a solver with the numbers `names` lacks."""
    if not names:
        return f"{solver}: has no attribute {name!r}"
    text = f"{solver}: an attribute must be one of {', '.join(names)}, got {name!r}"
    if name in RATE_NAMES:
        return f"{text}\n  hint: the learning rate is {names[0]}, or set_learning_rate(value)"
    return f"{text}{suggestion(name, names)}"


def explain_calls(solver: type) -> None:
    """Give errors of a class of solvers hints: of wrong arguments, and of its rule, which is not ``step()`` elsewhere."""
    if "__init__" in vars(solver):
        setattr(solver, "__init__", _explaining(vars(solver)["__init__"]))  # noqa: B010  # checkers see the class as written
    if isinstance(vars(solver).get("step"), staticmethod):
        setattr(solver, "step", staticmethod(_explaining_step(solver)))  # noqa: B010  # as above


def _explaining_step(solver: Any) -> Callable[..., None]:
    step: Callable[..., None] = solver.step

    @functools.wraps(step)
    def call(*args: Any, **kwargs: Any) -> None:
        if not args and not kwargs:
            name = solver.__name__
            raise SignatureError(
                f"{name}.step: the rule must be given arrays, got nothing\n  hint: update() changes parameters"
            )
        step(*args, **kwargs)

    return call


def _explaining(constructor: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(constructor)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        try:
            constructor(self, *args, **kwargs)
        except TypeError:
            require_fit(constructor, (self, *args), kwargs)
            raise

    return __init__
