"""From a graph and the ranges of its values to a graph whose products are those of integers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

import nn_core.functions as F
from nn_core.function import Function
from nn_core.utils.quantization.calibration import Array, scale_of
from nn_core.variable import Variable

#: Functions whose results are limited at 0 below and by the range above: the levels of uint8 from 0 on do it for them.
_RECTIFIERS: Final = frozenset({"ReLU", "ReLU6"})
#: Functions that move elements: levels stay what they are.
_MOVEMENTS: Final = frozenset({"Reshape", "Transpose", "Slice", "Identity"})
#: Functions whose results are some of the values that they get: the scale stays the same.
_SELECTIONS: Final = frozenset({"MaxPooling"})
#: The largest level of a weight, and of a bias, which is added to sums in int32.
_WEIGHT: Final = 127
_BIAS: Final = 2**26


@dataclass(frozen=True, slots=True)
class Levels:
    """Integers, and what they stand for: ``scale * (variable - zero_point)``."""

    variable: Variable
    scale: np.float32
    zero_point: int

    def moved(self, variable: Variable) -> Levels:
        """Return other integers of the same scale."""
        return Levels(variable, self.scale, self.zero_point)


@dataclass(slots=True)
class _Value:
    """A value of the new graph, as far as it is needed yet; `scale` and `zero_point` are those of levels that are made."""

    real: Variable | None
    levels: Levels | None
    scale: np.float32
    zero_point: int


@dataclass(frozen=True, slots=True)
class _Weight:
    """A weight as integers: columns or filters, their scales, and their bias."""

    levels: Array
    scales: Array
    bias: Array | None


@dataclass(frozen=True, slots=True)
class _Operands:
    """The operands of a product; `scales` are those of its sums, and `other_zero` is the zero point of `other`."""

    x: Levels
    other: Variable
    other_zero: int | None
    scales: Array
    bias: Array | None

    def after(self, ndim: Callable[[Variable], int]) -> list[Variable | None]:
        """Return the inputs after the scale: zero points of so many axes, and the bias."""
        zero = _leaf(np.full((1,) * ndim(self.x.variable), self.x.zero_point, np.uint8))
        shape = (1,) * ndim(self.other)
        other_zero = None if self.other_zero is None else _leaf(np.full(shape, self.other_zero, np.uint8))
        return [zero, other_zero, None if self.bias is None else _leaf(self.bias)]


#: Applies a product; called with its operands, and with scale and zero point where its result shall be levels.
_Product: TypeAlias = "Callable[[_Operands, tuple[Variable, ...]], Variable]"


def key_of(variable: Variable) -> Any:
    """Return what is the same for all variables that stand for the same place of a graph."""
    function = variable.parent
    return variable if function is None else (function, function.results.index(variable))


class Lowering:
    """A graph of integers that grows function by function.

    Attributes:
        in_integers: names of functions that became products of integers.
        in_floats: names of the others, without those that move levels.
    """

    def __init__(
        self,
        order: Sequence[Function],
        inputs: Mapping[str, Variable],
        outputs: Mapping[str, Variable],
        ranges: Mapping[Any, tuple[float, float]],
    ) -> None:
        self.in_integers: list[str] = []
        self.in_floats: list[str] = []
        self._order, self._outputs, self._ranges = order, outputs, ranges
        self._roots = {key_of(variable) for variable in outputs.values()}
        readers = [(key_of(variable), function) for function in order for variable in function.inputs]
        self._counts = Counter(key for key, _ in readers)
        self._reader = dict(readers)
        self._values: dict[Any, _Value] = {}
        for variable in inputs.values():
            self._note(variable, real=variable)

    def lowered(self) -> dict[str, Variable]:
        """Lower all functions and return the results by name."""
        for function in self._order:
            if key_of(function.results[0]) not in self._values and not self._is_constant(function):
                self._function(function)
        return {name: self.real(variable) for name, variable in self._outputs.items()}

    # Values ---------------------------------------------------------------------------------------------------------

    def _note(
        self,
        variable: Variable,
        real: Variable | None = None,
        levels: Levels | None = None,
        scale: tuple[np.float32, int] | None = None,
    ) -> None:
        if levels is not None:
            scale = levels.scale, levels.zero_point
        self._values[key_of(variable)] = _Value(real, levels, *(scale or scale_of(*self._ranges[key_of(variable)])))

    def real(self, variable: Variable) -> Variable:
        """Return the floating-point numbers of a value."""
        value = self._values.get(key_of(variable))
        if value is None:
            return variable
        if value.real is None:
            assert value.levels is not None
            shape = (1,) * variable.ndim
            zero_point = _leaf(np.full(shape, value.zero_point, np.float32))
            value.real = F.dequantize_linear(value.levels.variable, _leaf(np.full(shape, value.scale)), zero_point)
        return value.real

    def levels(self, variable: Variable) -> Levels:
        """Return the integers of a value."""
        value = self._values[key_of(variable)]
        if value.levels is None:
            assert value.real is not None
            shape = (1,) * variable.ndim
            zero_point = _leaf(np.full(shape, value.zero_point, np.uint8))
            levels = F.quantize_integer(value.real, _leaf(np.full(shape, value.scale)), zero_point)
            value.levels = Levels(levels, value.scale, value.zero_point)
        return value.levels

    def _is_constant(self, function: Function) -> bool:
        """Return whether a function depends on no input of the network; it stays as it is."""
        return not any(key_of(variable) in self._values for variable in function.inputs)

    def is_constant(self, variable: Variable) -> bool:
        """Return whether a value is the same in all passes; the calibration has computed it."""
        return key_of(variable) not in self._values

    # Functions ------------------------------------------------------------------------------------------------------

    def _function(self, function: Function) -> None:
        product = _PRODUCTS.get(function.name)
        if product is not None and product(self, function):
            self.in_integers.append(function.name)
        elif function.name in _MOVEMENTS and self._values[key_of(function.inputs[0])].levels is not None:
            levels = self.levels(function.inputs[0])
            rest = [self.real(variable) for variable in function.inputs[1:]]
            self._note(function.results[0], levels=levels.moved(function.applied_to(levels.variable, *rest)))
        else:
            self._in_floats(function)

    def _in_floats(self, function: Function) -> None:
        self.in_floats.append(function.name)
        made = function.applied_to(*(self.real(variable) for variable in function.inputs))
        first = self._values.get(key_of(function.inputs[0]))
        kept = (first.scale, first.zero_point) if first is not None and function.name in _SELECTIONS else None
        for output, result in zip(function.results, made if isinstance(made, (list, tuple)) else [made], strict=True):
            self._note(output, real=result, scale=kept)

    def finish(self, last: Function, product: _Product, operands: _Operands, shape: Sequence[int]) -> None:
        """Make the result of a product: levels, or numbers where it is a result of the network.

        Args:
            last: The function whose result it is: the product, or what was joined to it.
            product: Applies the product.
            operands: What is multiplied.
            shape: That of the scales of sums, as they stretch over these.
        """
        output = last.outputs[0]
        if key_of(output) in self._roots and last.name not in _RECTIFIERS:
            self._note(output, real=_shaped(product(operands, ()) * _leaf(operands.scales.reshape(shape)), output))
            return
        scale, zero_point = scale_of(*self._ranges[key_of(output)])
        # a reciprocal in float32, so that a file which holds the quotient gives the same bits
        steps = np.float32(1) / (operands.scales.astype(np.float64) / np.float64(scale)).astype(np.float32)
        levels = product(operands, (_leaf(steps), _leaf(np.array([zero_point], np.uint8))))
        self._note(output, levels=Levels(_shaped(levels, output), scale, zero_point))

    def joined(self, function: Function) -> tuple[Function, Array | None, Array | None]:
        """Return the last function of those that become part of a product, and what a normalization multiplies and adds."""
        scale = shift = None
        following = self._sole_reader(function)
        if following is not None and following.name == "BatchNormalization" and self._is_of_channels(following, function):
            scale, shift = _linear_form(following)
            function, following = following, self._sole_reader(following)
        if following is not None and following.name in _RECTIFIERS:
            function = following
        return function, scale, shift

    def _sole_reader(self, function: Function) -> Function | None:
        key = key_of(function.results[0])
        return self._reader[key] if self._counts[key] == 1 and key not in self._roots else None

    def _is_of_channels(self, normalization: Function, function: Function) -> bool:
        axis = function.args.get("base_axis")
        is_first = key_of(normalization.inputs[0]) == key_of(function.results[0])
        rest = [self.is_constant(variable) for variable in normalization.inputs[1:]]
        return is_first and all(rest) and list(normalization.args["axes"]) == [axis]


def _leaf(array: Array) -> Variable:
    return Variable.from_numpy_array(array)


def _shaped(variable: Variable, like: Variable) -> Variable:
    return variable if variable.shape == like.shape else F.reshape(variable, like.plain_shape)


def _linear_form(function: Function) -> tuple[Array, Array]:
    """Return what a batch normalization by running statistics multiplies with and adds, one number for each channel."""
    args, rest = function.args, [np.asarray(v.d, np.float64).reshape(-1) for v in function.inputs[1:]]
    beta = np.zeros_like(rest[-1]) if args["no_bias"] else rest.pop(0)
    gamma = np.ones_like(rest[-1]) if args["no_scale"] else rest.pop(0)
    mean, variance = rest[-2:]
    scale = gamma / np.sqrt(variance + args["eps"])
    return scale, beta - mean * scale


def _weight_of(rows: Array, bias: Array | None, form: tuple[Array | None, Array | None], input_scale: float) -> _Weight:
    """Return a weight (K, ...) as symmetric integers for each of its K rows, after the normalization that follows."""
    scale, shift = form
    flat = rows.reshape(len(rows), -1).astype(np.float64)
    offset = np.zeros(len(flat)) if bias is None else bias.reshape(-1).astype(np.float64)
    if scale is not None and shift is not None:
        flat, offset = flat * scale[:, None], offset * scale + shift
    # a row that is small beside its bias gets a larger scale, so that the bias is an int32
    scales = np.maximum(np.abs(flat).max(axis=1, initial=0.0) / _WEIGHT, np.abs(offset) / (input_scale * _BIAS))
    scales = np.where(scales > np.finfo(np.float32).tiny, scales, 1.0)
    levels = np.clip(np.round(flat / scales[:, None]), -_WEIGHT, _WEIGHT).astype(np.int8).reshape(rows.shape)
    sums = np.round(offset / (input_scale * scales)).astype(np.int32)
    return _Weight(levels, (input_scale * scales).astype(np.float32), sums if sums.any() else None)


def _constants(lowering: Lowering, function: Function) -> tuple[Array, Array | None] | None:
    """Return the weight and the bias of a function; None where they depend on the inputs of the network."""
    if not all(lowering.is_constant(variable) for variable in function.inputs[1:]):
        return None
    weight, *rest = (np.asarray(variable.d) for variable in function.inputs[1:])
    return weight, rest[0] if rest else None


def _convolution(lowering: Lowering, function: Function) -> bool:
    args, found = function.args, _constants(lowering, function)
    if found is None or lowering.is_constant(function.inputs[0]) or args.get("channel_last"):
        return False
    weight, bias = found
    settings = {name: args[name] for name in ("base_axis", "pad", "stride", "dilation")}
    settings["group"] = args.get("group", 1)
    if function.name == "DepthwiseConvolution":
        weight = weight[:, None]
        settings["group"] = function.inputs[0].shape[args["base_axis"]]
    last, *form = lowering.joined(function)
    x = lowering.levels(function.inputs[0])
    made = _weight_of(weight, bias, (form[0], form[1]), float(x.scale))
    operands = _Operands(x, _leaf(made.levels), None, made.scales, made.bias)

    def product(operands: _Operands, quantizer: tuple[Variable, ...]) -> Variable:
        function: Callable[..., Variable] = F.qlinear_conv if quantizer else F.conv_integer
        return function(x.variable, operands.other, *quantizer, *operands.after(lambda _: 1), **settings)

    lowering.finish(last, product, operands, (-1, *(1,) * (weight.ndim - 2)))
    return True


def _matrix_product(operands: _Operands, quantizer: tuple[Variable, ...]) -> Variable:
    function: Callable[..., Variable] = F.qlinear_matmul if quantizer else F.matmul_integer
    return function(operands.x.variable, operands.other, *quantizer, *operands.after(lambda matrix: matrix.ndim))


def _affine(lowering: Lowering, function: Function) -> bool:
    found, axis = _constants(lowering, function), function.args["base_axis"]
    if found is None or lowering.is_constant(function.inputs[0]):
        return False
    weight, bias = found
    last, *form = lowering.joined(function) if function.results[0].ndim == axis + 1 else (function, None, None)
    x = lowering.levels(function.inputs[0])
    rows = (math.prod(x.variable.shape[:axis]), math.prod(x.variable.shape[axis:]))
    if x.variable.shape != rows:
        x = x.moved(F.reshape(x.variable, rows))
    made = _weight_of(weight.reshape(rows[1], -1).T, bias, (form[0], form[1]), float(x.scale))
    columns = _leaf(np.ascontiguousarray(made.levels.T))
    lowering.finish(last, _matrix_product, _Operands(x, columns, None, made.scales, made.bias), (1, -1))
    return True


def _batch_matmul(lowering: Lowering, function: Function) -> bool:
    a, b = function.inputs
    if lowering.is_constant(a) or lowering.is_constant(b):
        return False
    left, right = lowering.levels(a), lowering.levels(b)
    turned = (function.args["transpose_a"], function.args["transpose_b"])
    left, right = (_turned(levels) if turn else levels for levels, turn in zip((left, right), turned, strict=True))
    scales = np.array([np.float64(left.scale) * np.float64(right.scale)]).astype(np.float32)
    operands = _Operands(left, right.variable, right.zero_point, scales, None)
    lowering.finish(lowering.joined(function)[0], _matrix_product, operands, (1,) * function.results[0].ndim)
    return True


def _turned(levels: Levels) -> Levels:
    """Return matrices with their axes in the other order."""
    n = levels.variable.ndim
    return levels.moved(F.transpose(levels.variable, (*range(n - 2), n - 1, n - 2)))


_PRODUCTS: Final[Mapping[str, Callable[[Lowering, Function], bool]]] = {
    "Affine": _affine,
    "BatchMatmul": _batch_matmul,
    "Convolution": _convolution,
    "DepthwiseConvolution": _convolution,
}
