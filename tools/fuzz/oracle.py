"""The slow truth: the functions of a graph one after another on float64 arrays, by reference kernels and gradient rules.

Of nn_core's engine only the graph itself is used: no plan, no memory, no dispatch, no fusing. How far rounding may carry
a result is found out by computing it again with noise before and after every function.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.errors import NNCoreError
from nn_core.graph.node import Node, Storage, Value, forward_order
from nn_core.reference.registry import KERNELS
from nn_core.rules.registry import GRADIENTS, GradientCall
from nn_core.testing.operators import ArrayFunctions, infer_shapes, made_entries, updated
from nn_core.variable import Variable

from .program import Array

#: Relative size of the noise: some units in the last place of float32.
NOISE: Final = 1e-6
#: The same as a part of the largest number: kernels compute small results from large terms.
NOISE_OF_TERMS: Final = 1.2e-7
#: How often a difference that the noise made is allowed.
ALLOWED: Final = 12.0
#: Draws of noise that the tolerance of a result comes from, and of a result that is beyond it.
FEW, MANY = 1, 12
#: Tolerance relative to the largest magnitude, if noise changes nothing.
FLOOR: Final = 4e-6
#: Results that the noise changes by more than this part of their magnitude tell nothing.
USELESS: Final = 0.02
#: Results as large as this tell nothing: float32 may not hold what they are computed from.
FARTHEST: Final = 1e12

#: Changes the numbers of an array as rounding might.
Noise: TypeAlias = Callable[[Array], Array]

_TINY: Final = np.finfo(np.float32).tiny
_F = ArrayFunctions()
NO_RUNS: Final[Mapping[Node, int]] = {}


class Undefined(Exception):  # noqa: N818
    """The graph has something that the oracle does not compute."""


class Graph:
    """The functions before some variables, in order."""

    def __init__(self, roots: Sequence[Variable]) -> None:
        self.order = forward_order(roots)
        if any(node.python is not None for node in self.order):
            raise Undefined("a PythonFunction")

    def forward(self, values: dict[Storage, Array], noise: Noise | None = None, runs: Mapping[Node, int] = NO_RUNS) -> None:
        """Compute all functions; `values` holds those of the leaves and gets all others.

        `runs` says how often a seeded function has run before.
        """
        for node in self.order:
            compute(node, values, noise, runs.get(node, 0))

    def backward(
        self, root: Variable, values: Mapping[Storage, Array], start: float, noise: Noise | None = None
    ) -> dict[Storage, Array]:
        """The gradients of leaves and others where that of `root` is `start`; `values` are those after forward()."""
        if not root.need_grad:
            return {}
        grads: dict[Storage, Array] = {root.storage: np.full(values[root.storage].shape, start)}
        for node in reversed(self.order):
            if node.need_grad and node.spec.differentiable and any(storage in grads for storage in node.storages):
                for value, gradient in zip(node.inputs, gradients(node, values, grads, noise), strict=True):
                    if value is None or gradient is None or not value.need_grad:
                        continue
                    part = disturbed(np.asarray(gradient), noise)
                    with np.errstate(invalid="ignore"):  # of infinities of float32
                        grads[value.storage] = grads[value.storage] + part if value.storage in grads else part
        return grads

    def largest_terms(self, values: Mapping[Storage, Array], grads: Mapping[Storage, Array]) -> float:
        """The largest gradient that a function would give for arriving gradients as large as they are, of random signs.

        A normalization of a constant channel takes the mean from the arriving gradient and multiplies the rest by the root
        of 1 / eps. Where nothing is left in truth, rounding errors of the terms are.
        """
        rng = np.random.default_rng(2)
        random = {
            storage: np.max(np.abs(grad)) * rng.choice([-1.0, 1.0], grad.shape) for storage, grad in grads.items() if grad.size
        }
        largest = 0.0
        for node in self.order:
            if node.need_grad and node.spec.differentiable and any(storage in random for storage in node.storages):
                found = gradients(node, values, random)
                sizes = [float(np.max(np.abs(grad))) for grad in found if grad is not None and np.size(grad)]
                largest = max([largest, *sizes])
        return largest


def compute(node: Node, values: dict[Storage, Array], noise: Noise | None = None, runs: int = 0) -> None:
    """Compute one function on the values of its inputs; a seeded one for the time after `runs` others."""
    exact = [None if value is None else values[value.storage] for value in node.inputs]
    inputs = [None if array is None else disturbed(array, noise) for array in exact]
    key = key_of(node, runs)
    try:
        results = run_kernel(node, inputs, key, "float32" if noise is _single else "float64")
    except NNCoreError:  # a matrix that is not positive definite any more, say
        if noise is None:
            raise
        results = run_kernel(node, exact, key)
    n_outputs = len(results) - len(node.spec.updates)
    for storage, result in zip(node.storages, results[:n_outputs], strict=True):
        values[storage] = disturbed(np.asarray(result), noise)
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
    types = {"float": dtype, "parameter": dtype, "statistic": dtype, "index": "int64"}
    arrays: list[Any] = []
    for n, array in enumerate(inputs):
        same = dtype if array is None or array.dtype.kind == "f" else array.dtype
        wanted = types.get(spec.inputs[min(n, len(spec.inputs) - 1)].dtype, same)
        arrays.append(None if array is None else array.astype(wanted, copy=False))
    shapes = infer_shapes(spec, [None if array is None else array.shape for array in arrays], node.args)
    if spec.has("view"):
        return (arrays[0].reshape(shapes[0]),)
    extra = {} if key is None else {"key": np.array(key, np.uint64)}
    with np.errstate(all="ignore"):
        results = KERNELS[spec.name](np, *arrays, **node.args, **extra)
    results = results if isinstance(results, tuple) else (results,)
    types["same"] = arrays[0].dtype if arrays else dtype
    entries = made_entries(spec, len(results), shapes)
    return tuple(
        result if result is None or entry is None else np.asarray(result).astype(types[entry.dtype], copy=False)
        for result, entry in zip(results, entries, strict=True)
    )


def gradients(
    node: Node, values: Mapping[Storage, Array], grads: Mapping[Storage, Array], noise: Noise | None = None
) -> Sequence[Any]:
    """The gradients of the inputs of a function by its rule."""
    inputs = [None if value is None else disturbed(values[value.storage], noise) for value in node.inputs]
    outputs = [disturbed(values[storage], noise) for storage in node.storages]
    n_visible = len(outputs) - sum(entry.aux for entry in node.spec.outputs)
    arriving = [
        disturbed(grads[storage], noise) if storage in grads else np.zeros(values[storage].shape)
        for storage in node.storages[:n_visible]
    ]
    return gradients_of(node, inputs, outputs, arriving)


def gradients_of(
    node: Node, inputs: Sequence[Array | None], outputs: Sequence[Array], arriving: Sequence[Array]
) -> Sequence[Any]:
    """The gradients of the inputs of a function by its rule, from arrays."""
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


def disturbed(array: Array, noise: Noise | None) -> Array:
    """The array with noise, if it holds floating-point numbers."""
    if noise is None or array.dtype.kind != "f":
        return array
    return noise(array)


def shaken(seed: int) -> Noise:
    """Noise as large as `NOISE` and `NOISE_OF_TERMS`; zeros get the other sign, which kernels do not promise."""
    rng = np.random.default_rng(seed)

    def noise(array: Array) -> Array:
        relative, absolute = NOISE * rng.uniform(-1.0, 1.0, array.shape), NOISE_OF_TERMS * rng.uniform(-1.0, 1.0, array.shape)
        largest = np.max(np.abs(array), initial=0.0, where=np.isfinite(array))
        return np.where(array == 0, -array, array * (1.0 + relative) + largest * absolute)

    return noise


def _coarse(array: Array) -> Array:
    """With fewer bits: the errors of equal numbers are equal, and add up where `shaken` makes them cancel."""
    mantissa, exponent = np.frexp(array)
    return np.ldexp(np.floor(mantissa / NOISE) * NOISE, exponent)


def _single(array: Array) -> Array:
    """In float32, in which functions compute then: sums of equal errors, and what cancels, are seen as they come."""
    with np.errstate(over="ignore", under="ignore"):
        single = array.astype(np.float32)
    return np.where(np.abs(single) < _TINY, np.copysign(np.float32(0), single), single)  # as kernels may flush subnormals


@dataclass(frozen=True)
class Slack:
    """The permitted distance of a result from the truth.

    Attributes:
        least: The distance that is allowed in any case; it is known without computing anything again.
        full: Returns the effect of so many draws of noise on the result; infinite where rounding decides it.
    """

    least: float = 0.0
    full: Callable[[int], float] = lambda _: 0.0

    def __add__(self, other: "Slack | float") -> "Slack":
        if isinstance(other, Slack):
            return Slack(self.least + other.least, lambda draws: self.full(draws) + other.full(draws))
        return Slack(self.least + other, lambda draws: self.full(draws) + other)


@dataclass
class Truth:
    """Values with tolerances: what a run must give.

    Attributes:
        values: Of every storage of the graph, after the pass.
        grads: Gradients that a backward pass from the loss gives.
        compute: Computes both again with noise.
        largest_terms: Gives how large gradients within functions may be before they cancel.
    """

    values: dict[Storage, Array]
    grads: dict[Storage, Array]
    compute: Callable[[Noise], tuple[dict[Storage, Array], dict[Storage, Array]]]
    largest_terms: Callable[[], float]
    _noisy: list[tuple[dict[Storage, Array], dict[Storage, Array]]] = field(default_factory=list)

    def noisy(self, draws: int) -> "list[tuple[dict[Storage, Array], dict[Storage, Array]]]":
        """Values and gradients as noise makes them, computed when they are first asked for: most results need none."""
        kinds = (_coarse, _single, *(shaken(n) for n in range(1, draws + 1)))
        self._noisy += [self.compute(noise) for noise in kinds[len(self._noisy) :]]
        return self._noisy[: len(kinds)]

    def differs_from(self, other: "Truth") -> bool:
        """Whether a value that both have is another one in the other."""
        common = self.values.keys() & other.values.keys()
        return any(not np.allclose(self.values[storage], other.values[storage], equal_nan=True) for storage in common)

    def value(self, storage: Storage) -> tuple[Array, Slack]:
        """A value and how far a run may be from it."""
        exact = self.values[storage]

        def tolerance(draws: int) -> float:
            return _tolerance(exact, [values[storage] for values, _ in self.noisy(draws)])

        return exact, Slack(_least(exact), tolerance)

    def grad(self, storage: Storage) -> tuple[Array, Slack]:
        """A gradient (zeros where none arrives) and how far a run may be from it."""
        zeros = np.zeros(self.values[storage].shape)
        exact = self.grads.get(storage, zeros)
        slack = Slack(_least(exact), lambda draws: self._tolerance_of_grad(exact, storage, draws))
        return exact, slack + FLOOR * self._steepest

    def _tolerance_of_grad(self, exact: Array, storage: Storage, draws: int) -> float:
        tolerance = _tolerance(exact, [grads.get(storage, np.zeros(exact.shape)) for _, grads in self.noisy(draws)])
        return tolerance if draws == FEW else tolerance + FLOOR * self._terms

    @cached_property
    def _terms(self) -> float:
        return self.largest_terms()

    @cached_property
    def _steepest(self) -> float:
        """The largest gradient anywhere: those of normalizations are differences of such numbers."""
        return max((float(np.max(np.abs(grad))) for grad in self.grads.values() if grad.size), default=0.0)


def truth_of(
    graph: Graph, root: Variable, leaves: Mapping[Storage, Array], start: float, runs: Mapping[Node, int] = NO_RUNS
) -> Truth:
    """Values and gradients for some values of the leaves, and a gradient of the root to start from.

    `runs` says how often each seeded function has run before.
    """
    needs = {value: value._need_grad for node in graph.order for value in node.inputs if value is not None}

    def compute(noise: Noise | None) -> tuple[dict[Storage, Array], dict[Storage, Array]]:
        values = dict(leaves)
        graph.forward(values, noise, runs)
        return values, graph.backward(root, values, start, noise)

    def compute_again(noise: Noise) -> tuple[dict[Storage, Array], dict[Storage, Array]]:
        with _flags(needs):
            return compute(noise)

    def largest_terms() -> float:
        with _flags(needs):
            return graph.largest_terms(values, grads)

    values, grads = compute(None)
    return Truth(values, grads, compute_again, largest_terms)


@contextmanager
def _flags(needs: Mapping[Value, bool | None]) -> Iterator[None]:
    """Give the variables the `need_grad` flags that they had when the graph was computed, and restore the present ones."""
    present = {value: value._need_grad for value in needs}
    _set_need_grad(needs)
    try:
        yield
    finally:
        _set_need_grad(present)


def _set_need_grad(flags: Mapping[Value, bool | None]) -> None:
    for value, flag in flags.items():
        value._need_grad = flag


def _least(exact: Array) -> float:
    """The tolerance of rounding alone."""
    if exact.dtype.kind != "f" or not exact.size:
        return 0.0
    scale = float(np.max(np.abs(exact)))
    return FLOOR * scale + 1e-6 if scale < FARTHEST else 0.0


def _tolerance(exact: Array, noisy: Sequence[Array]) -> float:
    if exact.dtype.kind != "f":
        return 0.0 if all(np.array_equal(exact, other) for other in noisy) else np.inf
    if not exact.size:
        return 0.0
    scale = float(np.max(np.abs(exact)))
    if not scale < FARTHEST:
        return np.inf
    spread = float(np.max([np.max(np.abs(exact - other)) for other in noisy]))  # NaN where one of them has overflowed
    if not spread <= USELESS * max(scale, 1e-3):
        return np.inf
    return ALLOWED * spread + FLOOR * scale + 1e-6
