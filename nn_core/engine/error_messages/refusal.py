"""Errors of public functions that fail for a reason they did not check: they name the argument that cannot be right.

Checks at the door cost time in every call. This costs nothing until a call has failed: then the arguments are held
against the annotations of the function, and the exception becomes one of nn_core's tree. Exceptions that come out of
code of the caller (initializers, hooks, callbacks) stay what they are. So do those that a forward or backward pass runs
into when no argument is of a wrong kind: they are faults of the engine or of a kernel, and must not look like a mistake
of the caller.
"""

import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, Final, NoReturn, ParamSpec, TypeVar, get_args, get_origin

import numpy as np

from nn_core.engine.error_messages.foreign_values import hint_for_column, of_column, of_tensor
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.error_messages.whole import fraction_hint, whole
from nn_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    HostMemoryError,
    InputTypeError,
    NNCoreError,
    ShapeError,
    SignatureError,
)

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

#: Exceptions that unchecked wrong arguments cause.
FOREIGN = (
    AttributeError, LookupError, ValueError, ArithmeticError, AssertionError, RecursionError, BufferError, Warning
)  # fmt: skip
_ROOT = str(Path(__file__).parents[2])
#: Modules that compile and run passes; the arguments of a pass do not get as far.
_PASSES = frozenset(
    str(Path(__file__).parents[1] / "graph" / f"{name}.py")
    for name in (
        "backward", "backward_data", "compile", "completion", "direct", "forward", "gradient_compiler", "gradient_sums",
        "memory", "plan", "replay", "reshape", "trace",
    )
)  # fmt: skip
#: Longest description of a value.
_LONGEST = 60


def door(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function: what it raises beyond nn_core's exceptions becomes an ArgumentError.

    A TypeError becomes a SignatureError if the call does not fit the signature, and is passed on otherwise.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except FOREIGN as error:
            speak_for(function, error)
            raise_refusal(function, args, kwargs, error)
        except TypeError:
            require_fit(function, args, kwargs)
            raise
        except MemoryError as error:
            name_lack(function, error)
            raise

    return call


def name_lack(function: Callable[..., Any], error: MemoryError) -> None:
    """Raise the error that names `function`, for which the memory of the host does not suffice.

    Pass over an error that names a function already, and over one of a program that `function` has called.
    """
    text, title = str(error).partition("\n")[0], _title(function)
    is_named = isinstance(error, NNCoreError) and not text.startswith("memory:")
    if is_named or title.startswith("_") or not _is_own(error):
        return
    what = f"\n  {text}" if text else ""
    named = HostMemoryError(
        f"{title}: the arrays that it makes must fit into the memory of the host, got too little of it{what}\n"
        "  hint: free other arrays, or take a smaller batch or half precision"
    )
    if hasattr(error, "__notes__"):
        vars(named)["__notes__"] = [*error.__notes__]
    raise named from error


def fitted(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function: a TypeError becomes a SignatureError if the call does not fit the signature."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            require_fit(function, args, kwargs)
            raise

    return call


def fitted_constructor(cls: type[T]) -> type[T]:
    """Decorate a class whose constructor cannot be decorated where it is defined, such as a dataclass: it is `fitted`."""
    cls.__init__ = fitted(cls.__init__)  # type: ignore[method-assign]
    return cls


def fitted_methods(*beside: str) -> Callable[[type[T]], type[T]]:
    """Decorate a class: the public methods that it defines are `fitted`, unless one of our decorators has seen to it.

    A wrapper costs time in every call. So methods that run in each step of a program are left out, and so is `call`
    of a module, which `Module.__call__` answers for.

    Args:
        beside: Names of the methods that are left out.
    """

    def decorate(cls: type[T]) -> type[T]:
        for name, member in list(vars(cls).items()):
            if name.startswith("_") or name == "call" or name in beside:
                continue
            if isinstance(member, (classmethod, staticmethod)):
                setattr(cls, name, type(member)(_fitted_once(member.__func__)))
            elif isinstance(member, types.FunctionType):
                setattr(cls, name, _fitted_once(member))
        return cls

    return decorate


def _fitted_once(function: F) -> F:
    seen_to = function.__code__ in _WRAPPERS or hasattr(function, "__signature__")
    return function if seen_to else fitted(function)  # type: ignore[return-value]


def speak_for(function: Callable[..., Any], error: BaseException) -> None:
    """Let an error of a function that `function` is made of name `function`, which is what the caller knows.

    An error with a note of where it comes from, such as a gradient rule of a plugin, is left alone.
    """
    if getattr(error, "__notes__", ()):
        return
    text = str(error.args[0]) if error.args else ""
    inner, _, rest = text.partition(": ")
    title = _title(function)
    if isinstance(error, NNCoreError) and rest and inner in _function_names() and not title.startswith("_"):
        error.args = (f"{title}: {rest}", *error.args[1:])


def _function_names() -> frozenset[str]:
    module = sys.modules.get("nn_core.functions")  # which is built on this module
    return frozenset(getattr(module, "__all__", ()))


def require_axes(function: str, axes: Sequence[str], **operands: Any) -> None:
    """Refuse operands, given by name, that have not as many axes as `axes`, which are the names of the axes.

    Raises:
        ShapeError: for another number.
    """
    for name, operand in operands.items():
        if operand.ndim != len(axes):
            wanted = f"{len(axes)} axes ({', '.join(axes)})"
            raise ShapeError(f"{function}: {name} must have {wanted}, got shape {tuple(operand.shape)}")


def refuses_rest(function: F) -> F:
    """Decorate a method that is called too often for a wrapper: it takes ``*surplus`` and ``**unknown``, and nobody sees them.

    It gives them to `require_fit` where there are some.
    """
    whole = signature(function)
    rest = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    shown = [parameter for parameter in whole.parameters.values() if parameter.kind not in rest]
    function.__signature__ = whole.replace(parameters=shown)  # type: ignore[attr-defined]  # functions take attributes
    return function


def raise_refusal(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: BaseException
) -> NoReturn:
    """Raise `error`, which `function` raised for these arguments, or an ArgumentError because of it."""
    found = _refusal(function, args, kwargs, error)
    if found is error:  # with a cause of its own, which `from` would take away
        raise error
    raise found from error


def _refusal(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: BaseException
) -> BaseException:
    """Return the error to raise instead of `error`, which `function` raised for these arguments."""
    is_ours = isinstance(error, NNCoreError)
    if (is_ours and not isinstance(error, AttributeError)) or not _is_own(error):
        return error
    try:
        given = signature(function).bind(*args, **kwargs).arguments
    except TypeError as mismatch:
        return mismatch
    name = _title(function)
    shown = {key: value for key, value in given.items() if key != "self"}
    unfit = _first_unfit(function, shown)
    if unfit is not None:
        return unfit
    if is_ours or any(frame.f_code.co_filename in _PASSES for frame in _frames(error)):
        return error
    listed = ", ".join(f"{key}={described(value)}" for key, value in shown.items())
    return ArgumentError(f"{name}: the arguments must fit each other, got {listed} ({type(error).__name__}: {error})")


def _first_unfit(function: Callable[..., Any], given: Mapping[str, Any]) -> ArgumentTypeError | None:
    """Return the error of the first argument that is not of its annotated type; None if there is none."""
    for key, wanted in _hints(function).items():
        if key in given and not _fits(given[key], wanted):
            names = _names_of(wanted)
            # an input of a function is a Variable, or what stands for one
            kind = InputTypeError if names[0] == "Variable" and len(names) > 1 else ArgumentTypeError
            return kind(f"{_title(function)}: {key} must be {_words(names)}, got {described(given[key])}")
    return None


def require_fit(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise a SignatureError if a call, which has ended in a TypeError, does not fit the signature of `function`."""
    wanted = signature(function)
    title = _title(function)
    if next(iter(wanted.parameters), None) in ("self", "cls"):  # no argument that the caller counts
        title = type(args[0]).__name__ if args and function.__name__ == "__init__" else title
        wanted, args = wanted.replace(parameters=list(wanted.parameters.values())[1:]), args[1:]
    _require(wanted, title, args, kwargs)


def require_call(called: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise a SignatureError if a call of an object, which has ended in a TypeError, does not fit its method `call`."""
    _require(signature(called.call), type(called).__name__, args, kwargs)


def _require(wanted: Signature, title: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    try:
        wanted.bind(*args, **kwargs)
    except TypeError as mismatch:
        raise SignatureError(f"{title}: {_misfit(wanted, args, kwargs) or mismatch}") from None


def _misfit(wanted: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Say what is wrong with a call; nothing where only the text of Python says it."""
    parameters = wanted.parameters.values()
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)
    unknown = None if takes_any else next((name for name in kwargs if name not in wanted.parameters), None)
    if unknown is not None:  # a name that does not exist says more than the argument that is missing because of it
        return unknown_keyword(wanted, unknown)
    try:
        given = wanted.bind_partial(*args, **kwargs).arguments
    except TypeError:
        n_taken = _n_positional(wanted)
        return "" if len(args) <= n_taken else surplus_arguments(wanted, len(args))
    missing = [parameter.name for parameter in parameters if _is_required(parameter) and parameter.name not in given]
    return f"{missing[0]} must be given, got none" if missing else ""


def unknown_keyword(wanted: Signature, name: str) -> str:
    """Return the text about a keyword argument that a function does not have."""
    return f"got an unexpected keyword argument {name!r}{suggestion(name, wanted.parameters)}"


def surplus_arguments(wanted: Signature, n_given: int) -> str:
    """Return the text about more positional arguments than a function takes."""
    n_taken = _n_positional(wanted)
    return f"must get at most {n_taken} positional argument{'s' * (n_taken != 1)}, got {n_given}"


def _n_positional(wanted: Signature) -> int:
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in wanted.parameters.values())


def _is_required(parameter: Parameter) -> bool:
    is_rest = parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return parameter.default is Parameter.empty and not is_rest


def _title(function: Callable[..., Any]) -> str:
    """Return the name under which a function is called; that of its class for a constructor."""
    return function.__qualname__.removesuffix(".__init__").rpartition(".")[2]


def _is_own(error: BaseException) -> bool:
    """Return whether nn_core has raised the exception, itself or by way of NumPy."""
    entered = False
    for frame in _frames(error):
        file = frame.f_code.co_filename
        own = file.startswith(_ROOT)
        if entered and not own and not _is_library(file):
            return False
        entered = entered or own
    return entered


def _frames(error: BaseException) -> Iterator[types.FrameType]:
    """Yield the frames that the exception went through, the outermost first."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _is_library(file: str) -> bool:
    if "site-packages" in file:
        return any(f"/{name}" in file for name in ("numpy", "h5py", "nn_ext_"))
    return "/lib/python" in file or file.startswith("<") or file.endswith(".pyx")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of the arguments, without those that name what exists for type checkers only."""
    found: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        try:
            found[name] = eval(annotation, function.__globals__) if isinstance(annotation, str) else annotation
        except NameError:
            continue
    return found


def _fits(value: Any, wanted: Any) -> bool:
    """Return whether a value can be of an annotated type; True where that cannot be told."""
    if wanted is Any:
        return True
    if isinstance(wanted, TypeVar):
        return wanted.__bound__ is None or _fits(value, wanted.__bound__)
    if _is_union(wanted):
        return any(_fits(value, part) for part in get_args(wanted))
    plain = get_origin(wanted) or wanted
    if not _is_checkable(plain):
        return True
    if plain in (float, int):
        return hasattr(value, "__index__" if plain is int else "__float__")
    return isinstance(value, plain) and _members_fit(value, wanted)


def _is_checkable(plain: Any) -> bool:
    """Return whether `isinstance` answers for a type."""
    is_protocol = getattr(plain, "_is_protocol", False) and not getattr(plain, "_is_runtime_protocol", False)
    return isinstance(plain, type) and not is_protocol


def _members_fit(value: Any, wanted: Any) -> bool:
    if get_origin(wanted) is not Sequence or not isinstance(value, (list, tuple)):
        return True
    return all(_fits(member, get_args(wanted)[0]) for member in value)


def _names_of(wanted: Any) -> list[str]:
    """Return the names of the types that an annotation allows."""
    if isinstance(wanted, TypeVar):
        wanted = wanted.__bound__
    if not _is_union(wanted):
        name = _name_of(wanted)
        return ["None" if name == "NoneType" else name]
    return list(dict.fromkeys(name for part in get_args(wanted) for name in _names_of(part)))


def _is_union(wanted: Any) -> bool:
    origin = get_origin(wanted)
    return origin is types.UnionType or str(origin) == "typing.Union"


def _words(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else f"of the type {names[0]}"


def _name_of(wanted: Any) -> str:
    name = getattr(get_origin(wanted) or wanted, "__name__", str(wanted))
    return f"Sequence of {_name_of(get_args(wanted)[0])}" if get_origin(wanted) is Sequence else name


def described(value: Any) -> str:
    """Return a value in a few words."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    try:
        text = repr(value)
    except Exception:  # of the caller's class, or an integer with more digits than Python prints
        return type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def checked_flag(name: str, value: object) -> bool:
    """Return a flag as a bool; 0, 1 and the booleans of NumPy serve.

    Raises:
        ArgumentError: for everything else: the truth of an array or a text is rarely what was meant.
    """
    if value is True or value is False:
        return value
    if isinstance(value, (int, np.integer, np.bool_)) and value in (0, 1):
        return bool(value)
    raise ArgumentError(f"{name}: must be True or False, or 1 or 0, got {described(value)}")


def checked_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number as an int; the integers of NumPy serve.

    Raises:
        ArgumentError: when it is another number than `least` or more, or none.
    """
    try:
        count = least - 1 if isinstance(value, (bool, np.bool_)) else whole(value)
    except TypeError:
        count = least - 1
    if count < least:
        text = f"{name} must be a whole number of at least {least}, got {described(value)}{fraction_hint(value)}"
        raise ArgumentError(text)
    return count


def real_numbers(name: str, value: Any) -> np.ndarray[Any, Any]:
    """`value` as a NumPy array, which must hold real numbers or booleans; shares memory where it is one already."""
    if type(value) is not np.ndarray and isinstance(value, np.ndarray):
        _require_unmasked(name, value)
    try:
        values = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        taken = of_tensor(value)
        if taken is None:
            raise ArgumentError(f"{name}: values must form an array, got {described(value)} ({error})") from error
        values = taken
    if values.dtype.kind in "fiub":
        return values
    if values.dtype.hasobject:
        column = of_column(value, values)
        values = values if column is None else column
    dtype = values.dtype
    if dtype.kind not in "fiubV" or dtype.hasobject or issubclass(dtype.type, np.void):  # bfloat16 is of kind V
        raise DTypeError(f"{name}: values must be real numbers or booleans, got dtype {dtype}{hint_for_column(value)}")
    return values


def _require_unmasked(name: str, value: np.ndarray[Any, Any]) -> None:
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):  # NumPy imports this module when it is first named
        raise ArgumentError(
            f"{name}: values must have no masked elements, got {np.sum(value.mask)} among {value.size}\n"
            "  hint: say what to compute with in their place, for example values.filled(0)"
        )


#: The code of what the decorators of this module make.
_WRAPPERS: Final = frozenset(decorator(lambda: None).__code__ for decorator in (door, fitted))
