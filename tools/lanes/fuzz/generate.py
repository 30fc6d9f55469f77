"""Make a random program from a seed: calls are tried one after another, and kept where their values are of use."""

import math
from typing import Final

import numpy as np

import nn_core as nn
from nn_core.engine.graph.node import forward_order
from nn_core.errors import NNCoreError
from nn_core.variable import Variable

from .conditioning import amplifies
from .namespace import fresh_namespace
from .oracle import Undefined, compute
from .palette import PALETTE, Refused
from .program import HALF_TYPES, Array, Item, Leaf, Program, Step, compiled, initial_value

#: Most elements of a result, and its largest magnitude.
LARGEST: Final = 260
FARTHEST: Final = 60.0
_WEIGHTS = np.array([weight for weight, _ in PALETTE])
FLAGS: Final = ("persistent", "recompute", "stop")


class Maker:
    """A program that grows, with the graph and the true values of what it has already."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.items: list[Item] = []
        self.space = fresh_namespace()
        self.values: dict[int, Array] = {}
        self._storages: dict[object, Array] = {}
        self._parameters: set[str] = set()
        self._next = 0
        self._recent: list[int] = []
        self._in_half = self.chance(0.15)

    def chance(self, probability: float) -> bool:
        """Return True that often."""
        return bool(self.rng.random() < probability)

    def choose(self, texts: list[str]) -> str:
        """One of them."""
        return texts[self.rng.integers(len(texts))]

    def shape(self, number: int) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.values[number].shape

    def is_leaf(self, number: int) -> bool:
        """Return whether a value is an input of the program."""
        return self.space[f"v{number}"].parent is None

    def leaf(
        self,
        shape: tuple[int, ...],
        *,
        low: float = -1.5,
        high: float = 1.5,
        integer: bool = False,
        need_grad: bool | None = None,
        source: tuple[str, str, int] | None = None,
    ) -> int:
        """Return a new input."""
        wanted = not integer and self.chance(0.85) if need_grad is None else need_grad
        made = Leaf(self._next, tuple(shape), wanted, low, high, integer, source)
        self._next += 1
        values = made.values(self.seed, 0)
        variable = Variable(made.shape, need_grad=wanted)
        self.space[f"v{made.number}"] = variable
        self._storages[variable.storage] = values.astype(np.float64) if values.dtype.kind == "f" else values
        self.values[made.number] = values
        self.items.append(made)
        if values.dtype.kind == "f" and source is None:
            self._recent.append(made.number)
        return made.number

    def pick(self, min_ndim: int = 0) -> int:
        """Return a floating value that exists, rather a young one."""
        found = [n for n in self._recent if self.values[n].ndim >= min_ndim and self.values[n].size]
        if not found:
            raise Refused
        return found[-1 - min(int(self.rng.exponential(3.0)), len(found) - 1)]

    def pair(self) -> tuple[int, int]:
        """Two values whose shapes broadcast."""
        x = self.pick()
        others = [n for n in self._recent if _broadcast(self.shape(x), self.shape(n))]
        if not others:
            raise Refused
        y = others[self.rng.integers(len(others))]
        return (x, y) if self.chance(0.5) else (y, x)

    def squashed(self, x: int, low: float, high: float) -> int:
        """Return the value mapped into an interval."""
        margin = 0.05 * (high - low)
        return self.step(f"F.sigmoid({{0}}) * {high - low - 2 * margin:.4f} + {low + margin:.4f}", x)[0]

    def fitted(self, x: int, shape: tuple[int, ...]) -> int:
        """Return the value repeated or cut so that it has a shape."""
        if self.shape(x) == shape:
            return x
        have, want = math.prod(self.shape(x)), math.prod(shape)
        if have != want:
            x = self.step("F.reshape({0}, (-1,))", x)[0]
            if have < want:
                x = self.step(f"F.tile({{0}}, ({-(-want // have)},))", x)[0]
            if math.prod(self.shape(x)) != want:
                x = self.step(f"{{0}}[:{want}]", x)[0]
        return x if self.shape(x) == shape else self.step(f"F.reshape({{0}}, {shape})", x)[0]

    def step(
        self, text: str, *inputs: int, count: int | None = 1, flags: set[str] | frozenset[str] = frozenset()
    ) -> tuple[int, ...]:
        """Add a call; `count` None: as many results as it gives.

        Raises:
            Refused: when it fails, or gives values that are too large or too many.
        """
        names = [f"v{n}" for n in inputs]
        expression = f"result = {text.format(*names)}"
        try:
            exec(compiled(expression), self.space)
            results = self.space.pop("result")
            if isinstance(results, (tuple, list)):
                results = list(results)
                text += "[0]" if len(results) == 1 else ""
            else:
                results = [results]
            values = [self._evaluated(variable) for variable in results]
        except (NNCoreError, Undefined, FloatingPointError) as error:
            raise Refused from error
        if (count is not None and count != len(results)) or not results or any(not _useful(v) for v in values):
            raise Refused
        outs = tuple(range(self._next, self._next + len(results)))
        self._next += len(results)
        if not flags and self.chance(0.12):
            flags = {FLAGS[self.rng.integers(len(FLAGS))]}
        if self._in_half and "unlink" not in flags and self.chance(0.15):
            flags = {*flags, self.choose([*HALF_TYPES])}
        ranges = tuple((float(v.min()), float(v.max())) if v.size else (0.0, 1.0) for v in values)
        step = Step(text, inputs, outs, tuple(v.shape for v in values), ranges, frozenset(flags))
        self.items.append(step)
        for number, variable, value in zip(outs, results, values, strict=True):
            self.space[f"v{number}"] = variable
            self.values[number] = value
            if value.dtype.kind == "f":
                self._recent.append(number)
        return outs

    def _evaluated(self, variable: Variable) -> Array:
        for name, parameter in nn.get_parameters(grad_only=False).items():
            if name not in self._parameters:
                self._parameters.add(name)
                self._storages[parameter.storage] = initial_value(self.seed, name, parameter).astype(np.float64)
        for node in forward_order((variable,)):
            if node.python is not None:
                raise Undefined
            if any(storage not in self._storages for storage in node.storages):
                before = dict(self._storages)
                compute(node, self._storages)  # type: ignore[arg-type]
                if amplifies(node, before, self._storages):  # type: ignore[arg-type]
                    raise Undefined
        return self._storages[variable.storage]


def _useful(value: Array) -> bool:
    return value.size <= LARGEST and bool(np.isfinite(value).all()) and (not value.size or np.abs(value).max() <= FARTHEST)


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        return math.prod(np.broadcast_shapes(one, other)) <= LARGEST
    except ValueError:
        return False


SHAPES: Final = ((2, 3), (3,), (2, 3, 4), (2, 2, 3, 3), (), (4, 1), (1, 2, 4, 4), (3, 3), (2, 1, 3), (5,))


def generate(seed: int, least: int = 5, most: int = 40) -> Program:
    """Return the program of a seed."""
    nn.clear_parameters()
    nn.seed(seed)
    m = Maker(seed)
    shape = SHAPES[m.rng.integers(len(SHAPES))]
    firsts = [m.leaf(shape)]
    if m.chance(0.7):
        firsts.append(m.leaf(shape))
    if m.chance(0.3):
        firsts.append(m.leaf(SHAPES[m.rng.integers(len(SHAPES))]))
    length = int(m.rng.integers(least, most + 1))
    tries = 0
    probabilities = _WEIGHTS / _WEIGHTS.sum()
    while sum(isinstance(item, Step) for item in m.items) < length and tries < 6 * length:
        tries += 1
        draw = PALETTE[m.rng.choice(len(PALETTE), p=probabilities)][1]
        try:
            draw(m)
        except Refused:
            continue
    roots = _with_loss(m)
    program = Program(seed, tuple(m.items), tuple(roots))
    axis = int(m.rng.integers(len(shape))) if shape and m.chance(0.3) else 0
    batch = frozenset(n for n in firsts if m.shape(n)[axis : axis + 1] == shape[axis : axis + 1] != ())
    return Program(seed, program.pruned().items, tuple(roots), batch if m.chance(0.5) else frozenset(), axis)


def _with_loss(m: Maker) -> list[int]:
    used = {n for item in m.items if isinstance(item, Step) for n in item.inputs}
    ends = [n for item in m.items if isinstance(item, Step) for n in item.outs if n not in used]
    floats = [n for n in ends if m.values[n].dtype.kind == "f" and m.values[n].size] or m._recent[-1:]
    loss: int | None = None
    m.rng.shuffle(floats)
    for n in floats[:5]:
        a, b = m.rng.uniform(0.3, 1.5, 2).round(2)
        text = m.choose([f"F.mean(F.sin({{0}} * {a} + {b}))", f"F.sum({{0}} * {a})", "F.mean({0} ** 2)"])
        try:
            term = m.step(text, n, flags={"plain"})[0]
            loss = term if loss is None else m.step("{0} + {1}", loss, term, flags={"plain"})[0]
        except Refused:
            continue
    if loss is None:
        loss = m.step("F.sum({0} * {0})", m._recent[0], flags={"plain"})[0]  # nothing cancels here
    return [*ends[: m.rng.integers(0, 4)], loss]
