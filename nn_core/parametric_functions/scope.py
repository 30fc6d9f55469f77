"""Parameters by name: nested scopes, and the decorator that gives a function a scope of its own."""

import functools
import inspect
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.shapes import checked_shape
from nn_core.engine.dispatch.blame import require_real
from nn_core.engine.dispatch.supplied import plugin_of
from nn_core.engine.error_messages.refusal import FOREIGN, checked_flag, described, door, fitted, raise_refusal, require_fit
from nn_core.engine.error_messages.whole import with_whole_numbers
from nn_core.engine.graph.imperative import call_at_once, has_ndarray
from nn_core.engine.graph.modes import NO_GRAD
from nn_core.engine.graph.parameter_sources import HasParameters, parameters_of
from nn_core.engine.graph.shared_layers import NAMELESS
from nn_core.engine.graph.trace import Trace
from nn_core.engine.runtime.atomic_calls import atomically
from nn_core.engine.runtime.context_values import MEMO, Ambient, AmbientScope
from nn_core.engine.runtime.holders import CURRENT_SCOPE, SCOPES
from nn_core.engine.runtime.locks import fork_safe
from nn_core.errors import ArgumentError, HostMemoryError, ShapeError
from nn_core.initializer import BaseInitializer
from nn_core.parametric_functions.freezing import FROZEN, warn_of_thawing
from nn_core.parametric_functions.repeated import as_used, call_again, remember
from nn_core.typing import Shape
from nn_core.variable import Variable

#: Parameters and further scopes by name.
Scope: TypeAlias = dict[str, Any]
#: An initializer: a callable that takes a shape, or the values themselves.
Initializer: TypeAlias = BaseInitializer | Callable[[Shape], Any] | np.ndarray[Any, Any]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_ROOT: Final[Scope] = {}
SCOPES.append(_ROOT)
_CURRENT: Final[Ambient[Scope]] = Ambient("parameter_scope", _ROOT)
#: The program's own dictionary that holds the current scope, for messages; None: the parameters of the process.
_OWN: Final[ContextVar[Scope | None]] = ContextVar("own parameters", default=None)
_CURRENT.variables = (*_CURRENT.variables, _OWN)
CURRENT_SCOPE.append(_CURRENT.get)
_CREATION: Final = fork_safe(threading.Lock())
#: Parameters that are alive by number and creating thread, and how many were made: a failing call takes back its own.
_MADE: Final[weakref.WeakValueDictionary[tuple[int, int], Variable]] = weakref.WeakValueDictionary()
_N_MADE: Final = [0]
#: The names that layers give their scopes.
_LAYERS: Final[set[str]] = set()


class OfModule(OrderedDict[str, Any]):
    """The scope of a module."""


class OneLayer(OfModule):
    """The scope of an object that is one layer: a program that calls it twice means to share its parameters."""


def parameter_scope(name: str, scope: Scope | None = None) -> AmbientScope[Scope]:
    """Put the parameters that are made or looked up inside a ``with`` block under a name.

    Args:
        name: Name of the scope; '/' separates nested ones.
        scope: Dictionary that holds the scope; None: the scope of the enclosing block, or the parameters of the
            process. Threads and async tasks do not see each other's blocks.

    Returns:
        The scope, a dictionary of parameters and further scopes.

    Raises:
        ArgumentError: when a parameter has the name.

    Example:
        >>> from nn_core.parameter import get_parameter_or_create, get_parameters
        >>> with parameter_scope("encoder/layer1"):
        ...     w = get_parameter_or_create("w", (2, 3))
        >>> with parameter_scope("encoder"):
        ...     list(get_parameters())
        ['layer1/w']
    """
    own = _OWN.get() if scope is None else scope
    return _CURRENT.scope_of(lambda: _opened(_CURRENT.get() if scope is None else scope, name), own)


def get_current_parameter_scope() -> Scope:
    """Return the scope in which parameters are made and looked up now.

    Example:
        >>> with nn.parameter_scope("encoder"):
        ...     scope = nn.get_current_parameter_scope()
        >>> scope
        {}
    """
    return _CURRENT.get()


def root_parameter_scope() -> Scope:
    """Return the outermost scope: of the process, or the program's own dictionary that `parameter_scope` was given."""
    own = _OWN.get()
    return _ROOT if own is None else own


@door
def get_parameters(
    params: dict[str, Variable] | HasParameters | str | None = None, path: str = "", grad_only: bool = True
) -> dict[str, Variable]:
    """Return the parameters of the current scope and of those inside it, in the order in which they were made.

    Args:
        params: Dictionary to add them to; None: a new one. A module, a scope or the name of one: its parameters instead, in
            a new dictionary.
        path: Put in front of each name, followed by '/'.
        grad_only: Only the parameters that need a gradient, which are those to train.

    Returns:
        Variables by their path from the current scope.

    Raises:
        UnknownNameError: when there is no scope of the name.

    Example:
        >>> y = PF.affine(nn.Variable((8, 4)), 3, name="output")
        >>> {name: w.shape for name, w in nn.get_parameters().items()}
        {'output/affine/W': (4, 3), 'output/affine/b': (3,)}
    """
    prefix = f"{path}/" if path else ""
    if params is None or (isinstance(params, dict) and not _is_scope(params)):
        found = {} if params is None else params
        _collect(_CURRENT.get(), prefix, grad_only, found)
        return found
    chosen = parameters_of("get_parameters", params, grad_only=grad_only)
    return {f"{prefix}{name}": parameter for name, parameter in chosen.items()}


def _is_scope(params: dict[str, Any]) -> bool:
    """Return whether a dictionary is a scope of ours; NNabla's programs collect parameters in dictionaries of any content."""
    found = (_path_between(outermost, params) for outermost in (_ROOT, root_parameter_scope()))
    return isinstance(params, OfModule) or any(path is not None for path in found)


def get_parameter(key: str) -> Variable | None:
    """Return the parameter called `key` ('/' separates scopes) in the current scope, or None when there is none.

    Example:
        >>> from nn_core.parameter import get_parameter
        >>> y = PF.affine(nn.Variable((8, 20)), 10, name="output")
        >>> get_parameter("output/affine/W").shape
        (20, 10)
        >>> get_parameter("output/affine/V") is None
        True
    """
    scope, name = _lookup(key)
    found = None if scope is None else scope.get(name)
    if found is not None and not isinstance(found, Variable):
        raise ArgumentError(f"get_parameter: key must name a parameter, got the scope {key!r}")
    return found


@fitted
def set_parameter(key: str, param: Variable) -> None:
    """Make `param` the parameter called `key` in the current scope, in place of an older one.

    Args:
        key: Name of the parameter; '/' separates scopes.
        param: The Variable.

    Raises:
        ArgumentError: when `param` is not a Variable, or `key` is the name of a scope.

    Example:
        >>> from nn_core.parameter import set_parameter
        >>> set_parameter("layer/w", nn.Variable((20, 10), need_grad=True))
        >>> list(nn.get_parameters())
        ['layer/w']
    """
    if not isinstance(param, Variable):
        raise ArgumentError(f"set_parameter: param must be a Variable, got {type(param).__name__}")
    *scopes, name = _parts("set_parameter", key)
    scope = _opened(_CURRENT.get(), "/".join(scopes))
    if name in scope and not isinstance(scope[name], Variable):
        raise ArgumentError(f"set_parameter: key must not name a scope, got {_whole_path(key)!r}")
    scope[name] = param


@fitted
def pop_parameter(key: str) -> Any:
    """Take the parameter or the whole scope called `key` out of the current scope; None when there is none.

    Example:
        >>> from nn_core.parameter import pop_parameter
        >>> y = PF.affine(nn.Variable((8, 20)), 10)
        >>> pop_parameter("affine/b").shape
        (10,)
        >>> list(nn.get_parameters())
        ['affine/W']
    """
    scope, name = _lookup(key)
    return None if scope is None else scope.pop(name, None)


@fitted
def clear_parameters() -> None:
    """Forget all parameters of the current scope and of those inside it.

    Example:
        >>> y = PF.affine(nn.Variable((8, 4)), 3)
        >>> nn.clear_parameters()
        >>> nn.get_parameters()
        {}
    """
    _CURRENT.get().clear()


def get_parameter_or_create(
    name: str,
    shape: Sequence[int] | int | None = None,
    initializer: Initializer | None = None,
    need_grad: bool = True,
    as_need_grad: bool | None = None,
) -> Variable:
    """Return the parameter called `name` in the current scope, made if it is not there.

    Args:
        name: Name of the parameter; '/' separates scopes.
        shape: Its shape, an integer for one axis; may be left out when `initializer` holds the values.
        initializer: Makes the values from the shape, or holds them; None: zeros.
        need_grad: Whether the parameter is one to train; an older parameter is changed to it, unless it is frozen.
        as_need_grad: Whether the returned variable needs a gradient; None: as `need_grad`. Never in ``no_grad()``.

    Returns:
        A variable that shares data and gradient with the parameter.

    Raises:
        ShapeError: when there is one of another shape, or the initial values have another shape.
        ArgumentError: when neither shape nor values are given, or `initializer` is neither callable nor an array.

    Example:
        >>> from nn_core.parameter import get_parameter_or_create
        >>> w = get_parameter_or_create("layer/w", (20, 10), I.NormalInitializer(0.1))
        >>> get_parameter_or_create("layer/w", (20, 10)).data is w.data
        True
    """
    if type(shape) is not tuple and shape is not None:
        shape = checked_shape(shape)
    parameter = _CURRENT.get().get(name)
    if type(parameter) is not Variable:
        parameter = _found_or_created(name, shape, initializer, need_grad)
    storage = parameter._storage or parameter.storage
    if shape is not None and storage.data._shape != shape:
        raise ShapeError(
            f"get_parameter_or_create: parameter {_whole_path(name)!r} must keep its shape {parameter.shape}, "
            f"got {shape}\n"
            "  hint: give the function a name of its own, or call nn_core.clear_parameters()"
        )
    if parameter._need_grad is not need_grad and parameter.need_grad != need_grad:
        if parameter in FROZEN:
            return parameter._unlinked(False)
        _change_need_grad(parameter, name, need_grad)
    wanted = need_grad if as_need_grad is None else checked_flag("as_need_grad", as_need_grad)
    return parameter._unlinked(wanted and not NO_GRAD.get())


def _change_need_grad(parameter: Variable, name: str, need_grad: bool) -> None:
    parameter.need_grad = need_grad
    if need_grad:
        warn_of_thawing(_whole_path(name))


def trained(
    name: str,
    shape: Sequence[int],
    initializer: Initializer,
    fix_parameters: bool,
    apply: Callable[[Variable], Variable] | None = None,
) -> Variable:
    """Return the parameter to train called `name` in the current scope, as a layer uses it: after `apply`."""
    # Hot: each layer of a dynamic graph asks for its parameters, and nearly always they are there and fit.
    parameter = _CURRENT.get().get(name)
    if type(parameter) is Variable and parameter._need_grad is True:
        storage = parameter._storage
        if storage is not None and storage.data._shape == shape:
            variable = as_used(parameter, not fix_parameters and not NO_GRAD.get())
            return variable if apply is None else apply(variable)
    parameter = get_parameter_or_create(name, shape, initializer, True, not fix_parameters)
    return parameter if apply is None else apply(parameter)


def _whole_path(name: str, scope: Scope | None = None) -> str:
    """`name` in `scope`, else the current one, as a path from the root, or from the dictionary of the program."""
    scope = _CURRENT.get() if scope is None else scope
    for outermost in (_ROOT, _OWN.get()):
        path = None if outermost is None else _path_between(outermost, scope)
        if path is not None:
            return f"{path}{name}"
    return name


def _path_between(outer: Scope, inner: Scope) -> str | None:
    if outer is inner:
        return ""
    for key, member in list(outer.items()):  # other threads may add parameters meanwhile
        path = None if isinstance(member, Variable) else _path_between(member, inner)
        if path is not None:
            return f"{key}/{path}"
    return None


def _default_scope(scope: Scope) -> str | None:
    """Return the kind of the layers that keep their parameters in `scope` when they have no name.

    The whole path says it too, but is searched for among all scopes.
    """
    for outermost in filter(None, (_ROOT, _OWN.get())):
        for layer in () if type(outermost) is OneLayer else _LAYERS:
            if outermost.get(layer) is scope:
                return layer
    return None


def _found_or_created(name: str, shape: Sequence[int] | None, initializer: Initializer | None, need_grad: bool) -> Variable:
    path, _, last = name.rpartition("/")
    if not last:
        raise ArgumentError(f"get_parameter_or_create: a parameter must have a name, got {name!r}")
    scope = _opened(_CURRENT.get(), path) if path else _CURRENT.get()
    parameter = scope.get(last)
    if parameter is None:
        parameter = _created(name, shape, initializer, need_grad)
        layer = _default_scope(scope)
        if layer is not None:  # named by its kind alone
            NAMELESS[parameter] = f"{layer}/{last}"
        with _CREATION:
            _MADE[_N_MADE[0], threading.get_ident()] = parameter
            _N_MADE[0] += 1
            parameter = scope.setdefault(last, parameter)
    if not isinstance(parameter, Variable):
        raise ArgumentError(f"get_parameter_or_create: name must not be that of a scope, got {_whole_path(name)!r}")
    return parameter


class Parametric(Protocol[P, R_co]):
    """A function that keeps its parameters in a scope: the decorated function, with one more argument at the end."""

    __name__: str

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload  # the type system has no way to add `name` to the arguments of a function, so these are not checked
    def __call__(self, *args: Any, name: str | None, **kwargs: Any) -> R_co: ...


@fitted
def parametric_function_api(
    scope_name: str | None = None, param_desc: Sequence[tuple[str, str, str, bool]] | None = None
) -> Callable[[Callable[P, R]], Parametric[P, R]]:
    """Decorate a function that makes parameters: they go under `scope_name`, or under ``name/scope_name``.

    With an NdArray among its arguments the function computes at once: it gets NdArrays in place of Variables, what it
    does to its parameters builds no graph, and its results are NdArrays.

    The decorated function has one more argument at the end, ``name``, unless it declares one itself; it need not use
    it. Its docstring gets the arguments that all parametric functions share, and the list of parameters.

    Args:
        scope_name: Name of the scope; None: the name of the function.
        param_desc: For each parameter its name, description, shape in words, and whether it is one to train.

    Example:
        >>> import nn_core.functions as F
        >>> @parametric_function_api("scale", [("a", "Factor", "()", True)])
        ... def scale(x):
        ...     '''Multiply by one trained factor.'''
        ...     return F.mul2(x, get_parameter_or_create("a", (1,) * x.ndim))
    """
    decorate: Any = _decorator(scope_name, param_desc, repeats=False)
    return decorate


def layer(
    scope_name: str | None = None, param_desc: Sequence[tuple[str, str, str, bool]] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As ``parametric_function_api``, for functions that declare ``name`` themselves, so that checkers see it.

    A function must not do more than its results show: where a dynamic graph repeats, it is not called again.
    """
    return _decorator(scope_name, param_desc, repeats=True)


def _decorator(
    scope_name: str | None, param_desc: Sequence[tuple[str, str, str, bool]] | None, *, repeats: bool
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        scope = function.__name__ if scope_name is None else scope_name
        _LAYERS.add(scope)
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name != "name"]
        n_positional = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        parameters.insert(n_positional, _NAME)

        @functools.wraps(function)
        def parametric(*args: Any, name: str | None = None, **kwargs: Any) -> R:
            if len(args) == n_positional + 1:
                *args, name = args  # type: ignore[assignment]  # a list serves
            if name is not None and type(name) is not str:
                name = _checked_name(function, name)
            base = _CURRENT.get()
            around = base if name is None else base.get(name)
            inner = around.get(scope) if type(around) is dict else None
            if type(inner) is not dict:  # not there yet, or one of the names is a path
                inner = _opened(base, scope if name is None else f"{name}/{scope}")
            trace = MEMO.get() if repeats else None
            if trace is not None:
                again = call_again(function, trace, inner, args, kwargs)
                if again is not None:
                    return again  # type: ignore[return-value]
            return _call(function, parametric, trace, inner, args, kwargs)

        parametric.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        parametric.__doc__ = _documented(function, parameters, scope, param_desc or ())
        return parametric  # type: ignore[return-value]

    return decorate


def _call(
    function: Callable[..., R],
    parametric: Callable[..., R],
    trace: Trace | None,
    scope: Scope,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> R:
    """Call a function in its scope, and take back the parameters that it has made if it fails."""
    place = None if trace is None else trace.node
    n_made = _N_MADE[0]
    (token,) = atomically(_CURRENT.replace, (scope,))
    try:
        given, named = with_whole_numbers(function, args, kwargs)
        # as `has_ndarray`, which would be one more call for each layer
        if NdArray in map(type, args) or (kwargs and has_ndarray(kwargs.values())):
            return call_at_once(function, *given, **named)
        result = function(*given, **named)
        if place is not None:
            remember(function, place, scope, args, kwargs, result)
        return result
    except BaseException as error:
        _take_back(scope, n_made)
        _explain(function, parametric, args, kwargs, error)
        raise
    finally:
        _CURRENT.restore(token)


def _checked_name(function: Callable[..., Any], name: object) -> str:
    if not isinstance(name, str):
        raise ArgumentError(f"{function.__name__}: name must be a string, got {described(name)}")
    return str(name)


def _explain(
    function: Callable[..., Any],
    parametric: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    error: BaseException,
) -> None:
    """Raise an error about the arguments in place of one that says nothing of them."""
    if isinstance(error, FOREIGN):
        raise_refusal(function, tuple(args), kwargs, error)
    if isinstance(error, TypeError):
        require_fit(parametric, tuple(args), kwargs)


_NAME: Final = inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=str | None)

#: Descriptions of arguments that many parametric functions share.
SHARED_ARGUMENTS: Final[Mapping[str, str]] = {
    "w_init": "Initial weight: an initializer, or an array. Default: uniform within Glorot's limits.",
    "b_init": "Initial bias: an initializer, or an array. Default: zeros.",
    "base_axis": "First axis that belongs to one sample; the axes before it count samples.",
    "fix_parameters": "Do not train the parameters: the output needs no gradient because of them.",
    "rng": "Generator for the default initial values; None: the one that `nn_core.seed` seeds.",
    "with_bias": "Add a bias.",
    "apply_w": "Called with the weight, returns the one to use: for example `PF.weight_normalization`.",
    "apply_b": "Called with the bias, returns the one to use.",
    "pad": "Zeros added on both sides of each spatial axis. Default: 0.",
    "stride": "Distance of neighbouring outputs along each spatial axis. Default: 1.",
    "dilation": "Distance of neighbouring kernel elements along each spatial axis. Default: 1.",
    "group": "Number of groups into which the channels are divided.",
    "channel_last": "The channels are the last axis of `inp`, not the one at `base_axis`.",
    "kernel": "Lengths of the kernel along the spatial axes; one number stands for all of them.",
    "outmaps": "Number of output channels.",
    "n_outmaps": "Number of output features, or their shape.",
    "param_init": "Initializers or arrays by name of the parameter, in place of the defaults.",
    "no_scale": "Do not use gamma.",
    "no_bias": "Do not use beta.",
    "eps": "Added to the variance.",
    "output_stat": "Also return the mean and the variance.",
    "name": "Name of a scope around the parameters.",
}


#: The errors of every function that makes parameters.
_ERRORS: Final = [
    "    ArgumentError: when an input is neither a Variable nor an NdArray, or an argument is not what it is said to be.",
    "    ShapeError: when shapes do not fit, or a parameter of the name has another shape.",
]


def _documented(
    function: Callable[..., Any],
    parameters: Sequence[inspect.Parameter],
    scope: str,
    param_desc: Sequence[tuple[str, str, str, bool]],
) -> str:
    lines = _with_arguments(inspect.cleandoc(function.__doc__ or "").splitlines())
    start = lines.index("Args:")
    end = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith("    ")), len(lines))
    own = {line.strip().partition(":")[0] for line in lines[start:end]}
    shared = [p.name for p in parameters if p.name in SHARED_ARGUMENTS and p.name not in own]
    lines[end:end] = [f"    {name}: {SHARED_ARGUMENTS[name]}" for name in shared]
    if param_desc:
        _add_errors(lines)
        lines += ["", f'Parameters in the scope "{scope}":']
        lines += [
            f"    {name}: {text} Shape {shape}.{'' if trained else ' Not trained.'}"
            for name, text, shape, trained in param_desc
        ]
    return "\n".join(lines)


def _add_errors(lines: list[str]) -> None:
    """Say in the section of errors what every function that makes parameters raises."""
    if "Raises:" not in lines:
        place = next((lines.index(title) for title in ("Notes:", "References:", "Example:") if title in lines), len(lines))
        lines[place:place] = ["Raises:", ""]
    lines[lines.index("Raises:") + 1 : lines.index("Raises:") + 1] = _ERRORS


def _with_arguments(lines: list[str]) -> list[str]:
    """Return the lines of a docstring with a section of arguments, which comes before the others."""
    if "Args:" in lines:
        return lines
    end = next((i for i, line in enumerate(lines) if i and line.endswith(":") and not line.startswith(" ")), None)
    return [*lines, "", "Args:"] if end is None else [*lines[:end], "Args:", "", *lines[end:]]


def _parts(function: str, key: str) -> list[str]:
    parts = [part for part in key.split("/") if part]
    if not parts:
        raise ArgumentError(f"{function}: a parameter must have a name, got {key!r}")
    return parts


def _opened(scope: Scope, path: str) -> Scope:
    """Return the scope at `path` inside `scope`, made if need be."""
    if not isinstance(path, str):
        raise ArgumentError(f"parameter_scope: the name of a scope must be a string, got {path!r}")
    outer = scope
    for part in path.split("/"):
        if not part:
            continue
        inner = scope.get(part)
        if inner is None:
            inner = scope.setdefault(part, {})
        elif type(inner) is not dict:
            whole = _whole_path(path, outer)
            raise ArgumentError(f"parameter_scope: a scope must not have the name of a parameter, got {whole!r}")
        scope = inner
    return scope


def _take_back(scope: Scope, n_made: int) -> None:
    """Remove the parameters in `scope` that this thread has made since there were `n_made`: their function has failed."""
    if _N_MADE[0] == n_made:
        return
    thread = threading.get_ident()
    made = {id(parameter) for (number, maker), parameter in list(_MADE.items()) if number >= n_made and maker == thread}
    waiting = [scope]
    while waiting:
        inner = waiting.pop()
        for name, value in list(inner.items()):
            if type(value) is dict:
                waiting.append(value)
            elif id(value) in made:
                del inner[name]


def _lookup(key: str) -> tuple[Scope | None, str]:
    *scopes, name = _parts("get_parameter", key)
    scope = _CURRENT.get()
    for part in scopes:
        inner = scope.get(part)
        if not isinstance(inner, dict):
            return None, name
        scope = inner
    return scope, name


def _collect(scope: Scope, prefix: str, grad_only: bool, found: dict[str, Variable]) -> None:
    for name, value in list(scope.items()):
        if isinstance(value, dict):
            _collect(value, f"{prefix}{name}/", grad_only, found)
        elif isinstance(value, Variable) and (value.need_grad or not grad_only):
            found[f"{prefix}{name}"] = value


def _created(name: str, shape: Sequence[int] | None, initializer: Initializer | None, need_grad: bool) -> Variable:
    if shape is None and not isinstance(initializer, np.ndarray):
        whole = _whole_path(name)
        raise ArgumentError(f"get_parameter_or_create: shape must be given for the new parameter {whole!r}, got None")
    if initializer is None:
        parameter = Variable(shape or (), need_grad=need_grad)
        parameter.data.zero()
    else:
        try:
            values = _initial_values(name, shape, initializer)
        except MemoryError as error:
            raise HostMemoryError(
                f"get_parameter_or_create: the new parameter {_whole_path(name)!r} must fit into the memory of the host, "
                f"got the shape {shape}\n  {error}"
            ) from error
        if shape is not None and values.shape != tuple(shape):
            raise ShapeError(
                f"get_parameter_or_create: initial values of {_whole_path(name)!r} must have the shape {tuple(shape)}, "
                f"got {values.shape}{_origin(initializer)}"
            )
        parameter = Variable.from_numpy_array(values, need_grad=need_grad)
    parameter.name = name.rpartition("/")[2]
    return parameter


def _initial_values(name: str, shape: Sequence[int] | None, initializer: Initializer) -> np.ndarray[Any, Any]:
    if isinstance(initializer, np.ndarray):
        return initializer
    if not callable(initializer):
        raise ArgumentError(
            f"get_parameter_or_create: initializer of {_whole_path(name)!r} must be callable with a shape or an array, "
            f"got {type(initializer).__name__}"
        )
    values = np.asarray(initializer(checked_shape(shape or ())))
    if origin := _origin(initializer):  # what others give is refused where it is used, as ever
        require_real(f"get_parameter_or_create: the initializer of {_whole_path(name)!r}{origin}", values)
    return values


def _origin(initializer: Initializer) -> str:
    """Return whose the values are, for messages, where a plugin offers them."""
    plugin = plugin_of(initializer) or plugin_of(vars(type(initializer)).get("__call__"))
    return f" from plugin {plugin!r}" if plugin else ""
