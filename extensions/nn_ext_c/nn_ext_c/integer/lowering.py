"""From a graph of nn_core and the ranges of its values to an integer network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.function import Function
from nn_core.graph_rewriting import functions_of
from nn_ext_c.emitting.registry import NotExportableError, numbers_moved
from nn_ext_c.emitting.shape import MOVEMENTS
from nn_ext_c.graphs import key_of, refuse, run_function, spec_of, unread
from nn_ext_c.integer.calibration import ranges_of
from nn_ext_c.integer.network import IntegerNetwork
from nn_ext_c.integer.numbers import (
    ACCUMULATOR,
    HIGH,
    LOW,
    Array,
    Scale,
    dequantized,
    fixed_point,
    quantized,
    round_half_away,
    scale_of,
    weights_in_integers,
)
from nn_ext_c.program import Shape

#: Functions that clamp what the function before them has computed.
_CLAMPS: Final = {"ReLU": math.inf, "ReLU6": 6.0}
#: The scale of probabilities.
_PROBABILITY: Final = Scale(1 / 256, -128)
_EXPONENT_BITS: Final = 23


@dataclass(slots=True)
class Task:
    """One function that is lowered.

    Attributes:
        lowering: what nodes are added to.
        function: the function.
        inputs: numbers of tensors, None where an input is a constant.
        last: the function whose result is made: this one, or the one that clamps it.
    """

    lowering: Lowering
    function: Function
    inputs: list[int | None]
    last: Function

    @property
    def args(self) -> dict[str, Any]:
        """The settings."""
        return dict(self.function.args)

    @property
    def shape(self) -> Shape:
        """The shape of the first input."""
        return tuple(self.function.inputs[0].shape)

    @property
    def output_shape(self) -> Shape:
        """The shape of the result."""
        return tuple(self.function.results[0].shape)

    @property
    def scale(self) -> Scale:
        """The scale of the result."""
        return scale_of(*self.lowering.ranges[key_of(self.last.outputs[0])])

    def tensor(self, index: int) -> int:
        """Return an input; a constant becomes a tensor with a scale of its own."""
        found = self.inputs[index]
        if found is None:
            found = self.lowering.constant(np.asarray(self.function.inputs[index].d, np.float64))
        return found

    def constant(self, index: int) -> Array | None:
        """Return the numbers of an input that is a constant, None where it is not given.

        Raises:
            NotExportableError: when it is computed.
        """
        given = self.function.node.inputs
        if index >= len(given) or given[index] is None:
            return None
        place = index - given[:index].count(None)  # functions count only the inputs that they have
        if self.inputs[place] is not None:
            raise NotExportableError(f"input {index} must be a constant")
        return np.asarray(self.function.inputs[place].d, np.float64)

    def input_scale(self, tensor: int) -> Scale:
        """Return the scale of a tensor."""
        return self.lowering.network.tensors[tensor].scale

    def clamp(self) -> dict[str, int]:
        """Return the bounds of the result in integers."""
        if self.last.name not in _CLAMPS:
            return {"low": LOW, "high": HIGH}
        scale, high = self.scale, _CLAMPS[self.last.name]
        top = HIGH if math.isinf(high) else int(quantized(np.asarray(high), scale))
        return {"low": scale.zero, "high": max(top, scale.zero)}

    def add(self, kind: str, inputs: tuple[int, ...], shape: Shape, scale: Scale, **data: Any) -> int:
        """Append a node that is called like the function."""
        return self.lowering.network.add(kind, inputs, shape, scale, title=self.function.name, **data)

    def reshape(self, tensor: int, shape: Sequence[int]) -> int:
        """Return the same elements in another shape."""
        return self.move(tensor, np.arange(math.prod(shape)).reshape(tuple(shape)))

    def transpose(self, tensor: int, axes: Sequence[int]) -> int:
        """Return the axes in another order."""
        shape = self.lowering.network.tensors[tensor].shape
        return self.move(tensor, np.arange(math.prod(shape)).reshape(shape).transpose(axes))

    def move(self, tensor: int, places: Array) -> int:
        """Elements by their places, the integer for 0 where these are negative."""
        return self.add("move", (tensor,), places.shape, self.input_scale(tensor), places=places)


Lower = Callable[[Task], "int | Sequence[int]"]
_LOWER: Final[dict[str, Lower]] = {}


def lowers(*names: str) -> Callable[[Lower], Lower]:
    """Register the decorated function for functions of nn_core."""

    def decorate(function: Lower) -> Lower:
        _LOWER.update(dict.fromkeys(names, function))
        return function

    return decorate


class Lowering:
    """An integer network that grows function by function."""

    def __init__(
        self,
        order: Sequence[Function],
        outputs: Mapping[str, nn.Variable],
        inputs: Mapping[str, nn.Variable],
        ranges: Mapping[Any, tuple[float, float]],
    ) -> None:
        self.network = IntegerNetwork()
        self.order, self.ranges = order, ranges
        self.readers = Counter(key_of(v) for function in order for v in function.inputs)
        self.readers.update(key_of(v) for v in outputs.values())
        self.next = {key_of(v): function for function in order for v in function.inputs}
        self.tensors: dict[Any, int | None] = {}
        self.problems: list[str] = []
        for name, variable in inputs.items():
            number = self.network.tensor(variable.shape, scale_of(*ranges[key_of(variable)]))
            self.network.inputs[name] = self.tensors[key_of(variable)] = number

    def lower(self) -> None:
        """Lower all functions.

        Raises:
            ArgumentError: lists every function that cannot be computed in integers.
        """
        for position, function in enumerate(self.order):
            if key_of(function.results[0]) in self.tensors:
                continue
            shapes = [variable.shape for variable in function.inputs]
            try:
                self._function(function)
            except NotExportableError as error:
                self.problems.append(f"{function.name} (function {position} of {len(self.order)}, inputs {shapes}): {error}")
                self._note(function, [0] * len(function.results))
        refuse(self.problems)

    def _function(self, function: Function) -> None:
        if 0 in [variable.size for variable in (*function.inputs, *function.results)]:
            raise NotExportableError("arrays must not be empty")
        inputs = [self.tensors.get(key_of(variable)) for variable in function.inputs]
        if inputs.count(None) == len(inputs) and not spec_of(function).has("seeded"):
            self._note(function, [None] * len(function.results))  # the calibration has computed it
            return
        if function.node.python is not None:  # its name says nothing about what it computes
            raise NotExportableError("a function in Python cannot be written")
        lower = _LOWER.get(function.name)
        if lower is None and _is_of_one_element(function):
            lower = _by_table
        if lower is None:
            raise NotExportableError("there is no way to compute it in integers")
        last = self._clamped(function)
        _require_read(function, last)
        made = lower(Task(self, function, inputs, last))
        results = [made] if isinstance(made, int) else list(made)
        self._note(function, results)
        if last is not function:
            self._note(last, results)

    def _clamped(self, function: Function) -> Function:
        """Return the ReLU or ReLU6 that alone reads the result, or the function itself."""
        key = key_of(function.results[0])
        reader = self.next.get(key)
        if function.name in _CLAMPABLE and reader is not None and self.readers[key] == 1 and reader.name in _CLAMPS:
            return reader
        return function

    def _note(self, function: Function, numbers: Sequence[int | None]) -> None:
        for output, number in zip(function.results, numbers, strict=True):
            self.tensors[key_of(output)] = number

    def constant(self, values: Array) -> int:
        """Return a tensor of numbers that are known."""
        scale = scale_of(float(values.min()), float(values.max()))
        return self.network.add("constant", (), values.shape, scale, values=quantized(values, scale), title="constant")


def _is_of_one_element(function: Function) -> bool:
    spec = spec_of(function)
    return spec.has("pointwise") and not spec.has("seeded") and len(function.inputs) == 1 and len(function.results) == 1


def _by_table(task: Task) -> int:
    """Return a function of one element: its result for each of the 256 integers."""
    tensor, scale = task.tensor(0), task.scale
    numbers = dequantized(np.arange(LOW, HIGH + 1), task.input_scale(tensor))
    (results,) = run_function(task.function, [nn.Variable.from_numpy_array(numbers)], {})
    return task.add("lookup", (tensor,), task.output_shape, scale, table=quantized(results, scale))


def _factor(value: float) -> tuple[int, int]:
    try:
        return fixed_point(value)
    except ValueError as error:
        raise NotExportableError(str(error)) from error


def _window(task: Task, x: int, weight: Array, bias: Array | None, geometry: Mapping[str, Shape], shape: Shape) -> int:
    """Inner products of windows: x is (B, C, *lengths), the weight (groups, filters, channels, *kernel)."""
    input_scale, scale = task.input_scale(x), task.scale
    flat = weight.reshape(weight.shape[0] * weight.shape[1], *weight.shape[2:])
    integers, offsets, scales = weights_in_integers(flat, bias, input_scale.scale)
    largest = np.abs(integers).reshape(len(integers), -1).sum(axis=1) * 255 + np.abs(offsets)
    if largest.max() >= ACCUMULATOR:
        raise NotExportableError(f"sums must stay below 2 ** 31, got {int(largest.max())}")
    factors = [_factor(input_scale.scale * s / scale.scale) for s in scales]
    return task.add(
        "window",
        (x,),
        shape,
        scale,
        weight=integers.reshape(weight.shape),
        bias=offsets,
        multiplier=np.array([multiplier for multiplier, _ in factors]),
        shift=np.array([shift for _, shift in factors]),
        kernel=tuple(weight.shape[3:]),
        **geometry,
        **task.clamp(),
    )


@lowers("Affine")
def _affine(task: Task) -> int:
    weight, base_axis = task.constant(1), task.args["base_axis"]
    assert weight is not None
    n_inputs, n_rows = weight.shape[0], math.prod(task.shape[:base_axis])
    bias = task.constant(2)
    matrix = weight.reshape(n_inputs, -1).T[None]
    x = task.reshape(task.tensor(0), (n_rows, n_inputs))
    geometry: dict[str, Shape] = {"stride": (), "dilation": (), "pad": ()}
    flat_bias = None if bias is None else bias.reshape(-1)
    return task.reshape(_window(task, x, matrix, flat_bias, geometry, (n_rows, matrix.shape[1])), task.output_shape)


@lowers("Convolution", "DepthwiseConvolution")
def _convolution(task: Task) -> int:
    args, base_axis = task.args, task.args["base_axis"]
    is_last = args.get("channel_last", False)
    weight, n = task.constant(1), len(args["pad"])
    assert weight is not None
    if task.function.name == "DepthwiseConvolution":
        weight = weight[:, None]
    weight = np.moveaxis(weight, -1, 1) if is_last else weight
    groups = args.get("group", task.shape[base_axis])
    x = task.reshape(task.tensor(0), (math.prod(task.shape[:base_axis]), *task.shape[base_axis:]))
    counts = task.output_shape[base_axis : base_axis + n] if is_last else task.output_shape[base_axis + 1 :]
    x = task.transpose(x, [0, n + 1, *range(1, n + 1)]) if is_last else x
    shape = (math.prod(task.shape[:base_axis]), weight.shape[0], *counts)
    geometry = {key: tuple(args[key]) for key in ("stride", "dilation", "pad")}
    filters = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    y = _window(task, x, filters, task.constant(2), geometry, shape)
    y = task.transpose(y, [0, *range(2, n + 2), 1]) if is_last else y
    return task.reshape(y, task.output_shape)


@lowers("Add2", "BcAdd2", "Sub2", "AddN")
def _sum(task: Task) -> int:
    tensors = [task.tensor(k) for k in range(len(task.function.inputs))]
    factors = [task.input_scale(k).scale for k in tensors]
    if task.function.name == "Sub2":
        factors[1] = -factors[1]
    return _added(task, tensors, factors, task.scale)


def _added(task: Task, tensors: Sequence[int], factors: Sequence[float], scale: Scale) -> int:
    """Return sums of tensors with factors, which get one shift."""
    _, shift = _factor(max(abs(factor) for factor in factors) / scale.scale)
    shift = min(shift, 55)
    multipliers = [int(round_half_away(np.asarray(factor / scale.scale * 2.0**shift))) for factor in factors]
    return task.add("sum", tuple(tensors), task.output_shape, scale, multipliers=multipliers, shift=shift, **task.clamp())


@lowers("Mul2")
def _product(task: Task) -> int:
    tensors = (task.tensor(0), task.tensor(1))
    factor = math.prod(task.input_scale(k).scale for k in tensors) / task.scale.scale
    multiplier, shift = _factor(factor)
    return task.add("product", tensors, task.output_shape, task.scale, multiplier=multiplier, shift=shift, **task.clamp())


def _pooling(task: Task) -> tuple[int, list[int] | None, dict[str, Any]]:
    """Return the input with its spatial axes last, the order that undoes this, and the geometry."""
    args, x = task.args, task.tensor(0)
    n, rank = len(args["kernel"]), len(task.shape)
    geometry = {key: tuple(args[key]) for key in ("kernel", "stride", "pad")} | {"dilation": (1,) * n}
    if not args["channel_last"]:
        return x, None, geometry
    lead = rank - n - 1
    x = task.transpose(x, [*range(lead), rank - 1, *range(lead, rank - 1)])
    return x, [*range(lead), *range(lead + 1, rank), lead], geometry


def _pooled_shape(task: Task, order: Sequence[int] | None) -> Shape:
    if order is None:
        return task.output_shape
    return tuple(task.output_shape[order.index(axis)] for axis in range(len(order)))


@lowers("MaxPooling")
def _max_pooling(task: Task) -> int:
    x, order, geometry = _pooling(task)
    y = task.add("largest", (x,), _pooled_shape(task, order), task.input_scale(x), **geometry)
    return y if order is None else task.transpose(y, order)


@lowers("AveragePooling", "SumPooling")
def _average_pooling(task: Task) -> int:
    x, order, geometry = _pooling(task)
    count = 1.0
    if task.function.name == "AveragePooling":
        if any(len(set(counts)) > 1 for counts in _window_counts(task)):
            raise NotExportableError("all windows must count the same number of elements")
        count = math.prod(counts[0] for counts in _window_counts(task))
    y = _pool(task, x, count, _pooled_shape(task, order), geometry)
    return y if order is None else task.transpose(y, order)


def _window_counts(task: Task) -> list[list[int]]:
    args = task.args
    n, end = len(args["kernel"]), len(task.shape) - args["channel_last"]
    found = []
    for length, count, kernel, stride, pad in zip(
        task.shape[end - n : end], task.output_shape[end - n : end], args["kernel"], args["stride"], args["pad"], strict=True
    ):
        starts = [k * stride - pad for k in range(count)]
        if args["including_pad"]:
            found.append([min(start + kernel, length + pad) - start for start in starts])
        else:
            found.append([min(start + kernel, length) - max(start, 0) for start in starts])
    return found


def _pool(task: Task, x: int, count: float, shape: Shape, geometry: Mapping[str, Any]) -> int:
    """Return sums of windows, divided by a count."""
    multiplier, shift = _factor(task.input_scale(x).scale / (task.scale.scale * count))
    return task.add("pool", (x,), shape, task.scale, multiplier=multiplier, shift=shift, **task.clamp(), **geometry)


@lowers("GlobalAveragePooling", "Mean", "Sum")
def _reduction(task: Task) -> int:
    """One window over the axes that are folded, moved to the end."""
    axes = [axis % len(task.shape) for axis in task.args.get("axes", range(2, len(task.shape)))]
    kept = [axis for axis in range(len(task.shape)) if axis not in axes]
    count = math.prod(task.shape[axis] for axis in axes)
    x = task.transpose(task.tensor(0), [*kept, *axes])
    x = task.reshape(x, (math.prod(task.shape[axis] for axis in kept), count))
    if count * 255 >= ACCUMULATOR:
        raise NotExportableError(f"sums must stay below 2 ** 31, got {count} elements")
    geometry = {"kernel": (count,), "stride": (1,), "pad": (0,), "dilation": (1,)}
    divisor = 1 if task.function.name == "Sum" else count
    y = _pool(task, x, divisor, (math.prod(task.shape[axis] for axis in kept), 1), geometry)
    return task.reshape(y, task.output_shape)


@lowers("Concatenate")
def _concatenate(task: Task) -> int:
    """Each part in the scale of the result."""
    scale, parts = task.scale, []
    for k in range(len(task.function.inputs)):
        x = task.tensor(k)
        multiplier, shift = _factor(task.input_scale(x).scale / scale.scale)
        shape = tuple(task.function.inputs[k].shape)
        parts.append(
            task.add("sum", (x,), shape, scale, multipliers=[multiplier], shift=shift, low=LOW, high=HIGH)
            if task.input_scale(x) != scale
            else x
        )
    return task.add("join", tuple(parts), task.output_shape, scale, axis=task.args["axis"] % len(task.output_shape))


@lowers("Softmax")
def _softmax(task: Task) -> int:
    """From a table of exp(-d) for the distances d from the maximum."""
    x = task.tensor(0)
    axis = task.args["axis"] % len(task.shape)
    if task.shape[axis] >= 2**16:
        raise NotExportableError(f"there must be fewer than 65536 classes, got {task.shape[axis]}")
    table = np.exp(-np.arange(256) * task.input_scale(x).scale) * 2**_EXPONENT_BITS
    return task.add("softmax", (x,), task.output_shape, _PROBABILITY, axis=axis, table=round_half_away(table).astype(np.int64))


@lowers("Reshape")
def _reshape(task: Task) -> int:
    return task.reshape(task.tensor(0), task.output_shape)


@lowers("Identity", "Dropout", "Unlink")
def _identity(task: Task) -> int:
    if len(task.function.results) > 1:
        raise NotExportableError("the mask of a dropout has no value in inference")
    return task.tensor(0)


@lowers("Interpolate", *MOVEMENTS)
def _movement(task: Task) -> list[int]:
    """Functions that move elements; only zeros can be between them."""
    border = MOVEMENTS.get(task.function.name)
    if task.function.name == "Interpolate" and task.args["mode"] != "nearest":
        raise NotExportableError(f"mode must be 'nearest', got {task.args['mode']!r}")
    if border == "constant_value" and task.args["mode"] == "constant" and task.args[border] != 0:
        raise NotExportableError(f"constant_value must be 0, got {task.args[border]}")
    tensor = task.tensor(0)

    def run(numbers: Array) -> list[Array]:
        return run_function(task.function, [nn.Variable.from_numpy_array(numbers)], task.args)

    return [task.move(tensor, found - 1) for found in numbers_moved(task.shape, run)]


_CLAMPABLE: Final = frozenset(
    {"Affine", "Convolution", "DepthwiseConvolution", "Add2", "BcAdd2", "Sub2", "AddN", "Mul2", "AveragePooling", "SumPooling"}
)


def lowered(
    order: Sequence[Function],
    outputs: Mapping[str, nn.Variable],
    inputs: Mapping[str, nn.Variable],
    ranges: Mapping[Any, tuple[float, float]],
) -> IntegerNetwork:
    """Return the integer network of a graph.

    Raises:
        ArgumentError: lists every function that cannot be computed in integers, with its place and the reason.
    """
    lowering = Lowering(order, outputs, inputs, ranges)
    lowering.lower()
    for name, variable in outputs.items():
        number = lowering.tensors.get(key_of(variable))
        if number is None:
            number = lowering.constant(np.asarray(variable.d, np.float64))
        lowering.network.outputs[name] = number
    return lowering.network


def integer_network(
    outputs: Mapping[str, nn.Variable],
    inputs: Mapping[str, nn.Variable],
    calibration: Any,
    method: str,
    percentile: float,
) -> IntegerNetwork:
    """Calibrate a graph and lower it; the variables of the graph are made persistent."""
    order = functions_of([output for output in outputs.values() if output.parent is not None])
    return lowered(order, outputs, inputs, ranges_of(order, inputs, calibration, method, percentile))


def _require_read(*functions: Function) -> None:
    for function in functions:
        refusal = unread(function)
        if refusal is not None:
            raise NotExportableError(f"{function.name}: {refusal}")
