"""The cases of the kit: every sample of every function in every dtype on every backend that was asked for."""

import itertools
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

import nn_core.solvers as S
from nn_core.context import TYPE_CONFIGS, Context
from nn_core.engine.dispatch.given_dtypes import GivenDtypes, given_dtypes
from nn_core.engine.dispatch.plugin_manager import PLUGINS, REFERENCE
from nn_core.engine.dispatch.registry import REGISTRY
from nn_core.engine.graph.call import PreparedKernel, resolved_call
from nn_core.engine.graph.infer import input_entries
from nn_core.errors import BackendNotFoundError, BackendUnavailableError, NNCoreError, PluginError
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.perturbed_inputs import other_numbers
from nn_core.testing.samples.registry import ErrorSample, Sample, Settings, errors_of, numbers_of, samples_of
from nn_core.testing.samples.solvers import GRADIENT_CHANGES, SOLVERS
from nn_core.typing import extra

#: Number types under test; bfloat16 where its package is installed.
DTYPES: Final = ("float32", "float64", "float16") + (("bfloat16",) if find_spec("ml_dtypes") else ())
_TYPE_NAMES: Final = {dtype: name for name, dtype in TYPE_CONFIGS.items()}


@dataclass(frozen=True, slots=True)
class Case:
    """One sample of one function in one dtype on one backend."""

    backend: str
    spec: FunctionSpec
    dtype: str
    sample: Sample

    def __str__(self) -> str:
        return f"{self.backend}-{self.spec.name}-{self.dtype}-{self.sample.name}"

    @property
    def context(self) -> Context:
        """The context with this backend alone."""
        return context_of(self.backend, self.dtype)

    @property
    def prepared(self) -> PreparedKernel:
        """The kernel that runs the case, as the engine resolves it."""
        return _prepared(self)

    @property
    def native(self) -> bool:
        """Whether a kernel of the backend itself runs the case; one that cannot be prepared is for the test to tell."""
        try:
            return not self.prepared.refusals
        except NNCoreError:
            return True


@dataclass(frozen=True, slots=True)
class SpecCase:
    """One function, to be checked without a backend."""

    spec: FunctionSpec

    def __str__(self) -> str:
        return self.spec.name


@dataclass(frozen=True, slots=True)
class RuleCase:
    """One sample of one function, to be checked without a backend."""

    spec: FunctionSpec
    sample: Sample

    def __str__(self) -> str:
        return f"{self.spec.name}-{self.sample.name}"


@dataclass(frozen=True, slots=True)
class ErrorCase:
    """One wrong call of one function on one backend."""

    backend: str
    spec: FunctionSpec
    sample: ErrorSample

    def __str__(self) -> str:
        return f"{self.backend}-{self.spec.name}-{self.sample.name}"


@dataclass(frozen=True, slots=True)
class FunctionCase:
    """One function on one backend."""

    backend: str
    spec: FunctionSpec

    def __str__(self) -> str:
        return f"{self.backend}-{self.spec.name}"


@dataclass(frozen=True, slots=True, eq=False)
class SolverCase:
    """One solver, or one change of gradients, with some settings on one backend."""

    backend: str
    solver: str
    name: str
    settings: Settings

    def __str__(self) -> str:
        return f"{self.backend}-{self.solver}-{self.name}"


def context_of(backend: str, dtype: str) -> Context:
    """Return the context of one backend and one dtype."""
    return Context([f"{backend}:{_TYPE_NAMES[dtype]}"])


def has_kernel(spec: FunctionSpec) -> bool:
    """Return whether kernels run the function; views and composites have none."""
    return not (spec.has("view") or spec.has("composite"))


def functions_of(backends: Sequence[str]) -> list[FunctionSpec]:
    """Return the functions of the core, then those that the plugins of `backends` and operator plugins brought."""
    for backend in backends:
        PLUGINS.backend(backend)
    return [*SPECS, *_added()]


def _added() -> list[FunctionSpec]:
    """Return the functions that plugins brought, after the samples in their packages."""
    for name in {added.plugin for added in REGISTRY} & set(PLUGINS.names()):
        for module in PLUGINS.plugin(name).samples:
            import_module(module)
    return [added.spec for added in REGISTRY]


def rule_functions(backends: Sequence[str]) -> list[FunctionSpec]:
    """Return the functions whose rules are proven in a run: those of the core where the reference is under test, and the
    ones that plugins brought."""
    core = SPECS if REFERENCE in backends else ()
    return [*core, *_added()]


def description_cases(backends: Sequence[str], fast: bool) -> Iterator[SpecCase]:
    """Functions whose descriptions are checked."""
    return (SpecCase(spec) for spec in rule_functions(backends))


def contract_cases(backends: Sequence[str], fast: bool) -> Iterator[SpecCase]:
    """Functions of plugins with a reference kernel; those of the core have a test of their own."""
    return (SpecCase(added.spec) for added in REGISTRY if added.spec.name in KERNELS)


def rule_cases(backends: Sequence[str], fast: bool) -> Iterator[RuleCase]:
    """Yield samples at which gradient rules are compared with central differences."""
    for spec in rule_functions(backends):
        if spec.differentiable and not spec.has("composite"):
            smooth = [sample for sample in samples_of(spec) if sample.smooth and sample.gradient]
            yield from (RuleCase(spec, sample) for sample in smooth[: 1 if fast else None])


def cases(backends: Sequence[str], fast: bool) -> Iterator[Case]:
    """Yield samples that a kernel of the backend runs.

    Where its arrays are not NumPy's, the samples that the reference runs over them are among them.
    """
    for backend in backends:
        over_reference = backend == REFERENCE or PLUGINS.backend(backend).namespace() is not np
        for spec in functions_of([backend]):
            if spec.has("composite"):
                continue
            for dtype in DTYPES[:1] if fast else DTYPES:
                runs = _runs(backend, spec, dtype, over_reference)
                yield from _one_of(runs) if fast else runs


def _one_of(runs: Iterator[Case]) -> Iterator[Case]:
    """Yield the first case with other results for other numbers, in which more faults show; the first one where there is
    none.
    """
    given = list(itertools.islice(runs, 1))
    found = (case for case in itertools.chain(given, runs) if other_numbers(case.spec, case.sample, case.dtype)[1])
    yield from itertools.islice(itertools.chain(found, given), 1)


def _runs(backend: str, spec: FunctionSpec, dtype: str, over_reference: bool) -> Iterator[Case]:
    """Yield the samples of a function that are run on the arrays of the backend."""
    for sample in samples_of(spec):
        case = Case(backend, spec, dtype, sample)
        if over_reference or (has_kernel(spec) and case.native):
            yield case


def error_cases(backends: Sequence[str], fast: bool) -> Iterator[ErrorCase]:
    """Wrong calls."""
    for backend in backends:
        for spec in functions_of([backend]):
            yield from (ErrorCase(backend, spec, sample) for sample in errors_of(spec)[: 1 if fast else None])


def solver_cases(backends: Sequence[str], fast: bool) -> Iterator[SolverCase]:
    """Return updates that a kernel of the backend does; those of the reference are done where arrays are not NumPy's."""
    for backend in backends:
        loaded = PLUGINS.backend(backend)
        everything = backend == REFERENCE or loaded.namespace() is not np
        own: Container[str] = extra(loaded, "updates")
        for solver in (*S.__all__, *GRADIENT_CHANGES):
            if everything or solver in own:
                table = {"defaults": {}, **SOLVERS.get(solver, {})}
                settings = [SolverCase(backend, solver, name, chosen) for name, chosen in table.items()]
                yield from settings[: 1 if fast else None]


def function_cases(backends: Sequence[str], fast: bool) -> Iterator[FunctionCase]:
    """Functions with kernels, for checks that go through all of their samples."""
    for backend in backends:
        yield from (FunctionCase(backend, spec) for spec in functions_of([backend]) if has_kernel(spec))


@cache
def unavailable(backend: str) -> str:
    """Why the tests of a backend have to be skipped, empty where they can run; a broken backend is an error."""
    try:
        PLUGINS.backend(backend)
    except (BackendNotFoundError, BackendUnavailableError) as error:
        return str(error)
    return ""


def installed_backends() -> list[str]:
    """All backends of all installed plugins, the reference first; plugins that are broken raise."""
    names: list[str] = []
    for plugin in PLUGINS.all():
        if plugin.failure is not None:
            raise PluginError(f"plugin {plugin.label}: must load, got: {plugin.failure.reason}") from plugin.failure.cause
        names += plugin.backends
    return sorted(names, key=lambda name: (name != REFERENCE, name))


def given_dtypes_of(spec: FunctionSpec, inputs: Sequence[Any], dtype: str) -> GivenDtypes:
    """Return the dtype of each input that is taken as it is: floating numbers are in `dtype`."""
    held = [None if array is None else dtype if array.dtype.kind == "f" else array.dtype.name for array in inputs]
    return given_dtypes(input_entries(spec, len(inputs)), held)


@cache
def _prepared(case: Case) -> PreparedKernel:
    inputs = numbers_of(case.spec, case.sample)
    shapes = tuple(None if array is None else array.shape for array in inputs)
    call = resolved_call(case.spec, case.sample.args, shapes)
    return call.kernel(case.context, given_dtypes_of(case.spec, inputs, case.dtype) if call.takes_given else ())


# kernels may come and go with plugins
PLUGINS.when_refreshed.append(_prepared.cache_clear)
