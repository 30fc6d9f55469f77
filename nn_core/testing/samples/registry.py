"""The tables that the topic modules of this package fill: right and wrong calls of each function.

Every backend must get the right ones right, and raise the same exception for the wrong ones. A package that brings
operators adds its own with `sample` and `error` before the conformance tests are collected.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.errors import ArgumentError, NNCoreError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.drawing import Draw, uniform, values

#: Settings that several samples share.
Settings: TypeAlias = dict[str, Any]

#: The interval of samples of element-wise functions if the specification has no domain.
DOMAIN: Final = (-3.0, 3.0)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One valid call of a function.

    Attributes:
        name: Its special property in a word, unique for the function.
        inputs: How each input is drawn, in order; None for an optional one that is not given.
        args: Settings by name.
        smooth: Whether central differences give the gradient here: not at kinks, not at infinity.
        gradient: Whether the gradient is compared between backends here.
        loose: By how much the tolerances are multiplied, for calls that amplify rounding.
    """

    name: str
    inputs: tuple[Draw | None, ...] = ()
    args: Mapping[str, Any] = field(default_factory=dict)
    smooth: bool = True
    gradient: bool = True
    loose: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class ErrorSample:
    """One wrong call: the exception that it must raise on every backend, and a regular expression for its text."""

    name: str
    error: type[NNCoreError]
    match: str
    inputs: tuple[Draw | None, ...] = ()
    args: Mapping[str, Any] = field(default_factory=dict)


_SAMPLES: Final[dict[str, list[Sample]]] = {}
_ERRORS: Final[dict[str, list[ErrorSample]]] = {}
#: Gradients that are a convention and not the derivative, with the reason: ``"Round"``, or ``"RoiAlign.boxes"`` for one
#: input.
CONVENTIONS: Final[dict[str, str]] = {}
#: Conventions whose rule has no derivative that nn.grad could give either.
SECOND_CONVENTIONS: Final[set[str]] = set()
#: Functions whose results do not depend on the numbers of their inputs, with the reason.
CONSTANT: Final[dict[str, str]] = {}


def sample(
    function: str,
    name: str,
    /,
    *inputs: Draw | None,
    smooth: bool = True,
    gradient: bool = True,
    loose: float = 1.0,
    **args: Any,
) -> None:
    """Add a valid call of `function`; see `Sample`."""
    _add(_SAMPLES, function, Sample(name, inputs, args, smooth, gradient, loose))


def error(function: str, name: str, exception: type[NNCoreError], match: str, /, *inputs: Draw | None, **args: Any) -> None:
    """Add a wrong call of `function`; see `ErrorSample`."""
    _add(_ERRORS, function, ErrorSample(name, exception, match, inputs, args))


def convention(reason: str, /, *gradients: str, first: bool = True, second: bool = False) -> None:
    """Note that some gradients are not derivatives, on purpose.

    Args:
        reason: Why.
        gradients: Names of functions, or ``"Function.input"`` for one input.
        first: Whether they themselves are; else only ``nn.grad`` of them is, if `second` says so.
        second: Whether ``nn.grad`` of them is a convention too.
    """
    if first:
        CONVENTIONS.update(dict.fromkeys(gradients, reason))
    if second:
        SECOND_CONVENTIONS.update(gradients)


def constant(reason: str, /, *functions: str) -> None:
    """Note that the results of some functions do not depend on the numbers of their inputs.

    The kit cannot find out whether their kernels return what an earlier call computed.

    Args:
        reason: Why.
        functions: Names of functions.
    """
    CONSTANT.update(dict.fromkeys(functions, reason))


def _add(table: dict[str, list[Any]], function: str, entry: Any) -> None:
    known = table.setdefault(function, [])
    if any(other.name == entry.name for other in known):
        raise ArgumentError(f"{function}: samples must have different names, got {entry.name!r} twice")
    known.append(entry)


def samples_of(spec: FunctionSpec) -> list[Sample]:
    """Return the samples that were written for a function, then those that follow from its specification."""
    written = _SAMPLES.get(spec.name, [])
    names = {entry.name for entry in written}
    return [*written, *(entry for entry in _derived(spec) if entry.name not in names)]


def errors_of(spec: FunctionSpec) -> list[ErrorSample]:
    """Return the wrong calls that were written for a function."""
    return list(_ERRORS.get(spec.name, []))


def named_functions() -> set[str]:
    """Names of all functions that samples were written for."""
    return {*_SAMPLES, *_ERRORS, *SECOND_CONVENTIONS, *CONSTANT, *(_function_of(gradient) for gradient in CONVENTIONS)}


def _function_of(gradient: str) -> str:
    """Return the function in the name of a gradient: "RoiAlign.boxes", or "acme.Scale.x" where "acme.Scale" has samples."""
    owner, _, last = gradient.rpartition(".")
    return owner if owner in _SAMPLES and last else gradient


@cache
def _derived(spec: FunctionSpec) -> tuple[Sample, ...]:
    return tuple(_pointwise_samples(spec))


def _pointwise_samples(spec: FunctionSpec) -> Iterator[Sample]:
    """Yield samples of an element-wise function without required settings: shapes, broadcasting, values beyond the domain."""
    count = len(spec.inputs)
    if not _is_plain_pointwise(spec):
        return
    low, high = spec.domain or DOMAIN

    def draws(*shapes: tuple[int, ...]) -> tuple[Draw, ...]:
        return tuple(uniform(*shapes[n % len(shapes)], low=low, high=high) for n in range(count))

    yield Sample("matrix", draws((3, 4)))
    yield Sample("scalar", draws(()))
    yield Sample("empty", draws((0, 3)))
    yield Sample("long", draws((1037,)))
    yield Sample("image", draws((2, 3, 4, 5)))
    if count > 1 and spec.shape == "broadcast":
        yield Sample("broadcast", draws((2, 3, 1), (1, 4)))
        yield Sample("row", draws((5, 7), (7,)))
        yield Sample("one", draws((4, 3), ()))
        yield Sample("channel", draws((2, 3, 4, 2), (1, 3, 1, 1)))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0])
    specials = tuple(values(np.roll(special, n)) for n in range(count))
    yield Sample("special", specials, smooth=False, gradient=False)


def _is_plain_pointwise(spec: FunctionSpec) -> bool:
    plain = all(entry.dtype == "float" and not entry.variadic for entry in spec.inputs)
    required = any(argument.required for argument in spec.args)
    return spec.has("pointwise") and not spec.has("seeded") and bool(spec.inputs) and plain and not required


@lru_cache(maxsize=256)
def numbers_of(spec: FunctionSpec, entry: Sample | ErrorSample, attempt: int = 0) -> tuple[np.ndarray[Any, Any] | None, ...]:
    """Return the inputs as float64 and int64 arrays, None where not given; another `attempt` draws other numbers."""
    rng = np.random.default_rng([zlib.crc32(f"{spec.name}/{entry.name}".encode()), attempt])
    missing = 0 if spec.variadic else len(spec.inputs) - len(entry.inputs)
    return tuple(None if draw is None else np.asarray(draw(rng)) for draw in entry.inputs + (None,) * missing)
