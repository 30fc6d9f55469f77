"""A random program as data: leaves and steps that are lines of Python, so that what is run is what is printed."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.dispatch.registry import spec_of
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_core.variable import Variable

Array: TypeAlias = np.ndarray[Any, Any]

#: Names of contexts of half precision, and their number types: a step with such a flag computes in it.
HALF_TYPES: Final = ("half", "bfloat16")


@dataclass(frozen=True)
class Leaf:
    """An input of the program.

    Attributes:
        number: It is called ``v<number>``.
        low, high: Its numbers are uniform between these...
        source: ...or drawn as input number n of a sample: (function, sample, n).
    """

    number: int
    shape: tuple[int, ...]
    need_grad: bool = True
    low: float = -1.5
    high: float = 1.5
    integer: bool = False
    source: tuple[str, str, int] | None = None

    @property
    def outs(self) -> tuple[int, ...]:
        """The numbers of the values that it makes."""
        return (self.number,)

    def values(self, seed: int, data_set: int) -> Array:
        """Return the numbers in one of the data sets, as float32 holds them; integers as int64."""
        if self.source is not None:
            name, sample, position = self.source
            spec = spec_of(name)
            entry = next(entry for entry in samples_of(spec) if entry.name == sample)
            array = numbers_of(spec, entry, data_set)[position]
            assert array is not None
        else:
            rng = np.random.default_rng([seed, self.number, data_set, 77])
            if self.integer:
                return rng.integers(int(self.low), int(self.high), self.shape)
            array = rng.uniform(self.low, self.high, self.shape)
        return array.astype(np.float32) if array.dtype.kind == "f" else array


@dataclass(frozen=True)
class Step:
    """One call.

    Attributes:
        text: An expression with ``{0}``, ``{1}``, ... for the values in `inputs`.
        outs: The numbers of the results; their `shapes`, and between what their values were when the program was made.
        flags: Of "persistent", "recompute", "no_grad", "stop" (need_grad = False), "unlink", and `HALF_TYPES`.
    """

    text: str
    inputs: tuple[int, ...]
    outs: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    flags: frozenset[str] = frozenset()

    def lines(self, *, imperative: bool = False) -> Iterator[str]:
        """Yield the statements that make the results."""
        names = ", ".join(f"v{n}" for n in self.outs)
        call = self.text.format(*(f"v{n}" for n in self.inputs))
        if "unlink" in self.flags:
            if not imperative:
                yield f"v{self.inputs[0]}.persistent = True"
            yield f"{names} = " + (call if not imperative else f"v{self.inputs[0]}")
            return
        scopes = [f"nn.context_scope({flag})" for flag in HALF_TYPES if flag in self.flags]
        if imperative and not self.inputs:  # a function without inputs knows no other mode
            scopes.append("nn.auto_forward()")
            call += ".data"
        elif not imperative:
            scopes += [f"nn.{flag}()" for flag in ("recompute", "no_grad") if flag in self.flags]
        yield f"{opening(*scopes)}{names} = {call}"
        if not imperative:
            for n in self.outs[:1]:
                if "persistent" in self.flags:
                    yield f"v{n}.persistent = True"
                if "stop" in self.flags:
                    yield f"v{n}.need_grad = False"


Item: TypeAlias = Leaf | Step


def opening(*scopes: str) -> str:
    """Return the head of a line that runs within some scopes."""
    return f"with {', '.join(scopes)}: " if scopes else ""


@dataclass(frozen=True)
class Program:
    """Items in an order in which they can run.

    Attributes:
        roots: Values that are read, the last of which is the loss.
        batch: Leaves that may get another length...
        axis: ...of this axis: the first one is the batch.
    """

    seed: int
    items: tuple[Item, ...]
    roots: tuple[int, ...]
    batch: frozenset[int] = frozenset()
    axis: int = 0

    @property
    def leaves(self) -> list[Leaf]:
        """The inputs."""
        return [item for item in self.items if isinstance(item, Leaf)]

    @property
    def steps(self) -> list[Step]:
        """The calls."""
        return [item for item in self.items if isinstance(item, Step)]

    @property
    def loss(self) -> int:
        """The value that backward() starts from."""
        return self.roots[-1]

    @property
    def unlinked(self) -> list[int]:
        """The values that a pass of their own has to compute, in order."""
        return [step.inputs[0] for step in self.steps if "unlink" in step.flags]

    def of_batch(self, length: int) -> "Program":
        """With another length of the leaves in `batch`."""

        def changed(item: Item) -> Item:
            if isinstance(item, Leaf) and item.number in self.batch:
                return replace(item, shape=self.resized(item.shape, length))
            return item

        return replace(self, items=tuple(changed(item) for item in self.items))

    def resized(self, shape: tuple[int, ...], length: int) -> tuple[int, ...]:
        """Return the shape with another length of the axis that may change."""
        return (*shape[: self.axis], length, *shape[self.axis + 1 :])

    def pruned(self) -> "Program":
        """Without what no root needs."""
        wanted, kept = set(self.roots), []
        for item in reversed(self.items):
            if wanted.intersection(item.outs):
                kept.append(item)
                if isinstance(item, Step):
                    wanted.update(item.inputs)
        return replace(self, items=tuple(reversed(kept)))

    def without_step(self, step: Step) -> "Program":
        """With fresh leaves in the place of the results of `step`."""
        items: list[Item] = []
        for item in self.items:
            if item is not step:
                items.append(item)
                continue
            for number, shape, (low, high) in zip(step.outs, step.shapes, step.ranges, strict=True):
                items.append(Leaf(number, shape, need_grad=True, low=low, high=high + 1e-3))
        return replace(self, items=tuple(items)).pruned()

    def with_roots(self, roots: Iterable[int]) -> "Program":
        """With other roots."""
        return replace(self, roots=tuple(roots)).pruned()


@lru_cache(maxsize=20_000)
def compiled(line: str) -> Any:
    """Return the byte code of a line."""
    return compile(line, "<program>", "exec")


def sizes(shapes: Iterable[tuple[int, ...]]) -> int:
    """Return number of elements of all of them."""
    return sum(math.prod(shape) for shape in shapes)


def initial_value(seed: int, name: str, parameter: Variable) -> Array:
    """Return the initial values of a program's parameter: those with a gradient get numbers that matter everywhere."""
    if not parameter.need_grad:
        return parameter.d.astype(np.float32)
    rng = np.random.default_rng([seed, *name.encode()])
    return np.asarray(rng.uniform(0.2, 1.0, parameter.shape) * rng.choice([-1, 1], parameter.shape), np.float32)
