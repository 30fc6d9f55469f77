"""A network while it is drawn: variables, functions, loops, and the text that says them."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from nn_ext_nnp.codec import LOOP_FUNCTIONS
from nn_ext_nnp.schema import functions

#: The number of samples in shapes.
BATCH = -1
#: Settings in files of functions whose inputs may be overwritten by their results.
_INPLACE = "inplace"
#: Functions whose results share no memory with anything else, in either package.
_OWN_RESULTS = ("Affine", "Convolution", "BatchNormalization", "Add2", "Mul2", "Concatenate", "Pad", "Sum", "MulScalar")
#: Functions whose results are drawn from random numbers.
RANDOM = ("Dropout", "Rand", "Randint", "Randn", "RandomCrop", "RandomFlip", "RandomShift", "RandBinomial", "RandGamma")
#: Decoration of names: the Console numbers them, users write them.
_DECORATIONS = ("", "", "", "_2", "_3", "[1]", " (a)", " x", "/in")


@dataclass(eq=False)
class Var:
    """A variable; `size` estimates its largest magnitude, `loops` are those it is in, outermost first."""

    name: str
    shape: tuple[int, ...]
    loops: tuple[str, ...] = ()
    size: float = 1.0
    kind: str = "Buffer"
    initializer: tuple[str, float] | None = None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.shape[1:]


@dataclass(eq=False)
class Call:
    """A function of the network."""

    name: str
    kind: str
    inputs: list[Var]
    outputs: list[Var]
    loops: tuple[str, ...]
    settings: dict[str, Any]


@dataclass(eq=False)
class Net:
    """A network: what is drawn so far, and where new functions go.

    Attributes:
        name: of the network.
        rng: of all that is drawn.
        parameters: those of all networks of the file by name, with the names and values of all steps if the text gives them.
        times: how often each loop repeats.
        inputs: kinds of the variables to set, by name: "normal", or the number of classes of labels.
    """

    name: str
    rng: random.Random
    parameters: dict[str, tuple[Var, list[str], np.ndarray | None]]
    times: dict[str, int] = field(default_factory=dict)
    variables: list[Var] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    inputs: dict[str, str | int] = field(default_factory=dict)
    generators: dict[str, tuple[str, float]] = field(default_factory=dict)
    loops: tuple[str, ...] = ()
    prefix: str = ""
    share: float = 0.15
    given: bool = False  # whether the text gives the values of all parameters
    max_loops: int = 0
    loop_share: float = 0.25

    # -- variables -----------------------------------------------------------------------------------------------------

    def new_name(self, stem: str) -> str:
        """Return a name that the network does not have yet."""
        names = {variable.name for variable in self.variables} | set(self.times)
        name = self.prefix + stem + self.rng.choice(_DECORATIONS)
        number = 2
        while name in names:
            name, number = f"{stem}_{number}", number + 1
        return name

    def variable(self, name: str, shape: Sequence[int], size: float = 1.0, loops: tuple[str, ...] | None = None) -> Var:
        """Return a new variable, in the loops where drawing is."""
        made = Var(self.new_name(name), tuple(shape), self.loops if loops is None else loops, size)
        self.variables.append(made)
        return made

    def input(self, shape: Sequence[int], kind: str | int = "normal") -> Var:
        """Return a new variable to set; labels if `kind` is a number of classes."""
        made = self.variable("Input" if kind == "normal" else "Label", shape, 2.5, loops=())
        self.inputs[made.name] = kind
        if kind != "normal":
            made.kind = "Label"  # no function reads it except the one that it is made for
        return made

    def visible(self) -> list[Var]:
        """Return the variables that a function may read where drawing is."""
        return [v for v in self.variables if v.kind == "Buffer" and v.loops == self.loops[: len(v.loops)]]

    def pick(self, at_least: int = 0, at_most: int = 9, batch: bool = True) -> Var | None:
        """One of the variables, more often a late one, and one that nothing reads."""
        read = {variable for call in self.calls for variable in call.inputs}
        found = [
            v
            for v in self.visible()
            if at_least <= v.ndim <= at_most and (not batch or v.shape[:1] == (BATCH,)) and prod(v.inner) > 0
        ]
        weights = [(1 + 8 * (v not in read)) * (1 + position / 4) for position, v in enumerate(found)]
        return self.rng.choices(found, weights)[0] if found else None

    def parameter(
        self, suffix: str, shape: Sequence[int], size: float = 1.0, positive: bool = False, own: bool = False
    ) -> Var:
        """Return a parameter of the function that is added next: a new one, or one that another function has.

        It belongs to all loops where drawing is, to the outer ones, or to none. One that is its function's `own` is new.
        """
        known = self._shareable(suffix, tuple(shape))
        if known and not own and self.rng.random() < self.share:
            chosen = self.rng.choice(known)
            self.variables += [chosen] if chosen not in self.variables else []
            return chosen
        loops = self.loops[: self.rng.randint(0, len(self.loops))]
        made = Var(self._parameter_name(suffix, loops), tuple(shape), loops, size, "Parameter")
        names, values = expanded_names(made, self.times), None
        scale = size / max(1, prod(shape[1:]) if len(shape) > 2 else shape[0]) ** 0.5
        if positive or self.given or self.rng.random() < 0.5:
            numbers = np.random.default_rng(self.rng.randrange(2**32)).normal(0, scale, (len(names), *shape))
            values = np.round(np.abs(numbers) + 0.5 if positive else numbers, 3)
        else:
            made.initializer = self._initializer(made.shape, scale)
        self.parameters[made.name] = made, names, values
        self.variables.append(made)
        return made

    def _shareable(self, suffix: str, shape: tuple[int, ...]) -> list[Var]:
        """Parameters of other functions that could be one of the next: those in a loop belong to one network."""
        known = [v for name, (v, _, _) in self.parameters.items() if name.endswith(suffix) and v.shape == shape]
        return [v for v in known if not v.loops or (v in self.variables and v.loops == self.loops[: len(v.loops)])]

    def _parameter_name(self, suffix: str, loops: tuple[str, ...]) -> str:
        """Return a new name, mostly with marks for the steps of its loops."""
        marks = "".join(f"{{{loop}}}" for loop in loops) if self.rng.random() < 0.8 else ""
        stem = f"{self.rng.choice(('conv', 'layer', 'Affine', 'block 1', 'Net/part'))}_{len(self.parameters)}"
        name = self.rng.choice((f"{stem}{marks}/{suffix}", f"{stem}/{suffix}{marks}"))
        return name if marks or self.rng.randrange(6) else f"{name}[0]"

    def _initializer(self, shape: tuple[int, ...], scale: float) -> tuple[str, float]:
        kinds = [("Constant", 0.5 * scale), ("Uniform", scale), ("Normal", scale)]
        if len(shape) >= 2:
            layer = "Convolution" if len(shape) > 2 else "Affine"
            laws = ("Glorot", "HeForward", "HeBackward", "He") if layer == "Affine" else ("Glorot", "HeForward", "HeBackward")
            kinds += [(f"Normal{layer}{law}", 1.0) for law in laws] + [(f"Uniform{layer}Glorot", 1.0)]
        return self.rng.choice(kinds)

    # -- functions -----------------------------------------------------------------------------------------------------

    def add(
        self, kind: str, inputs: Sequence[Var], shape: Sequence[int], size: float | None = None, /, **settings: Any
    ) -> Var:
        """Add a function with one result."""
        return self.add_all(kind, inputs, [shape], size, **settings)[0]

    def add_all(
        self, kind: str, inputs: Sequence[Var], shapes: Sequence[Sequence[int]], size: float | None = None, /, **settings: Any
    ) -> list[Var]:
        """Add a function with several results."""
        estimate = max((v.size for v in inputs), default=1.0) if size is None else size
        outputs = [self.variable(kind, shape, estimate) for shape in shapes]
        self.calls.append(Call(outputs[0].name, kind, list(inputs), outputs, self.loops, settings))
        return outputs

    @contextmanager
    def inside(self, loop: str) -> Iterator[None]:
        """Draw functions in a loop."""
        before, self.loops = self.loops, (*self.loops, loop)
        try:
            yield
        finally:
            self.loops = before

    # -- when it is complete -------------------------------------------------------------------------------------------

    def outputs(self) -> list[Var]:
        """Return the variables that no function reads, outside of loops."""
        read = {variable for call in self.calls for variable in call.inputs}
        return [v for call in self.calls for v in call.outputs if v not in read and not v.loops]

    def random_names(self) -> set[str]:
        """Names of the variables that depend on random numbers."""
        random_ = {v for call in self.calls if call.kind in RANDOM for v in call.outputs}
        grows = True
        while grows:  # loops lead back
            more = {v for call in self.calls if random_.intersection(call.inputs) for v in call.outputs} - random_
            random_ |= more
            grows = bool(more)
        return {v.name for v in random_}

    def overwrite(self) -> set[str]:
        """Let some functions compute in place of their inputs; returns the names of those, which have no value then."""
        readers = Counter(variable for call in self.calls for variable in call.inputs)
        makers = {v: call.kind for call in self.calls for v in call.outputs}
        found = set()
        for call in self.calls:
            if _INPLACE not in call.settings:
                continue
            first = call.inputs[0]
            if makers.get(first) in _OWN_RESULTS and readers[first] == 1 and first.loops == call.loops:
                call.settings[_INPLACE] = call.settings[_INPLACE] or self.rng.random() < 0.5
            found |= {first.name} if call.settings[_INPLACE] else set()
        return found

    def text(self, batch_size: int) -> str:
        """Return the network as a message."""
        lines = ["network {", f"  name: {quoted(self.name)}", f"  batch_size: {batch_size}"]
        lines += [f"  repeat_info {{ id: {quoted(loop)} times: {times} }}" for loop, times in self.times.items()]
        used = dict.fromkeys(v for call in self.calls for v in (*call.inputs, *call.outputs))
        lines += [_variable_text(v) for v in used]
        lines += [_function_text(call) for call in self.calls]
        return "\n".join([*lines, "}"])


def expanded_names(variable: Var, times: dict[str, int]) -> list[str]:
    """Return the names of a variable in all steps of its loops."""
    names = []
    for steps in product(*(range(times[loop]) for loop in variable.loops)):
        name = variable.name
        for loop, step in zip(variable.loops, steps, strict=True):
            place = f"{{{loop}}}"
            name = name.replace(place, f"[{step}]") if place in name else f"{name}_{loop}[{step}]"
        names.append(name)
    return names


def quoted(text: str) -> str:
    """Return a string of a text."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def dims(shape: Sequence[int]) -> str:
    """Return a Shape message."""
    return "{ " + " ".join(f"dim: {length}" for length in shape) + " }"


def _variable_text(variable: Var) -> str:
    kind = "Parameter" if variable.kind == "Parameter" else "Buffer"
    loops = "".join(f" repeat_id: {quoted(loop)}" for loop in variable.loops)
    initial = ""
    if variable.initializer is not None:
        law, multiplier = variable.initializer
        initial = f" initializer {{ type: {quoted(law)} multiplier: {multiplier:.6g} }}"
    return f"  variable {{ name: {quoted(variable.name)} type: {quoted(kind)}{loops} shape {dims(variable.shape)}{initial} }}"


def _function_text(call: Call) -> str:
    parts = [f"name: {quoted(call.name)}", f"type: {quoted(call.kind)}"]
    parts += [f"repeat_id: {quoted(loop)}" for loop in call.loops]
    parts += [f"input: {quoted(v.name)}" for v in call.inputs]
    parts += [f"output: {quoted(v.name)}" for v in call.outputs]
    if call.kind in LOOP_FUNCTIONS:
        parts += [f"{key} {value}" for key, value in call.settings.items()]
    else:
        parts += _settings_text(call)
    return f"  function {{ {' '.join(parts)} }}"


def _settings_text(call: Call) -> list[str]:
    kind = functions()[call.kind]
    unknown = set(call.settings) ^ set(kind.settings)
    if unknown:
        raise ValueError(f"{call.kind} must have all of its settings and no others, got {sorted(unknown)} wrong")
    if kind.field is None:
        return []
    written = [_setting_text(name, code, call.settings[name]) for name, code in kind.settings.items()]
    return [f"{kind.field} {{ {' '.join(written)} }}"]


def _setting_text(name: str, code: str, value: Any) -> str:
    if code == "Shape":
        return f"{name} {dims(value)}"
    if code.endswith("*"):
        return " ".join(f"{name}: {_scalar(item)}" for item in value)
    return f"{name}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value) if isinstance(value, str) else repr(value)
