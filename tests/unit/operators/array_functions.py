"""Run operators on raw NumPy arrays, as the engine does, and check them against independent truth.

``ArrayFunctions`` is the F of a gradient rule over arrays; ``check_forward`` and ``check_gradient`` are the two
checks that the tests of every operator topic are tables of.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from nn_core.reference.registry import KERNELS
from nn_core.rules.arguments import resolve_args
from nn_core.rules.broadcasting import broadcast_shapes
from nn_core.rules.registry import GRADIENTS, SHAPE_RULES, GradientCall
from nn_core.spec.load import load
from nn_core.spec.model import FunctionSpec, OutputSpec
from nn_core.typing import Shape

ROOT = Path(__file__).parents[3]

#: Relative and absolute tolerance of a forward result by dtype, before a test widens it.
TOLERANCES = {"float64": (1e-10, 1e-12), "float32": (2e-5, 1e-5), "float16": (4e-3, 2e-3)}


@cache
def specs() -> Mapping[str, FunctionSpec]:
    """All specifications by name."""
    return {spec.name: spec for spec in load(ROOT / "function_spec.yaml")}


@cache
def spec_of(name: str) -> FunctionSpec:
    """The specification of `name`, once the modules of its topic have filled the tables of rules and kernels."""
    spec = specs()[name]
    for package in ("rules", "reference"):
        if (ROOT / "nn_core" / package / f"{spec.topic}.py").exists():
            importlib.import_module(f"nn_core.{package}.{spec.topic}")
    return spec


@cache
def _by_api() -> Mapping[str, FunctionSpec]:
    return {spec.api: spec for spec in specs().values()}


def infer_shapes(spec: FunctionSpec, shapes: Sequence[Shape | None], args: Mapping[str, Any]) -> tuple[Shape, ...]:
    """The shapes of all outputs, as the `shape` entry of `spec` says."""
    if spec.shape == "rule":
        return tuple(tuple(shape) for shape in SHAPE_RULES[spec.name](*shapes, **args) if shape is not None)
    if spec.shape == "broadcast":
        common = broadcast_shapes(*(shape for shape in shapes if shape is not None))
        return (common,) * len(spec.outputs)
    word, _, source = spec.shape.partition(" ")
    assert word == "same_as", f"{spec.name}: unknown shape {spec.shape!r}"
    position = [entry.name for entry in spec.inputs].index(source)
    return (tuple(shapes[position] or ()),) * len(spec.outputs)


def run(name: str, /, *inputs: Any, dtype: str = "float64", key: Any = None, **args: Any) -> tuple[Any, ...]:
    """All results of the reference kernel of `name` (outputs, aux outputs, updates), cast as the engine casts.

    `args` may hold inputs by name. Floating inputs decide the dtype; `dtype` is that of functions without any.
    """
    spec = spec_of(name)
    arrays = _arrays(spec, inputs, args, dtype)
    dtype = _float_dtype(arrays, dtype)
    shapes = [None if array is None else array.shape for array in arrays]
    settings = resolve_args(spec, args, shapes)
    expected = () if spec.has("dynamic_shape") else infer_shapes(spec, shapes, settings)
    if spec.has("view"):
        return (arrays[0].reshape(expected[0]),)
    extra = {"key": np.array([7, 0], np.uint64) if key is None else key} if spec.has("seeded") else {}
    before = [None if array is None else array.copy() for array in arrays]
    with np.errstate(all="ignore"):
        results = KERNELS[name](np, *arrays, **settings, **extra)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy, err_msg=f"{name} wrote to an input")
    results = results if isinstance(results, tuple) else (results,)
    given = [np.shape(result) for result in results[: len(expected)]]
    assert given == list(expected), f"{name}: the shape rule says {expected}, the kernel gives {given}"
    return tuple(_cast(result, _output(spec, n, settings), arrays, dtype) for n, result in enumerate(results))


def _arrays(spec: FunctionSpec, inputs: Sequence[Any], args: dict[str, Any], dtype: str) -> list[Any]:
    """The inputs in order as arrays (None where not given); integers in floating places become floats."""
    given = list(inputs)
    for entry in spec.inputs[len(given) :]:
        if entry.name in args:
            value = args.pop(entry.name)
            given += list(value) if entry.variadic else [value]
        elif not entry.variadic:
            given.append(None)
    floating = _float_dtype([np.asarray(value) for value in given if value is not None], dtype)
    arrays: list[Any] = []
    for position, value in enumerate(given):
        entry = spec.inputs[min(position, len(spec.inputs) - 1)]
        wanted = {"float": floating, "index": "int64", "same": None}[entry.dtype]
        arrays.append(None if value is None else np.asarray(value, dtype=wanted))
    return arrays


def _float_dtype(arrays: Sequence[Any], otherwise: str) -> str:
    names = [array.dtype.name for array in arrays if array is not None and array.dtype.kind == "f"]
    return names[0] if names else otherwise


def _output(spec: FunctionSpec, position: int, settings: Mapping[str, Any]) -> OutputSpec | None:
    entries = spec.outputs[1:] if settings.get("only_index") else spec.outputs
    if position < len(entries):
        return entries[position]
    return entries[-1] if entries and entries[-1].variadic else None


def _cast(result: Any, entry: OutputSpec | None, arrays: Sequence[Any], dtype: str) -> Any:
    if result is None or entry is None:
        return result
    kinds = {"float": dtype, "index": "int64", "same": arrays[0].dtype if arrays else dtype}
    return np.asarray(result).astype(kinds[entry.dtype], copy=False)


class ArrayFunctions:
    """F over raw arrays: ``F.tanh(x)`` runs the reference kernel; several visible outputs come as a tuple."""

    def __init__(self, dtype: str = "float64") -> None:
        self._dtype = dtype

    def __getattr__(self, api: str) -> Callable[..., Any]:
        if api not in _by_api():
            raise AttributeError(f"no function has the API name {api!r}")
        spec = _by_api()[api]

        def function(*inputs: Any, **args: Any) -> Any:
            if not spec.variadic:
                args.update(zip((arg.name for arg in spec.args), inputs[len(spec.inputs) :], strict=False))
                inputs = inputs[: len(spec.inputs)]
            results = run(spec.name, *inputs, dtype=self._dtype, **args)
            n_hidden = sum(entry.aux for entry in spec.outputs) + len(spec.updates)
            visible = results[: len(results) - n_hidden]
            return visible[0] if len(visible) == 1 else visible

        return function


def run_gradient(
    name: str, /, *inputs: Any, grads: Sequence[Any] | None = None, wanted: Sequence[bool] | None = None, **args: Any
) -> tuple[Any, ...]:
    """Gradients of all inputs by the gradient rule, reading NaN wherever the specification declares no need.

    `grads` are the gradients of the visible outputs (default: ones).
    """
    spec = spec_of(name)
    key = args.pop("key", None)
    arrays = _arrays(spec, inputs, args, "float64")
    results = run(name, *arrays, key=key, **args)
    outputs = results[: len(results) - len(spec.updates)]
    visible = outputs[: len(outputs) - sum(entry.aux for entry in spec.outputs)]
    grads = [np.ones_like(output) for output in visible] if grads is None else list(grads)
    settings = resolve_args(spec, args, [None if array is None else array.shape for array in arrays])
    needs = set(spec.backward.needs)
    known_inputs = [
        array if spec.inputs[min(n, len(spec.inputs) - 1)].name in needs else _poison(array)
        for n, array in enumerate(arrays)
    ]
    known_outputs = [
        output if spec.outputs[min(n, len(spec.outputs) - 1)].name in needs else _poison(output)
        for n, output in enumerate(outputs)
    ]
    wanted = tuple(array is not None for array in arrays) if wanted is None else tuple(wanted)
    call = GradientCall(spec, known_inputs, known_outputs, grads, settings, wanted)
    with np.errstate(all="ignore"):
        result = GRADIENTS[name](ArrayFunctions(), call)
    return result if isinstance(result, tuple) else tuple(result) if isinstance(result, list) else (result,)


def _poison(array: Any) -> Any:
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
        arrays = _arrays(spec, [_as_dtype(value, dtype) for value in inputs], {}, dtype)
        results = run(name, *arrays, dtype=dtype, **args)
        expected = truth(*(_as_dtype(array, "float64") for array in arrays)) if callable(truth) else truth
        expected = expected if isinstance(expected, tuple) else (expected,)
        default_rtol, default_atol = TOLERANCES[dtype]
        for n, (result, value) in enumerate(zip(results, expected, strict=False)):
            if value is None:
                continue
            assert result.shape == np.shape(value), (
                f"{name}: output {n} has shape {result.shape}, not {np.shape(value)}"
            )
            np.testing.assert_allclose(
                np.asarray(result, dtype="float64") if result.dtype.kind == "f" else result,
                value,
                rtol=max(default_rtol, rtol),
                atol=max(default_atol, atol),
                err_msg=f"{name} in {dtype}, output {n}",
            )


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
    step: float = 1e-5,
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
    assert spec.differentiable, f"{name} declares no gradient"
    arrays = _arrays(spec, [_as_dtype(value, "float64") for value in inputs], {}, "float64")
    n_hidden = sum(entry.aux for entry in spec.outputs) + len(spec.updates)

    def visible(*values: Any) -> tuple[Any, ...]:
        results = run(name, *values, **args)
        return results[: len(results) - n_hidden]

    rng = np.random.default_rng(seed)
    is_float = [output.dtype.kind == "f" for output in visible(*arrays)]
    grads = [
        rng.normal(size=output.shape) if floating else np.zeros_like(output)
        for output, floating in zip(visible(*arrays), is_float, strict=True)
    ]
    gradients = run_gradient(name, *arrays, grads=grads, **args)
    assert len(gradients) == len(arrays), f"{name}: the rule returns {len(gradients)} gradients of {len(arrays)} inputs"
    if wrt is None:
        wrt = [n for n, array in enumerate(arrays) if array is not None and array.dtype.kind == "f"]
    for position in wrt:
        given, expected = gradients[position], np.zeros_like(arrays[position])
        for place in np.ndindex(*expected.shape):
            expected[place] = sum(
                np.sum(dy * (np.asarray(after) - np.asarray(before))) / (2 * step)
                for dy, after, before, floating in zip(
                    grads,
                    visible(*_moved(arrays, position, place, step)),
                    visible(*_moved(arrays, position, place, -step)),
                    is_float,
                    strict=True,
                )
                if floating
            )
        given = np.zeros_like(expected) if given is None else given
        assert given.shape == expected.shape, (
            f"{name}: gradient {position} has shape {given.shape}, not {expected.shape}"
        )
        np.testing.assert_allclose(given, expected, rtol=rtol, atol=atol, err_msg=f"{name}, input {position}")
        if gradients[position] is not None and len(arrays) > 1:
            alone = run_gradient(name, *arrays, grads=grads, wanted=[n == position for n in range(len(arrays))], **args)
            np.testing.assert_array_equal(alone[position], given, err_msg=f"{name}, input {position} alone")


def _moved(arrays: Sequence[Any], position: int, place: tuple[int, ...], step: float) -> list[Any]:
    moved = list(arrays)
    moved[position] = arrays[position].copy()
    moved[position][place] += step
    return moved


def check_table(topic: str) -> None:
    """Every function of `topic` has the attachments that its specification promises, and no attachment is an orphan."""
    for spec in specs().values():
        if spec.topic != topic:
            continue
        spec_of(spec.name)
        if not (spec.has("composite") or spec.has("view")):
            assert spec.name in KERNELS, f"{spec.name} has no reference kernel"
        if not spec.has("composite"):
            assert (spec.name in GRADIENTS) == spec.differentiable, (
                f"{spec.name}: gradient rule and backward entry differ"
            )
            assert (spec.name in SHAPE_RULES) == (spec.shape == "rule"), (
                f"{spec.name}: shape rule and shape entry differ"
            )
