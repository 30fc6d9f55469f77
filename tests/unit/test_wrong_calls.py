"""Calls of public functions, constructors, methods and modules that do not fit their signature end in an error of nn_core."""

import contextlib
import functools
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import ext, layers
from nn_core.errors import NNCoreError, SignatureError
from tests.markdown import ROOT

#: Called in each step of a program, or by the engine for each array, where one more call of Python would be noticeable.
OFTEN = (
    r"dtype_of|(context|parameter)_scope|get_parameter(_or_create)?|(get_)?auto_forward|(?<!Variable\.)no_grad|recompute(_fn)?"
)
OFTEN += r"|get_current_(context|parameter_scope)|is_deterministic|is_enabled|num_threads|settings|launch_together"
OFTEN += r"|training\.(report|observing)"
OFTEN += r"|NdArray\.(clear|get_data|of_shape|present|read(write)?|rest_(as|on)|write|zero)"
OFTEN += r"|Variable\.of_storage|(DataIterator|DevicePrefetcher)\.next|\w*DataSource\w*\.(go_to|next|rows_at)|Layer\.settings"
OFTEN += r"|Updater\.(apply_gradients|gradients|next_batch|update)|Summary\.add|[A-Z]\w+\.(observe|step|take)"
OFTEN += r"|(SAM|LBFGS)\.update_with"
#: Made by nn_core and given to programs and plugins, in each call or step.
GIVEN = r"ext\.(TracedCall|FunctionSpec|GradientCall|Call|ArrayDesc|Refusal|LinkCall|MemoryFile)"
GIVEN += r"|LoadReport|SolverState|Settings|training\.(BatchSizes|LearningRates|Trigger)"
#: Made by nn_core, or called by it: programs define these methods and do not call them. A module is called itself.
CALLED = r"(ext|settings)\.\w+\.\w+|PythonFunction\.\w+|(Observation|Trigger|Cache|Budget)\.\w+|\w+\.call"
#: To be derived from: they have no constructor of their own, or what a subclass takes is checked there.
BASES = r"BaseInitializer|BaseLearningRateScheduler|base\.Solver|PythonFunction|nn_core\.Module|layers\.Lambda"
#: Helpers of commands and messages in extensions, with one argument or none.
HELPERS = r"ext\.(quoted|one_line|say|python_command|repeated_command|end_time|crc32)|forget_prepared"
BESIDE = re.compile(rf"(.*\.)?({OFTEN}|{GIVEN}|{CALLED}|{BASES}|{HELPERS})")


def public() -> Iterator[tuple[str, Callable[..., Any], inspect.Signature]]:
    """Yield the name of each function and class, what is called, and its signature."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("docs/api/*.md")))
    for name in [*re.findall(r"(?m)^::: (\S+)$", pages), *(f"nn_core.functions.{api}" for api in F.__all__)]:
        found: Any = pkgutil.resolve_name(name)
        is_error = inspect.isclass(found) and issubclass(found, BaseException)
        if callable(found) and not is_error and not inspect.isabstract(found):
            yield name, found, inspect.signature(found)
        if inspect.isclass(found) and not is_error:
            yield from methods_of(name, found)


def methods_of(title: str, cls: type) -> Iterator[tuple[str, Callable[..., Any], inspect.Signature]]:
    """Yield the name of each method of a public class that one of our classes defines, the method, and its signature."""
    for name in dir(cls):
        member: Any = inspect.getattr_static(cls, name)
        function = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__module__.startswith("nn_"):
            continue
        parameters = list(inspect.signature(function).parameters.values())
        if isinstance(member, staticmethod):
            yield f"{title}.{name}", function, inspect.Signature(parameters)
        else:
            owner = cls if isinstance(member, classmethod) else _blank(cls)
            yield f"{title}.{name}", functools.partial(function, owner), inspect.Signature(parameters[1:])


def _blank(cls: Any) -> Any:
    """Return an object that nobody has constructed: a call that does not fit looks at nothing of it."""
    with contextlib.suppress(Exception):
        return cls.__new__(cls)


def wrong_calls(signature: inspect.Signature) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield calls with an argument that does not exist, with one too many, and with one missing."""
    parameters = signature.parameters.values()
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        yield "unknown", (), {"no_such_argument": 1}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        yield "many", (None,) * (len(kinds) + 1), {}
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(parameter.default is parameter.empty and parameter.kind not in rest for parameter in parameters):
        yield "missing", (), {}


def _answer(called: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return what is wrong with the answer to a wrong call; nothing if it is an error of nn_core."""
    try:
        called(*args, **kwargs)
    except NNCoreError:
        return ""
    except TypeError as error:
        return str(error)
    return "no error"


def test_every_public_call_that_does_not_fit_is_an_error_of_ours() -> None:
    answers = {
        f"{name}, {kind}": _answer(called, args, kwargs)
        for name, called, signature in public()
        if not BESIDE.fullmatch(name)
        for kind, args, kwargs in wrong_calls(signature)
    }
    assert {call: answer for call, answer in answers.items() if answer} == {}
    assert len(answers) > 4000


def test_each_exemption_is_needed() -> None:
    """Refuse to exempt a callable that answers all wrong calls by an error of nn_core."""
    for name, called, signature in public():
        if BESIDE.fullmatch(name):
            answers = [_answer(called, args, kwargs) for _, args, kwargs in wrong_calls(signature)]
            assert not answers or any(answers), name


class Net(nn.Module):
    def call(self, x: Any, *, scale: float = 1.0) -> Any:
        return x * scale


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: Net()(x, x), "Net: must get at most 1 positional argument, got 2"),
        (lambda x: Net()(), "Net: x must be given, got none"),
        (lambda x: Net()(x, scael=2.0), r"Net: got an unexpected keyword argument 'scael'; did you mean 'scale'\?"),
        (lambda x: layers.Affine(3)(x, x), "Affine: must get at most 1 positional argument, got 2"),
        (lambda x: nn.Sequential(layers.Affine(3))(x, x), "Affine: must get at most 1 positional argument, got 2"),
        (lambda x: nn.monitor.Monitor(), "Monitor: save_path must be given, got none"),
        (lambda x: nn.set_auto_forward(), "set_auto_forward: auto must be given, got none"),
        (lambda x: nn.NdArray((2,)).fill(), "fill: value must be given, got none"),
        (lambda x: x.unlinked(need_gard=True), r"unlinked: got an unexpected .* 'need_gard'; did you mean 'need_grad'\?"),
        (lambda x: Net().zero_grad(1), "zero_grad: must get at most 0 positional arguments, got 1"),
        (lambda x: nn.solvers.Sgd(0.1).get_states(pat=1), "get_states: got an unexpected keyword argument 'pat'"),
        (lambda x: ext.refresh(1), "refresh: must get at most 0 positional arguments, got 1"),
        (
            lambda x: ext.BackendInfo(nmae="x"),
            r"BackendInfo: got an unexpected keyword argument 'nmae'; did you mean 'name'\?",
        ),
    ],
)
def test_what_was_given_and_what_there_is_are_told(call: Callable[[nn.Variable], Any], text: str) -> None:
    with pytest.raises(SignatureError, match=f"^{text}"):
        call(nn.Variable((2, 3)))


def test_a_type_error_inside_of_a_module_stays_what_it_is() -> None:
    class Failing(nn.Module):
        def call(self, x: Any) -> Any:
            return len(3)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len") as caught:
        nn.Sequential(Failing())(nn.Variable((2,)))
    assert not isinstance(caught.value, NNCoreError)
