"""The slow truth: the functions of a graph one after another on float64 arrays, by reference kernels and gradient rules.

Of nn_core's engine only the graph itself is used: no plan, no memory, no dispatch, no fusing. How far rounding may carry
a result is found out by computing it again with noise before and after every function.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.dispatch.given_dtypes import given_dtypes
from nn_core.engine.graph.infer import input_entries
from nn_core.engine.graph.node import Node, Storage, Value, forward_order
from nn_core.errors import NNCoreError
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.rules.registry import GRADIENTS, GradientCall
from nn_core.operators.spec.model import WHOLE_DTYPES
from nn_core.testing.operators import ArrayFunctions, infer_shapes, made_entries, same_dtype, updated
from nn_core.variable import Variable

from .noise import FEW, PRECISIONS, Dtypes, Noise, Precision, kinds, least_tolerance, magnitude, tolerance
from .program import Array

#: Draws of noise before a result counts as different; `Precision` says how many.
MANY: Final = 1000
#: All functions compute in float32.
FLOAT32: Final = Dtypes()
#: No noise at all.
EXACT: Final = Noise()
NO_RUNS: Final[Mapping[Node, int]] = {}
_F = ArrayFunctions()


class Undefined(Exception):  # noqa: N818
    """The graph has something that the oracle does not compute."""


class Graph:
    """The functions before some variables, in order."""

    def __init__(self, roots: Sequence[Variable]) -> None:
        self.order = forward_order(roots)
        if any(node.python is not None for node in self.order):
            raise Undefined("a PythonFunction")

    def forward(self, values: dict[Storage, Array], noise: Noise = EXACT, runs: Mapping[Node, int] = NO_RUNS) -> None:
        """Compute all functions; `values` holds those of the leaves and gets all others.

        `runs` says how often a seeded function has run before.
        """
        for node in self.order:
            compute(node, values, noise, runs.get(node, 0))

    def backward(
        self, root: Variable, values: Mapping[Storage, Array], start: float, noise: Noise = EXACT
    ) -> dict[Storage, Array]:
        """Return the gradients of leaves and others where that of `root` is `start`; `values` are those after forward()."""
        if not root.need_grad:
            return {}
        grads: dict[Storage, Array] = {root.storage: np.full(values[root.storage].shape, start)}
        for node in reversed(self.order):
            if node.need_grad and node.spec.differentiable and any(storage in grads for storage in node.storages):
                for value, gradient in zip(node.inputs, gradients(node, values, grads, noise), strict=True):
                    if value is None or not value.need_grad:
                        continue
                    arrived = np.zeros(values[value.storage].shape) if gradient is None else np.asarray(gradient)
                    part = noise.gradient(arrived, node)
                    with np.errstate(invalid="ignore"):  # of infinities of float32
                        grads[value.storage] = grads[value.storage] + part if value.storage in grads else part
        return grads

    def largest_terms(self, values: Mapping[Storage, Array], grads: Mapping[Storage, Array]) -> float:
        """Return the largest gradient that a function would give for arriving gradients as large as they are, of random signs.

        A normalization of a constant channel takes the mean from the arriving gradient and multiplies the rest by the root
        of 1 / eps. Where nothing is left in truth, rounding errors of the terms are.
        """
        rng = np.random.default_rng(2)
        random = {
            storage: magnitude(grad) * rng.choice([-1.0, 1.0], grad.shape) for storage, grad in grads.items() if grad.size
        }
        largest = 0.0
        for node in self.order:
            if node.need_grad and node.spec.differentiable and any(storage in random for storage in node.storages):
                found = gradients(node, values, random)
                sizes = [magnitude(np.asarray(grad)) for grad in found if grad is not None and np.size(grad)]
                largest = max([largest, *sizes])
        return largest


def compute(node: Node, values: dict[Storage, Array], noise: Noise = EXACT, runs: int = 0) -> None:
    """Compute one function on the values of its inputs; a seeded one for the time after `runs` others."""
    dtypes = [entry.dtype for entry in input_entries(node.spec, len(node.inputs))]
    given = [None if value is None else values[value.storage] for value in node.inputs]
    exact = [a if a is None else noise.dtypes.read(a, node, dtype) for a, dtype in zip(given, dtypes, strict=True)]
    inputs = [
        a if a is None else noise.dtypes.read(noise.disturbed(a, node), node, dtype)
        for a, dtype in zip(exact, dtypes, strict=True)
    ]
    key = key_of(node, runs)
    try:
        results = run_kernel(node, inputs, key, "float32" if noise.single else "float64")
    except NNCoreError:  # a matrix that is not positive definite any more, say
        if noise.is_exact:
            raise
        results = run_kernel(node, exact, key)
    results = noise.spread(node, inputs, results, lambda *arrays: run_kernel(node, arrays, key))
    n_outputs = len(results) - len(node.spec.updates)
    for storage, result in zip(node.storages, results[:n_outputs], strict=True):
        values[storage] = noise.dtypes.stored(noise.disturbed(np.asarray(result), node), storage)
    for value, after in zip(node.inputs, updated(node.spec, inputs, results[n_outputs:]), strict=True):
        if value is not None and not any(after is array for array in inputs):
            values[value.storage] = np.asarray(after, np.float64)


def key_of(node: Node, runs: int) -> tuple[int, int] | None:
    """Return the key of a seeded function with a seed of its own after so many runs: the seed, and the number of the run."""
    return (node.args["seed"], runs + 1) if node.spec.has("seeded") else None


def run_kernel(
    node: Node, inputs: Sequence[Array | None], key: tuple[int, int] | None = None, dtype: str = "float64"
) -> tuple[Any, ...]:
    """All results of the reference kernel of a function, in a dtype; the checks of its call were made by the graph."""
    spec = node.spec
    types = {"float": dtype, "parameter": dtype, "statistic": dtype, **WHOLE_DTYPES}
    entries = input_entries(spec, len(inputs))
    held = [None if array is None else dtype if array.dtype.kind == "f" else array.dtype.name for array in inputs]
    arrays: list[Any] = []
    for entry, array, own in zip(entries, inputs, given_dtypes(entries, held) or [None] * len(held), strict=True):
        arrays.append(None if array is None else array.astype(types.get(entry.dtype, own or dtype), copy=False))
    shapes = infer_shapes(spec, [None if array is None else array.shape for array in arrays], node.args)
    if spec.has("view"):
        return (arrays[0].reshape(shapes[0]),)
    extra = {} if key is None else {"key": np.array(key, np.uint64)}
    with np.errstate(all="ignore"):
        results = KERNELS[spec.name](np, *arrays, **node.args, **extra)
    results = results if isinstance(results, tuple) else (results,)
    types["same"] = same_dtype(spec, arrays, dtype)
    entries = made_entries(spec, len(results), shapes)
    with np.errstate(all="ignore"):
        return tuple(
            result if result is None or entry is None else np.asarray(result).astype(types[entry.dtype], copy=False)
            for result, entry in zip(results, entries, strict=True)
        )


def gradients(
    node: Node, values: Mapping[Storage, Array], grads: Mapping[Storage, Array], noise: Noise = EXACT
) -> Sequence[Any]:
    """Return the gradients of the inputs of a function by its rule."""
    inputs = [None if value is None else noise.gradient(values[value.storage], node) for value in node.inputs]
    outputs = [noise.gradient(values[storage], node) for storage in node.storages]
    n_visible = len(outputs) - sum(entry.aux for entry in node.spec.outputs)
    arriving = [
        noise.gradient(grads[storage], node) if storage in grads else np.zeros(values[storage].shape)
        for storage in node.storages[:n_visible]
    ]
    found = gradients_of(node, inputs, outputs, arriving)
    n_inputs, n_outputs = len(inputs), len(outputs)

    def run(*arrays: Any) -> Sequence[Any]:
        return gradients_of(node, arrays[:n_inputs], arrays[n_inputs:][:n_outputs], arrays[n_inputs + n_outputs :])

    return noise.spread(node, [*inputs, *outputs, *arriving], found, run)  # type: ignore[no-any-return]


def gradients_of(
    node: Node, inputs: Sequence[Array | None], outputs: Sequence[Array], arriving: Sequence[Array]
) -> Sequence[Any]:
    """Return the gradients of the inputs of a function by its rule, from arrays."""
    spec = node.spec
    known = [None if array is None else _floating(array, spec, n) for n, array in enumerate(inputs)]
    wanted = [value is not None and value.need_grad for value in node.inputs]
    with np.errstate(all="ignore"):
        result = GRADIENTS[spec.name](_F, GradientCall(spec, known, outputs, arriving, node.args, wanted))
    return result if isinstance(result, (tuple, list)) else (result,)


def _floating(array: Array, spec: Any, position: int) -> Array:
    entry = spec.inputs[min(position, len(spec.inputs) - 1)]
    is_floating = entry.dtype in ("float", "parameter", "statistic")
    return array.astype(np.float64) if is_floating and array.dtype.kind != "f" else array


@dataclass(frozen=True)
class Slack:
    """The permitted distance of a result from the truth.

    Attributes:
        least: The distance that is allowed in any case; it is known without computing anything again.
        full: Returns the effect of so many draws of noise on the result; infinite where rounding decides it.
    """

    least: float = 0.0
    full: Callable[[int], float | Array] = lambda _: 0.0

    def __add__(self, other: "Slack | float") -> "Slack":
        if isinstance(other, Slack):
            return Slack(self.least + other.least, lambda draws: self.full(draws) + other.full(draws))
        return Slack(self.least + other, lambda draws: self.full(draws) + other)


@dataclass
class Computed:
    """The values that a graph computes.

    Attributes:
        values: Of every storage of the graph, after the pass.
        backward: Gives the gradients of a backward pass from the loss.
    """

    values: dict[Storage, Array]
    backward: Callable[[], dict[Storage, Array]]

    @cached_property
    def grads(self) -> dict[Storage, Array]:
        """The gradients, computed when they are first asked for: after many passes nobody does."""
        return self.backward()


@dataclass
class Truth:
    """Values with tolerances: what a run must give.

    Attributes:
        exact: The values, and the gradients.
        compute: Computes both again with noise.
        largest_terms: Gives how large gradients within functions may be before they cancel.
        dtypes: In which functions compute, where it is not float32.
    """

    exact: Computed
    compute: Callable[[Noise], Computed]
    largest_terms: Callable[[], float]
    dtypes: Dtypes
    _noisy: list[Computed] = field(default_factory=list)

    @property
    def values(self) -> dict[Storage, Array]:
        """The values of every storage of the graph, after the pass."""
        return self.exact.values

    @property
    def grads(self) -> dict[Storage, Array]:
        """The gradients that a backward pass from the loss gives."""
        return self.exact.grads

    def noisy(self, draws: int) -> list[Computed]:
        """Values and gradients as noise makes them, computed when they are first asked for: most results need none."""
        found = kinds(self.dtypes, min(draws, self._precision.draws), special=self._special)
        self._noisy += [self.compute(noise) for noise in found[len(self._noisy) :]]
        return self._noisy[: len(found)]

    def differs_from(self, other: "Truth") -> bool:
        """Return whether a value that both have is another one in the other."""
        common = self.values.keys() & other.values.keys()
        return any(not np.allclose(self.values[storage], other.values[storage], equal_nan=True) for storage in common)

    def value(self, storage: Storage) -> tuple[Array, Slack]:
        """Return a value and how far a run may be from it."""
        exact = self.values[storage]

        def full(draws: int) -> float | Array:
            return tolerance(exact, [found.values[storage] for found in self.noisy(draws)], self._precision)

        return exact, Slack(least_tolerance(exact, self._precision), full)

    def grad(self, storage: Storage) -> tuple[Array, Slack]:
        """Return a gradient (zeros where none arrives) and how far a run may be from it."""
        zeros = np.zeros(self.values[storage].shape)
        exact = self.grads.get(storage, zeros)
        slack = Slack(least_tolerance(exact, self._precision), lambda draws: self._tolerance_of_grad(exact, storage, draws))
        return exact, slack + self._precision.floor * self._steepest

    def _tolerance_of_grad(self, exact: Array, storage: Storage, draws: int) -> float | Array:
        noisy = [found.grads.get(storage, np.zeros(exact.shape)) for found in self.noisy(draws)]
        found = tolerance(exact, noisy, self._precision)
        return found if draws == FEW else found + self._precision.floor * self._terms

    @cached_property
    def _precision(self) -> Precision:
        """The coarsest in which some function computes."""
        return max((PRECISIONS[name] for name in {"float32", *self.dtypes.noise.values()}), key=lambda found: found.noise)

    @cached_property
    def _special(self) -> bool:
        return any(array.dtype.kind == "f" and not np.all(np.isfinite(array)) for array in self.values.values())

    @cached_property
    def _terms(self) -> float:
        return self.largest_terms()

    @cached_property
    def _steepest(self) -> float:
        """The largest gradient anywhere: those of normalizations are differences of such numbers."""
        return max((magnitude(grad) for grad in self.grads.values() if grad.size), default=0.0)


def truth_of(
    graph: Graph,
    root: Variable,
    leaves: Mapping[Storage, Array],
    start: float,
    runs: Mapping[Node, int] = NO_RUNS,
    dtypes: Dtypes = FLOAT32,
) -> Truth:
    """Values and gradients for some values of the leaves, and a gradient of the root to start from.

    `runs` says how often each seeded function has run before, `dtypes` in which dtypes functions compute.
    """
    needs = _flags_of(value for node in graph.order for value in node.inputs if value is not None)

    def compute(noise: Noise) -> Computed:
        values = dict(leaves)
        graph.forward(values, noise, runs)

        def backward() -> dict[Storage, Array]:
            with _flags(needs):
                return graph.backward(root, values, start, noise)

        return Computed(values, backward)

    def largest_terms() -> float:
        with _flags(needs):
            return graph.largest_terms(exact.values, exact.grads)

    exact = compute(Noise(dtypes))
    return Truth(exact, compute, largest_terms, dtypes)


#: Values with their `need_grad`; no mapping, since a value equals those that were unlinked from it.
Flags: TypeAlias = list[tuple[Value, bool | None]]


def _flags_of(values: Iterable[Value]) -> Flags:
    return [(value, value._need_grad) for value in values]


@contextmanager
def _flags(needs: Flags) -> Iterator[None]:
    """Give the variables the `need_grad` flags that they had when the graph was computed, and restore the present ones."""
    present = _flags_of(value for value, _ in needs)
    _set_need_grad(needs)
    try:
        yield
    finally:
        _set_need_grad(present)


def _set_need_grad(flags: Flags) -> None:
    for value, flag in flags:
        value._need_grad = flag
