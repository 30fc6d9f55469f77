"""The cases of fusions: chains of functions that a plugin runs as one operator, made of the samples of the functions."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.context import Context
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.graph.apply import operator_of
from nn_core.engine.graph.plugin_fusion import fusion_of
from nn_core.errors import ArgumentError, NNCoreError
from nn_core.operators.rules.fusions import Fusion
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.cases import DTYPES, context_of
from nn_core.testing.samples.registry import Sample, numbers_of, samples_of
from nn_core.variable import Variable

#: Most combinations of samples that are tried for one fusion.
MOST: Final = 200

#: Makes the graph of a chain from its beginning, and returns what the last function gives.
Build: TypeAlias = Callable[[], Variable]


@dataclass(frozen=True, slots=True)
class FusionCase:
    """One fusion in one dtype on one backend."""

    backend: str
    plugin: str
    fusion: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.backend}-{self.fusion}-{self.dtype}"

    @property
    def context(self) -> Context:
        """The context with this backend alone."""
        return context_of(self.backend, self.dtype)

    def load(self) -> Fusion:
        """Return the fusion itself."""
        return fusion_of(PLUGINS.required_offer("passes", self.fusion, "fusion"))


@dataclass(frozen=True, slots=True)
class Chain:
    """One graph of a chain.

    Attributes:
        name: Its samples, for messages.
        build: Makes it; raises an exception of nn_core where the samples do not fit each other.
        loose: By how much the tolerances are multiplied.
    """

    name: str
    build: Build
    loose: float = 1.0


_WRITTEN: Final[dict[str, list[Chain]]] = {}


def chain_sample(fusion: str, name: str, build: Build, *, loose: float = 1.0) -> None:
    """Add a graph that a fusion must take, where the samples of the functions in its chain do not make one.

    Args:
        fusion: Name of the fusion with that of its plugin: "acme.fast_gelu".
        name: What is special about the graph, unique for the fusion.
        build: Called in the context under test; returns the variable that the last function of the chain computes.
        loose: By how much the tolerances are multiplied, for graphs that amplify rounding.

    Raises:
        ArgumentError: when the name is taken.

    Example:
        >>> def wide():
        ...     return F.relu(F.sigmoid(nn.Variable.from_numpy_array(np.ones((2, 3)))))
        >>> chain_sample("kinds.sigmoid_then_relu", "wide", wide)
    """
    known = _WRITTEN.setdefault(fusion, [])
    if any(other.name == name for other in known):
        raise ArgumentError(f"{fusion}: samples must have different names, got {name!r} twice")
    known.append(Chain(name, build, loose))


def fusion_cases(backends: Sequence[str], fast: bool) -> Iterator[FusionCase]:
    """Yield the fusions of all plugins that are installed, in all dtypes on some backends."""
    offers = [offer for offer in PLUGINS.offered("passes") if offer.role == "fusion"]
    for backend, offer in itertools.product(backends, offers):
        for dtype in DTYPES[:1] if fast else DTYPES:
            yield FusionCase(backend, offer.plugin, offer.full_name, dtype)


def chains_of(case: FusionCase, names: Sequence[str], numbers: int = 0) -> Iterator[Chain]:
    """Yield graphs of the functions called `names`: those that were written for the fusion, then all that samples make.

    Args:
        case: The fusion.
        names: Its chain.
        numbers: Which numbers of the samples.

    Raises:
        ArgumentError: when a name is not that of a function.
    """
    yield from _WRITTEN.get(case.fusion, ())
    specs = [_spec(case, name) for name in names]
    combinations = itertools.product(samples_of(specs[0]), *(_distinct(spec) for spec in specs[1:]))
    for samples in itertools.islice(combinations, MOST):
        links = list(zip(specs, samples, strict=True))
        name = ", ".join(sample.name for sample in samples)
        yield Chain(name, lambda links=links: _built(links, case.dtype, numbers), max(s.loose for s in samples))  # type: ignore[misc]


def _spec(case: FusionCase, name: str) -> FunctionSpec:
    spec = PLUGINS.function_named(name)
    if spec is None:
        raise ArgumentError(f"fusion {case.fusion}: chain must have names of functions, got {name!r}")
    return spec


def _distinct(spec: FunctionSpec) -> list[Sample]:
    """Return the samples of a function that differ after another function: in settings, or in what else is given."""
    found: dict[object, Sample] = {}
    for sample in samples_of(spec):
        rest = [None if array is None else array.shape for array in numbers_of(spec, sample)[1:]]
        found.setdefault((repr(sample.args), repr(rest)), sample)
    return list(found.values())


def _built(links: Sequence[tuple[FunctionSpec, Sample]], dtype: str, numbers: int) -> Variable:
    value: Variable | None = None
    for spec, sample in links:
        arrays = numbers_of(spec, sample, numbers)
        inputs = [None if array is None else _leaf(array, dtype) for array in arrays]
        if value is not None:
            inputs = [value, *(_fitted(array, arrays[0], value, dtype) for array in arrays[1:])]
        result = operator_of(spec)(*inputs, **sample.args)
        if isinstance(result, tuple):
            raise ArgumentError(f"{spec.name}: a function in a chain must have one result, got {len(result)}")
        value = result
    assert value is not None
    return value


def _fitted(array: Any, first: Any, value: Variable, dtype: str) -> Variable | None:
    """Return another input of a function: as in the sample, but as large as the first one where it was that."""
    if array is None:
        return None
    return _leaf(np.resize(array, value.shape) if first is not None and array.shape == first.shape else array, dtype)


def _leaf(array: Any, dtype: str) -> Variable:
    return Variable.from_numpy_array(array.astype(dtype_of(dtype)) if array.dtype.kind == "f" else array)


def is_chosen(case: FusionCase, fusions: Sequence[str], functions: Sequence[str], backends: Sequence[str]) -> bool:
    """Return whether a file of tests that names some fusions, functions and backends means a fusion.

    It means those that it names, and those of the plugins whose functions it names; of the plugins of its backends where it
    names neither.
    """
    owners = {name.partition(".")[0] for name in functions if "." in name}
    if not fusions and not functions:
        owners = {name.partition(".")[0] for name in backends}
    return case.fusion in fusions or case.plugin in owners


def require_known(fusions: Sequence[str]) -> None:
    """Refuse names that no installed plugin gives a fusion."""
    for name in fusions:
        try:
            PLUGINS.required_offer("passes", name, "fusion")
        except NNCoreError as error:
            raise ArgumentError(f"FUSIONS: names must be of fusions of installed packages, got {name!r}") from error
