"""Every argument of every public callable, replaced by each odd value in turn; the other arguments are sane.

Sessions of random calls seldom get past the first wrong argument. Here a call that works is looked for first, so that
nothing but the odd value is wrong with the calls that follow.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import nn_core as nn
from nn_core.engine.dispatch.registry import spec_of_api
from nn_core.errors import NNCoreError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.samples.registry import numbers_of, samples_of

from .hostile import ARRAYS, NUMBERS, OBJECTS, OTHERS
from .sessions import fresh_space, parameters_of, public_methods, public_names

#: Names that the calls of a session use beside those of every session.
HEAD: Final = """\
a0 = nn.Variable.from_numpy_array(np.linspace(-1, 1, 96).reshape(2, 3, 4, 4), need_grad=True)
a1 = nn.Variable.from_numpy_array(np.linspace(-1, 1, 6).reshape(2, 3), need_grad=True)
a2 = nn.Variable.from_numpy_array(np.linspace(-1, 1, 24).reshape(2, 3, 4), need_grad=True)
a3 = nn.Variable.from_numpy_array(np.eye(3), need_grad=True)
i0 = nn.Variable.from_numpy_array(np.array([0, 1]))
i1 = nn.Variable.from_numpy_array(np.array([[0], [1]]))
w0 = nn.Variable.from_numpy_array(np.ones((2, 3, 3, 3)), need_grad=True)
b0 = nn.NdArray.from_numpy_array(np.linspace(-1, 1, 6).reshape(2, 3))
m0 = nn.Sequential()
y0 = F.tanh(a1)
s0 = S.Adam()
s0.set_parameters({'a': a1})
f0 = y0.parent
"""
#: Values that fit arguments of these names.
FITTING: Final = {
    "kernel": ("(3, 3)", "(2, 2)"), "outmaps": ("2",), "n_outmaps": ("2",), "shape": ("(2, 3)", "(2, 12)"),
    "axes": ("(1, 0)", "(0,)", "(0, 1, 2, 3)"), "axis": ("1", "0"), "n_outputs": ("2",), "n_inputs": ("3",), "val": ("0.5",),
    "value": ("0.5", "a2"), "start": ("0",), "stop": ("2",), "dim": ("1",), "repeats": ("2",), "reps": ("2",),
    "path": ("'x.h5'",), "name": ("'n'",), "seed_value": ("1",), "lr": ("0.1",), "num_groups": ("1",),
    "num_heads": ("1",), "bins": ("3",),
    "i": ("0",), "j": ("0",), "o": ("0",), "inputs": ("[a1]",), "outputs": ("[a1]",), "key": ("a2", "'k'"), "params": ("{}",),
    "param_dict": ("{'a': a1}",), "states": ("{}",), "state": ("{}",), "modules": ("{}", "[m0]"), "module": ("m0",),
    "ctx": ("Context()",), "hook": ("(lambda *a: None)",), "forward": ("(lambda *a: None)",), "mask": ("b0",), "arr": ("b0",),
    "data_source": ("[1, 2, 3]",), "num_of_slices": ("2",), "slice_pos": ("0",), "dtype": ("'float32'",), "embed_dim": ("3",),
    "src": ("a2",), "tgt": ("a2",), "query": ("a2",), "h": ("a1", "a2", "w0"), "variable": ("y0",), "min": ("0.0",),
    "indices": ("i0",), "label": ("i1", "i0"), "target": ("i1", "a1", "a0"), "n": ("1",), "p": ("0.5",), "scale": ("0.5",),
}  # fmt: skip
#: Values to try for all others.
PLAIN: Final = (
    "a1", "a0", "a2", "a3", "i0", "w0", "1", "2", "'x'", "(2,)", "0.5", "[a1]", "{'a': a1}", "b0", "(lambda *a: None)",
)  # fmt: skip
ODD: Final = (*NUMBERS, *OTHERS, *ARRAYS, *OBJECTS[:3], "a0", "a1", "b0")
#: Objects whose methods are called.
OWNERS: Final = (*OBJECTS, "a0", "a1", "b0", "m0", "s0", "f0", "nn.PythonFunction()", "nn.ModuleList()", "nn.ModuleDict()")
MODULES: Final = ("F", "PF", "S", "nn", "I", "D")
#: Calls to try before the search for one that works is given up.
ATTEMPTS: Final = 1000


def targets() -> list[tuple[str, str]]:
    """Return the callables, each with the name of one of its parameters."""
    space = _space()
    names = [f"{module}.{name}" for module in MODULES for name in public_names(space[module], module)]
    for owner in OWNERS:
        names += [f"{owner}.{name}" for name in public_methods(type(eval(owner, space)))]
    return [(name, parameter.name) for name in names for parameter in _parameters(eval(name, space))]


class Sweep:
    """The calls for one argument of one callable.

    Attributes:
        space: The names that they use.
    """

    #: Whether statements use what earlier ones gave.
    linked: Final = False

    def __init__(self, name: str, parameter: str) -> None:
        self._name, self._parameter = name, parameter
        self.space = _space()

    def statements(self) -> Iterator[str]:
        """Yield the calls, after what they need."""
        yield from (f"!{line}" for line in HEAD.splitlines())
        arguments = working_call(self._name)
        for odd in ODD:
            yield _call(self._name, {**arguments, self._parameter: odd}, self.space)


@lru_cache(maxsize=1)
def working_call(name: str) -> dict[str, str]:
    """Arguments with which a callable gives a result, as far as such are found, by parameter."""
    space = _space()
    needed = [one for one in _parameters(eval(name, space)) if one.default is one.empty]
    fitting = [dict(zip((one.name for one in needed), values, strict=True)) for values in _guesses(needed)]
    for arguments in (*_samples(name, needed), *fitting):
        try:
            exec(_call(name, arguments, space), _space())
        except Exception:  # whatever is wrong with this guess: the next one
            continue
        return arguments
    return fitting[0]


def _guesses(needed: Sequence[inspect.Parameter]) -> Iterator[tuple[str, ...]]:
    choices = [(*FITTING.get(one.name, ()), *PLAIN)[:7] for one in needed]
    return itertools.islice(itertools.product(*choices), ATTEMPTS)


def _samples(name: str, needed: Sequence[inspect.Parameter]) -> Iterator[dict[str, str]]:
    """Yield the calls of the conformance kit for an operator."""
    module, _, api = name.partition(".")
    spec = _spec(api) if module == "F" else None
    for n, entry in enumerate(samples_of(spec) if spec else ()):
        arrays = {one.name: f"sample_input({api!r}, {n}, {k})" for k, one in enumerate(spec.inputs[: len(entry.inputs)])}
        yield {**arrays, **{key: repr(value) for key, value in entry.args.items()}}


def sample_input(api: str, sample: int, position: int) -> Any:
    """Return an input of a sample of an operator as a Variable; None where it has none."""
    spec = spec_of_api(api)
    array = numbers_of(spec, samples_of(spec)[sample])[position]
    return None if array is None else nn.Variable.from_numpy_array(array)


def _spec(api: str) -> FunctionSpec | None:
    try:
        return spec_of_api(api)
    except NNCoreError:  # a composite
        return None


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [one for one in parameters_of(function) if one.kind is not one.VAR_KEYWORD]


def _call(name: str, arguments: Mapping[str, str], space: dict[str, Any]) -> str:
    """Return the source of a call; several operands are one argument followed by another."""
    positional, keywords = [], []
    for one in _parameters(eval(name, space)):
        if one.name not in arguments:
            continue
        if one.kind is one.KEYWORD_ONLY or keywords or (one.default is not one.empty and one.kind is not one.VAR_POSITIONAL):
            keywords.append(f"{one.name}={arguments[one.name]}")
        else:
            positional.append(arguments[one.name])
    return f"{name}({', '.join([*positional, *keywords])})"


def _space() -> dict[str, Any]:
    space = fresh_space()
    space["sample_input"] = sample_input
    exec(HEAD, space)
    return space
