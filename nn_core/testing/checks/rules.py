"""Checks without a backend: descriptions are complete, and gradients are derivatives."""

import inspect
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nn_core.context import Context, context_scope
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import REGISTRY
from nn_core.engine.graph.apply import operator_of
from nn_core.engine.graph.grad import grad
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.spec.model import WHOLE_DTYPES, FunctionSpec
from nn_core.testing.assertions import assert_allclose, assert_identical, require
from nn_core.testing.cases import RuleCase, has_kernel
from nn_core.testing.expected import Numbers
from nn_core.testing.numeric import KinkError, central_difference, some_places
from nn_core.testing.operators import (
    KEY,
    check_attachments,
    hidden_results,
    output_gradients,
    run,
    run_gradient,
    weighted_change,
)
from nn_core.testing.perturbed_inputs import has_other_results
from nn_core.testing.samples.registry import (
    CONVENTIONS,
    SECOND_CONVENTIONS,
    Sample,
    named_functions,
    numbers_of,
    samples_of,
)
from nn_core.testing.strict_namespace import plain_array, strict_array, strict_namespace
from nn_core.typing import Shape
from nn_core.variable import Variable, forward_all

#: Elements of each input that are moved; the rest would tell the same.
PLACES = 12
PLACES_OF_SECOND = 5
#: Other numbers are drawn this many times where a sample falls on a kink.
ATTEMPTS = 5
RTOL, ATOL = 1e-5, 1e-7


def check_description(spec: FunctionSpec) -> None:
    """A function has samples, the rules and the kernel that its description promises, and they take its arguments."""
    if spec.has("composite"):
        return
    check_attachments(spec)
    entries = samples_of(spec)
    require(entries, f"{spec.name}: a function must have samples, got none")
    for position, entry in enumerate(spec.inputs):
        if entry.optional:
            given = {len(e.inputs) > position and e.inputs[position] is not None for e in entries}
            require(given == {True, False}, f"{spec.name}: samples must be with and without {entry.name}")
    _check_settings(spec, entries)
    if has_kernel(spec):
        _check_signature(spec)
        _check_results_differ(spec)


def _check_settings(spec: FunctionSpec, entries: Sequence[Sample]) -> None:
    """Samples set every argument, and gradients need what there is."""
    tried = {name for e in entries for name in e.args}
    missing = [arg.name for arg in spec.args if arg.name not in tried]
    require(not missing, f"{spec.name}: samples must set every argument, got none that set {', '.join(missing)}")
    known = {entry.name for entry in spec.inputs} | {entry.name for entry in spec.outputs}
    require(set(spec.backward.needs) <= known, f"{spec.name}: backward.needs names inputs and outputs")


def _check_results_differ(spec: FunctionSpec) -> None:
    """Some sample can be called with other numbers that give other results; else a kernel that returns old ones passes."""
    require(
        has_other_results(spec),
        f"{spec.name}: other numbers in the inputs of a sample must give other results, got the same for each; "
        "add a sample, or note it with nn_core.testing.constant",
    )


def _check_signature(spec: FunctionSpec) -> None:
    """The reference kernel can be called with the declared inputs and settings."""
    for entry in samples_of(spec):
        shapes = [None if array is None else array.shape for array in numbers_of(spec, entry)]
        args = resolve_args(spec, entry.args, shapes)
        extra = {"key": None} if spec.has("seeded") else {}
        try:
            inspect.signature(KERNELS[spec.name]).bind(None, *shapes, **args, **extra)
        except TypeError as error:
            raise AssertionError(f"{spec.name}: the reference kernel must take its description: {error}") from error


def check_array_contract(spec: FunctionSpec) -> None:
    """The reference kernel of a function keeps to the array contract, and gives the same over the strict namespace."""
    xp = strict_namespace()
    for sample in samples_of(spec):
        drawn = numbers_of(spec, sample)
        settings = dict(resolve_args(spec, sample.args, [None if a is None else a.shape for a in drawn]))
        expected = _reference_results(spec, np, drawn, settings, np.copy)
        given = _reference_results(spec, xp, drawn, settings, strict_array)
        for one, other in zip(given, expected, strict=True):
            if other is not None:
                assert_identical(np.asarray(one), np.asarray(other), f"{spec.name}: {sample.name} over the array contract")


def _reference_results(
    spec: FunctionSpec, xp: Any, arrays: Sequence[Any], settings: dict[str, Any], take: Callable[[Any], Any]
) -> list[Any]:
    extra = {"key": take(np.array(KEY, np.uint64))} if spec.has("seeded") else {}
    with np.errstate(all="ignore"):
        results = KERNELS[spec.name](xp, *[None if a is None else take(a) for a in arrays], **settings, **extra)
    return [plain_array(result) for result in (results if isinstance(results, tuple) else (results,))]


def check_sample_names() -> None:
    """Every sample belongs to a function of the core or of an installed plugin."""
    PLUGINS.all()
    unknown = sorted(name for name in named_functions() if REGISTRY.spec(name) is None)
    require(not unknown, f"samples must be of functions, got {', '.join(unknown)}")


def check_gradient_rule(case: RuleCase) -> None:
    """The gradient rule gives the derivative of the reference, with NaN wherever it declares no need to read."""
    if case.spec.name not in CONVENTIONS:
        _with_redraws(case, lambda attempt: _check_first(case, attempt))


def check_second_derivative(case: RuleCase) -> None:
    """``nn.grad`` of ``nn.grad`` is the derivative of the gradient rule."""
    if case.spec.name not in SECOND_CONVENTIONS:
        _with_redraws(case, lambda attempt: _check_second(case, attempt))


def _with_redraws(case: RuleCase, check: Callable[[int], None]) -> None:
    kinks: list[KinkError] = []
    while len(kinks) < ATTEMPTS:
        kink = _kink_in(check, len(kinks))
        if kink is None:
            return
        kinks.append(kink)
    raise AssertionError(f"{case}: numbers must be away from kinks, got {ATTEMPTS} draws near one: {kinks[-1]}")


def _kink_in(check: Callable[[int], None], attempt: int) -> KinkError | None:
    try:
        check(attempt)
    except KinkError as error:
        return error
    return None


def _key(spec: FunctionSpec) -> dict[str, Any]:
    return {"key": KEY} if spec.has("seeded") else {}


def _check_first(case: RuleCase, attempt: int) -> None:
    spec, args = case.spec, {**case.sample.args, **_key(case.spec)}
    arrays = [None if array is None else array.copy() for array in numbers_of(spec, case.sample, attempt)]

    def visible(*values: Any) -> tuple[Any, ...]:
        results = run(spec.name, *values, **args)
        return results[: len(results) - hidden_results(spec)]

    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    before = visible(*arrays)
    grads = output_gradients(before, rng)
    gradients = run_gradient(spec.name, *arrays, grads=grads, **args)
    require(len(gradients) == len(arrays), f"{case}: {len(gradients)} gradients of {len(arrays)} inputs")

    def change(*values: Any) -> float:
        return weighted_change(visible(*values), before, grads)

    for position, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
        if array is None or array.dtype.kind != "f" or _by_convention(spec, position):
            continue
        given = np.zeros_like(array) if gradient is None else np.asarray(gradient)
        require(given.shape == array.shape, f"{case}: gradient {position} has shape {given.shape}, not {array.shape}")
        _compare(case, position, given, change, arrays, PLACES, rng)


class _Second(NamedTuple):
    """Gradients of gradients at some numbers, and what they are gradients of: the sum of `weights` times the gradients.

    Attributes:
        values: By the floating inputs, then by the gradients of outputs.
        starts: The gradients of the floating outputs.
        weights: For the gradient of each floating input.
        floats: Positions of the floating outputs.
        shapes: Of all outputs.
        key: What a seeded function has drawn from.
    """

    values: list[Numbers]
    starts: list[Numbers]
    weights: list[Numbers]
    floats: list[int]
    shapes: list[Shape]
    key: dict[str, Any]


def _check_second(case: RuleCase, attempt: int) -> None:
    spec, args = case.spec, case.sample.args
    arrays = [None if array is None else array.copy() for array in numbers_of(spec, case.sample, attempt)]
    rng = np.random.default_rng(zlib.crc32(f"{case}/second".encode()))
    second = _second_gradients(case, arrays, rng)
    if second is None:
        return
    moved = [n for n, a in enumerate(arrays) if a is not None and a.dtype.kind == "f"]
    grads = [np.zeros(shape) for shape in second.shapes]

    def product(*values: Any) -> float:
        for n, start in zip(second.floats, values[len(arrays) :], strict=True):
            grads[n] = start
        inputs = values[: len(arrays)]
        found = run_gradient(spec.name, *inputs, grads=grads, **args, **second.key)
        return sum(float(np.sum(w * found[n])) for w, n in zip(second.weights, moved, strict=True) if found[n] is not None)

    points = [*arrays, *second.starts]
    for position, given in zip([*moved, *range(len(arrays), len(points))], second.values, strict=True):
        if position >= len(arrays) or not _by_convention(spec, position):
            _compare(case, position, given, product, points, PLACES_OF_SECOND, rng)


def _second_gradients(case: RuleCase, arrays: Sequence[Numbers | None], rng: np.random.Generator) -> _Second | None:
    """Return the gradients of gradients by ``nn.grad``; None where nothing has a gradient."""
    spec = case.spec
    with context_scope(Context(["reference:double"])):
        variables = [None if array is None else _variable(array) for array in arrays]
        results = operator_of(spec)(*variables, **case.sample.args)
        results = list(results) if isinstance(results, tuple) else [results]
        floats = _floating_outputs(spec, len(results))
        starts = [_variable(rng.normal(size=results[n].shape)) for n in floats]
        sources = _with_gradients(variables)
        if not sources or not floats:
            return None
        first = grad([results[n] for n in floats], sources, starts)
        weights = [rng.normal(size=v.shape) for v in sources]
        second = grad(first, [*sources, *starts], weights)
        forward_all(second)
        values = [np.array(variable.data.get_data("r")) for variable in second]
        drawn = _drawn(spec, results[0])
    shapes = [y.shape for y in results]
    return _Second(values, [np.array(start.d) for start in starts], weights, floats, shapes, drawn)


def _variable(array: Numbers) -> Variable:
    return Variable.from_numpy_array(array, need_grad=array.dtype.kind == "f")


def _with_gradients(variables: Sequence[Variable | None]) -> list[Variable]:
    return [variable for variable in variables if variable is not None and variable.need_grad]


def _floating_outputs(spec: FunctionSpec, n_outputs: int) -> list[int]:
    kinds = [spec.outputs[min(n, len(spec.outputs) - 1)].dtype for n in range(n_outputs)]
    return [n for n, kind in enumerate(kinds) if kind not in WHOLE_DTYPES]


def _drawn(spec: FunctionSpec, result: Variable) -> dict[str, Any]:
    """Return the key of a seeded function that has run, as a setting of its reference kernel."""
    if not spec.has("seeded"):
        return {}
    key = result.producer.key  # type: ignore[union-attr]  # a function has computed it
    return {"key": KEY if key is None else key.copy()}


def _by_convention(spec: FunctionSpec, position: int) -> bool:
    return f"{spec.name}.{spec.inputs[min(position, len(spec.inputs) - 1)].name}" in CONVENTIONS


def _compare(
    case: RuleCase,
    position: int,
    given: Any,
    function: Callable[..., float],
    arrays: Sequence[Any],
    limit: int,
    rng: np.random.Generator,
) -> None:
    slopes = central_difference(function, arrays, position, some_places(arrays[position].shape, limit, rng))
    if slopes:
        places = tuple(np.array(list(slopes)).T) if arrays[position].ndim else ()
        desired = np.array(list(slopes.values())).reshape(np.shape(given[places]))
        what = f"{case}: the derivative by input {position} at {list(slopes)}"
        assert_allclose(given[places], desired, RTOL * case.sample.loose, ATOL * case.sample.loose, err_msg=what)
