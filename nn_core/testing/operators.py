"""Reference kernels and gradient rules on plain NumPy arrays, without the engine: the truth that backends are held to.

``check_forward`` and ``check_gradient`` compare one operator with independent truth; the tests of an operator package
are tables of them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

import nn_core.operators.reference  # fills the tables
import nn_core.operators.rules  # noqa: F401  # fills the tables
from nn_core.engine.dispatch.given_dtypes import GIVEN_KINDS, given_dtypes
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph.array_functions import operator_or_namespace
from nn_core.errors import NNCoreError
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.rules.broadcasting import broadcast_shapes
from nn_core.operators.rules.registry import GRADIENTS, SHAPE_RULES, GradientCall
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import WHOLE_DTYPES, FunctionSpec, InputSpec, OutputSpec
from nn_core.testing.assertions import assert_allclose, assert_identical, require
from nn_core.testing.numeric import STEP, central_difference
from nn_core.typing import Shape

#: The random key of seeded functions unless a test gives another one.
KEY: tuple[int, int] = (7, 0)
#: Relative and absolute tolerance of `check_forward` by dtype.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float64": (1e-10, 1e-12),
    "float32": (2e-5, 1e-5),
    "float16": (4e-3, 2e-3),
}


def infer_shapes(spec: FunctionSpec, shapes: Sequence[Shape | None], args: Mapping[str, Any]) -> tuple[Shape | None, ...]:
    """Return the shapes of all outputs, as the `shape` entry of `spec` says; None where the settings leave one out."""
    if spec.shape == "rule":
        return tuple(shape if shape is None else tuple(shape) for shape in SHAPE_RULES[spec.name](*shapes, **args))
    if spec.shape == "broadcast":
        common = broadcast_shapes(*(shape for shape in shapes if shape is not None))
        return (common,) * len(spec.outputs)
    source = spec.shape.removeprefix("same_as ")
    position = [entry.name for entry in spec.inputs].index(source)
    return (tuple(shapes[position] or ()),) * len(spec.outputs)


def run(name: str, /, *inputs: Any, float_dtype: str = "float64", key: Any = None, **args: Any) -> tuple[Any, ...]:
    """All results of the reference kernel of `name` (outputs, aux outputs, updates), cast as the engine casts.

    `args` may hold inputs by name. Floating inputs decide the dtype; `float_dtype` is that of functions without any.
    `key` is what a seeded function draws from.
    """
    spec = spec_of(name)
    arrays = as_inputs(spec, inputs, args, float_dtype)
    dtype = _float_dtype(arrays, float_dtype)
    shapes = [None if array is None else array.shape for array in arrays]
    settings = resolve_args(spec, args, shapes)
    expected = () if spec.has("dynamic_shape") else infer_shapes(spec, shapes, settings)
    if spec.has("view"):
        return (arrays[0].reshape(expected[0]),)
    results = _computed(name, arrays, {**settings, **_drawn_from(spec, key)})
    wanted = [shape for shape in expected if shape is not None]
    given = [np.shape(result) for result in results[: len(wanted)]]
    require(given == wanted, f"{name}: the shape rule says {wanted}, the reference kernel gives {given}")
    entries = made_entries(spec, len(results), expected)
    same = same_dtype(spec, arrays, dtype)
    return tuple(_cast(result, entry, same, dtype) for result, entry in zip(results, entries, strict=True))


def _drawn_from(spec: FunctionSpec, key: Any) -> dict[str, Any]:
    """Return the further argument of the kernels of seeded functions."""
    return {"key": np.array(KEY if key is None else key, np.uint64)} if spec.has("seeded") else {}


def _computed(name: str, arrays: Sequence[Any], settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the results of the reference kernel, which must leave the inputs alone."""
    before = [None if array is None else array.copy() for array in arrays]
    with np.errstate(all="ignore"):
        results = KERNELS[name](np, *arrays, **settings)
    for array, copy in zip(arrays, before, strict=True):
        if copy is not None:
            assert_identical(array, copy, f"{name}: the reference kernel wrote to an input")
    return results if isinstance(results, tuple) else (results,)


def as_inputs(spec: FunctionSpec, inputs: Sequence[Any], args: dict[str, Any], dtype: str) -> list[Any]:
    """Return the inputs in order as arrays (None where not given); integers in floating places become floats."""
    given = [None if value is None else np.asarray(value) for value in _in_order(spec, inputs, args)]
    entries = [spec.inputs[min(position, len(spec.inputs) - 1)] for position in range(len(given))]
    own = given_dtypes(entries, [None if array is None else array.dtype.name for array in given]) or [None] * len(given)
    floating = _float_dtype(given, dtype)
    kinds = {"float": floating, "parameter": floating, "statistic": floating, **WHOLE_DTYPES}
    return [
        None if array is None else array.astype(kinds.get(entry.dtype, held or floating), copy=False)
        for entry, array, held in zip(entries, given, own, strict=True)
    ]


def _in_order(spec: FunctionSpec, inputs: Sequence[Any], args: dict[str, Any]) -> list[Any]:
    """Return what was given for each input, those that were given by name taken out of `args`."""
    given = list(inputs)
    for entry in spec.inputs[len(given) :]:
        if entry.name in args:
            value = args.pop(entry.name)
            given += list(value) if entry.variadic else [value]
        elif not entry.variadic:
            given.append(None)
    return given


def _float_dtype(arrays: Sequence[Any], otherwise: str) -> str:
    return next((array.dtype.name for array in arrays if array is not None and array.dtype.kind == "f"), otherwise)


def made_entries(spec: FunctionSpec, n_results: int, shapes: Sequence[Shape | None]) -> list[OutputSpec | None]:
    """Return the meaning of each result of a reference kernel: the outputs that the settings ask for, then None for the
    updates.
    """
    entries: list[OutputSpec | None] = list(spec.outputs)
    if spec.outputs and spec.outputs[0].variadic:
        entries = [spec.outputs[0]] * n_results
    elif shapes:
        entries = [entry for entry, shape in zip(spec.outputs, shapes, strict=True) if shape is not None]
    return [*entries, *[None] * (n_results - len(entries))][:n_results]


def same_dtype(spec: FunctionSpec, arrays: Sequence[Any], otherwise: str) -> Any:
    """Return the dtype of outputs that have that of an input: of the first input that is taken as it is."""
    entries = [spec.inputs[min(position, len(spec.inputs) - 1)] for position in range(len(arrays))]
    taken = (
        array.dtype for entry, array in zip(entries, arrays, strict=True) if entry.dtype in GIVEN_KINDS and array is not None
    )
    return next(taken, otherwise)


def _cast(result: Any, entry: OutputSpec | None, same: Any, dtype: str) -> Any:
    if result is None or entry is None:
        return result
    kinds = {**WHOLE_DTYPES, "same": same}
    return np.asarray(result).astype(kinds.get(entry.dtype, dtype), copy=False)


class ArrayFunctions:
    """F over raw arrays: ``F.tanh(x)`` runs the reference kernel; several visible outputs come as a tuple."""

    def __init__(self, dtype: str = "float64") -> None:
        self._dtype = dtype

    def __getattr__(self, api: str) -> Any:
        try:
            return operator_or_namespace(api, self._function)
        except NNCoreError as error:
            raise AttributeError(str(error)) from error

    def _function(self, spec: FunctionSpec) -> Callable[..., Any]:
        def function(*inputs: Any, **args: Any) -> Any:
            if not spec.variadic:
                args.update(zip((arg.name for arg in spec.args), inputs[len(spec.inputs) :], strict=False))
                inputs = inputs[: len(spec.inputs)]
            results = run(spec.name, *inputs, float_dtype=self._dtype, **args)
            visible = results[: len(results) - hidden_results(spec)]
            return visible[0] if len(visible) == 1 else visible

        return function


def hidden_results(spec: FunctionSpec) -> int:
    """Return the number of results of the reference kernel that the caller of the function does not get."""
    return sum(entry.aux for entry in spec.outputs) + len(spec.updates)


def run_gradient(
    name: str, /, *inputs: Any, grads: Sequence[Any] | None = None, wanted: Sequence[bool] | None = None, **args: Any
) -> tuple[Any, ...]:
    """Gradients of all inputs by the gradient rule, reading NaN wherever the specification declares no need.

    `grads` are the gradients of the visible outputs (default: ones). The rule reads the new values of `updates`.
    """
    spec = spec_of(name)
    key = args.pop("key", None)
    arrays = as_inputs(spec, inputs, args, "float64")
    results = run(name, *arrays, key=key, **args)
    outputs = results[: len(results) - len(spec.updates)]
    visible = outputs[: len(outputs) - sum(entry.aux for entry in spec.outputs)]
    grads = [np.ones_like(output) for output in visible] if grads is None else list(grads)
    arrays = updated(spec, arrays, results[len(results) - len(spec.updates) :])
    return gradients_at(spec, arrays, outputs, grads, args, wanted)


def gradients_at(
    spec: FunctionSpec,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    grads: Sequence[Any],
    args: Mapping[str, Any],
    wanted: Sequence[bool] | None = None,
) -> tuple[Any, ...]:
    """Gradients of all inputs by the gradient rule from what a backward pass finds: the inputs now, the outputs of before."""
    settings = resolve_args(spec, args, [None if array is None else array.shape for array in inputs])
    needs = spec.needed(settings)
    known_inputs, known_outputs = _known(spec.inputs, inputs, needs), _known(spec.outputs, outputs, needs)
    wanted = tuple(array is not None for array in inputs) if wanted is None else tuple(wanted)
    call = GradientCall(spec, known_inputs, known_outputs, grads, settings, wanted, keeps=True)
    with np.errstate(all="ignore"):
        result = GRADIENTS[spec.name](ArrayFunctions(), call)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _known(entries: Sequence[InputSpec] | Sequence[OutputSpec], arrays: Sequence[Any], needs: Collection[str]) -> list[Any]:
    """`arrays` with NaN in those that a gradient rule does not need; the last entry stands for all further ones."""
    names = [entries[min(n, len(entries) - 1)].name for n in range(len(arrays))]
    return [array if name in needs else poisoned(array) for name, array in zip(names, arrays, strict=True)]


def updated(spec: FunctionSpec, inputs: Sequence[Any], updates: Sequence[Any]) -> list[Any]:
    """Return the inputs as they are after the function has run."""
    after = list(inputs)
    names = [entry.name for entry in spec.inputs]
    for name, value in zip(spec.updates, updates, strict=True):
        if value is not None:
            after[names.index(name)] = value
    return after


def poisoned(array: Any) -> Any:
    """Return an array of the same shape and dtype that must not be read: NaN, or the smallest integer."""
    if array is None:
        return None
    return np.full_like(array, np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).min)


def check_forward(
    name: str,
    inputs: Sequence[Any],
    truth: Any,
    /,
    *,
    dtypes: Sequence[str] = ("float64", "float32", "float16"),
    rtol: float = 0,
    atol: float = 0,
    **args: Any,
) -> None:
    """Compare the reference kernel with `truth` in each dtype.

    Floating inputs are rounded to the dtype first. `truth` is an array, a tuple of arrays (None: not compared), or a
    function that computes either from the rounded inputs in float64. `rtol` and `atol` widen what `TOLERANCES` allows.
    """
    spec = spec_of(name)
    for dtype in dtypes:
        arrays = as_inputs(spec, [_as_dtype(value, dtype) for value in inputs], {}, dtype)
        results = run(name, *arrays, float_dtype=dtype, **args)
        expected = truth(*(_as_dtype(array, "float64") for array in arrays)) if callable(truth) else truth
        expected = expected if isinstance(expected, tuple) else (expected,)
        default_rtol, default_atol = TOLERANCES[dtype]
        for n, (result, value) in enumerate(zip(results, expected, strict=False)):
            if value is None:
                continue
            where = f"{name} in {dtype}, output {n}"
            require(result.shape == np.shape(value), f"{where} has shape {result.shape}, not {np.shape(value)}")
            assert_allclose(result, value, max(default_rtol, rtol), max(default_atol, atol), err_msg=where)


def _as_dtype(value: Any, dtype: str) -> Any:
    if value is None:
        return None
    array = np.asarray(value)
    return array.astype(dtype) if array.dtype.kind == "f" else array


def check_gradient(
    name: str,
    inputs: Sequence[Any],
    /,
    *,
    wrt: Sequence[int] | None = None,
    step: float = STEP,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    seed: int = 0,
    **args: Any,
) -> None:
    """Compare the gradient rule with central differences in float64, for random gradients of the visible outputs.

    `wrt` are the positions of the inputs to check (default: every floating input; a gradient of None counts as zero).
    What `backward.needs` does not declare reads as NaN while the rule runs.
    """
    spec = spec_of(name)
    require(spec.differentiable, f"{name} declares no gradient")
    arrays = as_inputs(spec, [_as_dtype(value, "float64") for value in inputs], {}, "float64")

    results = run(name, *arrays, **args)
    before = results[: len(results) - hidden_results(spec)]
    grads = output_gradients(before, np.random.default_rng(seed))
    gradients = run_gradient(name, *arrays, grads=grads, **args)
    require(len(gradients) == len(arrays), f"{name}: the rule returns {len(gradients)} gradients of {len(arrays)} inputs")
    visible = _at_shapes_of(spec, arrays, args)

    def product(*values: Any) -> float:  # relative to `before`: sums of large results lose digits
        return weighted_change(visible(*values), before, grads)

    if wrt is None:
        wrt = [n for n, array in enumerate(arrays) if array is not None and array.dtype.kind == "f"]
    for position in wrt:
        expected = np.zeros_like(arrays[position])
        with np.errstate(all="ignore"):
            slopes = central_difference(product, arrays, position, None, step, kinks=True)
        for place, slope in slopes.items():
            expected[place] = slope
        given = np.zeros_like(expected) if gradients[position] is None else gradients[position]
        where = f"{name}, input {position}"
        require(given.shape == expected.shape, f"{where}: gradient of shape {given.shape}, not {expected.shape}")
        assert_allclose(given, expected, rtol, atol, err_msg=where)
        if gradients[position] is not None and len(arrays) > 1:
            alone = run_gradient(name, *arrays, grads=grads, wanted=[n == position for n in range(len(arrays))], **args)
            assert_identical(alone[position], np.asarray(given), f"{where} alone")


def _at_shapes_of(spec: FunctionSpec, arrays: Sequence[Any], args: Mapping[str, Any]) -> Callable[..., tuple[Any, ...]]:
    """Return the visible results of `run` as a function of float64 arrays of these shapes.

    Differences ask for thousands of results, so what `run` has checked once, and the arguments, are not worked out again.
    """
    if spec.has("view"):
        return lambda *values: run(spec.name, *values, **args)
    args = dict(args)
    drawn_from = _drawn_from(spec, args.pop("key", None))
    settings = {**resolve_args(spec, args, [None if array is None else array.shape for array in arrays]), **drawn_from}
    kernel, n_hidden = KERNELS[spec.name], hidden_results(spec)

    def visible(*values: Any) -> tuple[Any, ...]:
        results = kernel(np, *values, **settings)
        results = results if isinstance(results, tuple) else (results,)
        return results[: len(results) - n_hidden]

    return visible


def output_gradients(outputs: Sequence[Any], rng: np.random.Generator) -> list[Any]:
    """Random gradients of floating outputs, zeros for others."""
    return [rng.normal(size=np.shape(y)) if np.asarray(y).dtype.kind == "f" else np.zeros_like(y) for y in outputs]


def weighted_change(outputs: Sequence[Any], before: Sequence[Any], weights: Sequence[Any]) -> float:
    """Sum of ``weight * (output - before)`` over the floating outputs."""
    total = 0.0
    for after, old, weight in zip(outputs, before, weights, strict=True):
        if np.asarray(after).dtype.kind == "f":
            total += float(np.sum(weight * (np.asarray(after) - np.asarray(old))))
    return total


def check_table(topic: str) -> None:
    """Every function of `topic` has the attachments that its specification promises, and no attachment is an orphan."""
    for spec in SPECS:
        if spec.topic == topic and not spec.has("composite"):
            check_attachments(spec)


def check_attachments(spec: FunctionSpec) -> None:
    """Require that a function has the kernel and the rules that its specification promises, and no others."""
    if not spec.has("view"):
        require(spec.name in KERNELS, f"{spec.name} has no reference kernel")
    require((spec.name in GRADIENTS) == spec.differentiable, f"{spec.name}: gradient rule and backward entry differ")
    require((spec.name in SHAPE_RULES) == (spec.shape == "rule"), f"{spec.name}: shape rule and shape entry differ")
