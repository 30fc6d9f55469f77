"""Sessions of hostile calls: statements drawn one after another, on what the earlier ones gave."""

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

import nn_core as nn

from .hostile import ARRAYS, HEAD, NUMBERS, OBJECTS, OTHERS, SEEDS

#: Statements of a session.
LENGTH: Final = 12
#: Modules whose public callables are called, by the name that they have in a session.
MODULES: Final = ("F", "F", "F", "F", "PF", "PF", "S", "nn", "I", "D")
#: Callables that change the process or read what does not exist here; they have tests of their own.
LEFT_OUT: Final = {
    "nn.set_num_threads", "S.module_attributes", "F.function_api", "F.operand", "D.data_iterator_cache",
    "nn.annotations", "PF.parametric_function_api",
}  # fmt: skip
#: Methods that the engine and authors of backends call; they check nothing.
INTERNAL: Final = {
    "standing_for", "add_outputs", "connect", "of_storage", "of_shape", "step", "read", "get_data", "write", "readwrite",
    "value", "output", "present", "rest_on", "rest_as", "show",  # show opens a window
}  # fmt: skip
FILES: Final = ("'x.h5'", "'x.npz'", "'x.safetensors'", "'broken.h5'", "'broken.npz'", "'.'", "'nowhere/x.h5'")
OPERATORS: Final = (
    "{0} + {1}", "{1} + {0}", "{0} - {1}", "{1} - {0}", "{0} * {1}", "{0} / {1}", "{1} / {0}", "{0} ** {1}", "{1} ** {0}",
    "{0} @ {1}", "{1} @ {0}", "{0} == {1}", "{0} < {1}", "{0} >= {1}", "{0}[{1}]", "{0}[{1}, {2}]", "{0}[{1}:{2}]",
    "-{0}", "+{0}", "len({0})", "float({0})", "repr({0})", "np.asarray({0})", "hash({0})",
)  # fmt: skip
STATEMENTS: Final = (
    "{0}[{1}] = {2}", "{0} += {1}", "{0} -= {1}", "{0} *= {1}", "{0} /= {1}", "{0} **= {1}", "{0}[{1}, {2}] = {3}",
)  # fmt: skip
PASSES: Final = (
    "{0}.forward()", "{0}.forward()", "{0}.forward(clear_buffer=True)", "{0}.forward(clear_no_need_grad=True)",
    "{0}.backward()", "{0}.backward()", "{0}.backward(clear_buffer=True)", "{0}.backward({1})", "{0}.d", "{0}.g",
    "{0}.d = {1}", "{0}.g = {1}", "{0}.data = {1}", "{0}.grad = {1}", "{0}.need_grad = {1}", "{0}.persistent = {1}",
    "{0}.name = {1}", "{0}.parent = {1}", "{0}.recompute = {1}", "nn.forward_all([{0}, {1}])", "nn.grad([{0}], [{1}])",
    "nn.grad({0}, {1})", "nn.explain({0})",
)  # fmt: skip


class Session:
    """Draws the statements of one session.

    Attributes:
        space: The names that they use; `pool` are those of values that they made.
    """

    #: Whether statements use what earlier ones gave.
    linked: Final = True

    def __init__(self, seed: int, number: int, space: dict[str, Any]) -> None:
        self.rng = np.random.default_rng([seed, number])
        self.space = space
        self.pool: list[str] = []

    def statements(self) -> Iterator[str]:
        """Yield the statements, each of which is to be run before the next one is asked for."""
        for n in range(3):
            yield f"a{n} = {self._one(SEEDS)}"
            self.pool.append(f"a{n}")
        for n in range(LENGTH):
            text = self._drawn()
            if text is None:
                continue
            name = f"r{n}"
            yield text if text.startswith("!") else f"{name} = {text}"
            if name in self.space:
                self._keep(name)

    def _keep(self, name: str) -> None:
        value = self.space[name]
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], (nn.Variable, nn.NdArray)):
            value = self.space[name] = value[0]
        if not isinstance(value, (type(None), bool, int, float, str, type, types.ModuleType)):
            self.pool.append(name)

    def _one(self, texts: Any) -> str:
        return str(texts[self.rng.integers(len(texts))])

    def _drawn(self) -> str | None:
        kind = self.rng.random()
        if kind < 0.5:
            return self._function()
        if kind < 0.7:
            return self._method()
        if kind < 0.82:
            return self._one(OPERATORS).format(self._array(), self._value(), self._value())
        if kind < 0.87:
            return "!" + self._one(STATEMENTS).format(self._array(), self._value(), self._value(), self._value())
        text = self._one(PASSES)
        return ("!" if " = " in text else "") + text.format(self._variable(), self._value())

    def _array(self) -> str:
        names = [name for name in self.pool if isinstance(self.space.get(name), (nn.Variable, nn.NdArray))]
        return self._one(names) if names else "a0"

    def _variable(self) -> str:
        names = [name for name in self.pool if isinstance(self.space.get(name), nn.Variable)]
        return self._one(names) if names else "nn.Variable((2,))"

    def _value(self) -> str:
        kind = self.rng.random()
        if kind < 0.25:
            return self._array()
        return self._one(NUMBERS if kind < 0.5 else OTHERS if kind < 0.8 else ARRAYS if kind < 0.95 else OBJECTS)

    def _function(self) -> str | None:
        module = self._one(MODULES)
        name = self._one(public_names(self.space[module], module))
        function = getattr(self.space[module], name)
        return f"{module}.{name}({', '.join(self._arguments(function))})"

    def _method(self) -> str | None:
        if self.rng.random() < 0.35:
            owner = self._one(OBJECTS)
            value = eval(owner, self.space)
        else:
            owner = self._one(self.pool)
            value = self.space[owner]
        names = public_methods(type(value))
        if isinstance(value, tuple) or not names or not type(value).__module__.startswith("nn_core"):
            return None
        name = self._one(names)
        return f"{owner}.{name}({', '.join(self._arguments(getattr(value, name)))})"

    def _arguments(self, function: Callable[..., Any]) -> Iterator[str]:
        parameters = parameters_of(function)
        sane = self.rng.random() < 0.5
        keywords = False
        for parameter in parameters:
            kind = parameter.kind
            if kind is parameter.VAR_POSITIONAL and not keywords:
                yield from (self._suitable(parameter.name, sane) for _ in range(self.rng.integers(0, 4)))
                keywords = True
            elif kind is parameter.VAR_POSITIONAL:
                continue
            elif kind is parameter.VAR_KEYWORD:
                if self.rng.random() < 0.05:
                    yield f"unknown={self._value()}"
            elif parameter.default is parameter.empty:
                keywords = keywords or kind is parameter.KEYWORD_ONLY
                value = self._suitable(parameter.name, sane)
                yield f"{parameter.name}={value}" if keywords or kind is parameter.KEYWORD_ONLY else value
            elif self.rng.random() < 0.25:
                keywords = True
                yield f"{parameter.name}={self._value() if self.rng.random() < 0.8 else repr_of(parameter.default)}"
            else:
                keywords = True

    def _suitable(self, name: str, sane: bool) -> str:
        if sane or self.rng.random() < 0.5:
            if name in ("shape", "kernel", "axes", "axis", "outmaps", "n_outmaps", "n_outputs", "stride", "pad", "dim"):
                return self._one(("(2, 3)", "(3, 3)", "1", "2", "(1,)", "(2,)", "3", "(1, 1)"))
            if name in ("path", "filename", "uri", "target", "source"):
                return self._one(FILES)
            if name in ("val", "value", "alpha", "slope", "p", "n", "eps", "sigma", "lr", "rate"):
                return self._one(NUMBERS)
            return self._array()
        return self._value()


def repr_of(default: Any) -> str:
    """Return a default as source, or None."""
    return repr(default) if isinstance(default, (bool, int, float, str, tuple, type(None))) else "None"


_NAMES: Final[dict[str, list[str]]] = {}


def public_names(module: Any, label: str) -> list[str]:
    """Return the public callables of a module that nn_core defines."""
    if label not in _NAMES:
        found = []
        for name in sorted(dir(module)):
            value = getattr(module, name, None)
            own = (getattr(value, "__module__", "") or "").startswith("nn_core")
            if not name.startswith("_") and callable(value) and own and f"{label}.{name}" not in LEFT_OUT:
                found.append(name)
        _NAMES[label] = found
    return _NAMES[label]


def public_methods(kind: type) -> list[str]:
    """Return the methods of a class that users call."""
    names = [name for name in sorted(dir(kind)) if not name.startswith("_") and name not in INTERNAL]
    return [name for name in names if callable(getattr(kind, name, None))]


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a callable; none where Python does not know them."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def fresh_space() -> dict[str, Any]:
    """Return the names at the start of a session."""
    space: dict[str, Any] = {}
    exec(HEAD, space)
    return space
