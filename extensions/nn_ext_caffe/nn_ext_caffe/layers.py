"""The layers of Caffe as functions of nn_core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_caffe.reading import Array, Layer
from nn_ext_caffe.schema import field_of


class UnsupportedError(Exception):
    """A layer that cannot be built; the text says why."""


@dataclass(slots=True)
class Call:
    """A layer with the variables that it reads.

    Attributes:
        layer: the layer.
        inputs: what it reads.
        parameters: of the network, to which its weights are added.
        is_training: whether dropout and statistics of batches are wanted.
    """

    layer: Layer
    inputs: list[nn.Variable]
    parameters: dict[str, nn.Variable]
    is_training: bool = False

    @property
    def x(self) -> nn.Variable:
        """The only variable that it reads."""
        if len(self.inputs) != 1:
            raise UnsupportedError(f"{len(self.inputs)} bottoms")
        return self.inputs[0]

    def settings(self, name: str) -> Any:
        """Return the settings of a kind, such as "ConvolutionParameter"; all are left out where the layer has none."""
        return getattr(self.layer.message, field_of(name))

    def axis(self, axis: int, ndim: int | None = None) -> int:
        """Return an axis of the first input, counted from the start."""
        n = self.inputs[0].ndim if ndim is None else ndim
        if not -n <= axis < n:
            raise UnsupportedError(f"axis {axis} of {n} axes")
        return axis % n

    def array(self, index: int, shape: Sequence[int] | None = None) -> Array:
        """Return one of the layer's weights, whose shape may have other axes of length 1.

        Raises:
            UnsupportedError: when the file has none, or one of another shape.
        """
        if index >= len(self.layer.blobs):
            raise UnsupportedError(f"weights must be given, got {len(self.layer.blobs)} blobs")
        array = self.layer.blobs[index]
        if shape is None:
            return array
        if [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
            raise UnsupportedError(f"weights must have the shape {tuple(shape)}, got {array.shape}")
        return array.reshape(tuple(shape))

    def parameter(self, name: str, index: int, shape: Sequence[int] | None = None) -> nn.Variable:
        """Return the variable of one of the layer's weights."""
        return self.made(name, self.array(index, shape))

    def made(self, name: str, array: Array, need_grad: bool = True) -> nn.Variable:
        """Return the variable of a weight, which becomes a parameter of the network."""
        variable = nn.Variable.from_numpy_array(np.ascontiguousarray(array), need_grad=need_grad)
        variable.name = f"{self.layer.name}/{name}"
        if variable.name in self.parameters:
            raise UnsupportedError(f"two layers have the name {self.layer.name!r}")
        self.parameters[variable.name] = variable
        return variable


def given(settings: Any, name: str, default: Any) -> Any:
    """Return a setting, or Caffe's default where the file leaves it out."""
    return getattr(settings, name) if settings.HasField(name) else default


Made: TypeAlias = "nn.Variable | Sequence[nn.Variable]"

#: Converters by the kind of layer.
CONVERTERS: Final[dict[str, Callable[[Call], Made]]] = {}


def layer(*kinds: str) -> Callable[[Callable[[Call], Made]], Callable[[Call], Made]]:
    """Register the decorated function for kinds of layers."""

    def decorate(function: Callable[[Call], Made]) -> Callable[[Call], Made]:
        CONVERTERS.update(dict.fromkeys(kinds, function))
        return function

    return decorate


def _spatial(settings: Any, name: str, n: int, default: int) -> list[int]:
    """Return a setting of each spatial axis, which files have once, for each, or for height and width."""
    stem = "kernel" if name == "kernel_size" else name
    sides = [f"{stem}_h", f"{stem}_w"]
    if n == 2 and any(settings.HasField(side) for side in sides):
        return [given(settings, side, default) for side in sides]
    values = getattr(settings, name)
    if isinstance(values, int):
        values = [values] if settings.HasField(name) else []
    if len(values) not in (0, 1, n):
        raise UnsupportedError(f"{len(values)} numbers of {name} for {n} axes")
    return list(values) * n if len(values) == 1 else list(values) or [default] * n


# Products -----------------------------------------------------------------------------------------------------------


@layer("Convolution", "Deconvolution")
def _convolution(call: Call) -> Made:
    settings = call.settings("ConvolutionParameter")
    if given(settings, "axis", 1) not in (1, 1 - call.x.ndim):
        raise UnsupportedError(f"axis {settings.axis}")
    n, group, count = call.x.ndim - 2, given(settings, "group", 1), settings.num_output
    kernel = _spatial(settings, "kernel_size", n, 0)
    steps: dict[str, Any] = {"pad": _spatial(settings, "pad", n, 0), "stride": _spatial(settings, "stride", n, 1)}
    dilation = list(settings.dilation) * (n if len(settings.dilation) == 1 else 1) or [1] * n
    if min(kernel) < 1 or min(steps["stride"]) < 1 or len(dilation) != n or not group or call.x.shape[1] % group:
        raise UnsupportedError(f"a kernel {kernel} in {group} groups for {call.x.shape}")
    is_forward = call.layer.kind == "Convolution"
    outer, inner = (count, call.x.shape[1]) if is_forward else (call.x.shape[1], count)
    weight = call.parameter("W", 0, (outer, inner // group, *kernel))
    bias = call.parameter("b", 1, (count,)) if given(settings, "bias_term", True) else None
    function = F.convolution if is_forward else F.deconvolution
    return function(call.x, weight, bias, dilation=dilation, group=group, **steps)


@layer("InnerProduct")
def _inner_product(call: Call) -> Made:
    settings = call.settings("InnerProductParameter")
    axis, count = call.axis(given(settings, "axis", 1)), settings.num_output
    size = prod(call.x.shape[axis:])
    is_turned = given(settings, "transpose", False)
    weight = call.array(0, (size, count) if is_turned else (count, size))
    bias = call.parameter("b", 1, (count,)) if given(settings, "bias_term", True) else None
    return F.affine(call.x, call.made("W", weight if is_turned else weight.T), bias, base_axis=axis)


# Poolings -----------------------------------------------------------------------------------------------------------


@layer("Pooling")
def _pooling(call: Call) -> Made:
    """Pool images; borders count as far as the padding reaches, and the last window may reach beyond."""
    settings, x = call.settings("PoolingParameter"), call.x
    is_mean = given(settings, "pool", 0) == 1
    if x.ndim != 4 or given(settings, "pool", 0) == 2:
        raise UnsupportedError("stochastic pooling" if x.ndim == 4 else f"images of shape {x.shape}")
    if settings.global_pooling:
        return (F.mean if is_mean else F.max)(x, axis=(2, 3), keepdims=True)
    return _windows_of(x, _sides(settings, x.shape[2:]), is_mean)


def _windows_of(x: nn.Variable, sides: Sequence[_Side], is_mean: bool) -> nn.Variable:
    """Return the means or maxima of windows."""
    kernel, stride = [side.kernel for side in sides], [side.stride for side in sides]
    wide = _bordered(x, [side.pad for side in sides], [side.after for side in sides], 0.0 if is_mean else -np.inf)
    if not is_mean:
        return F.max_pooling(wide, kernel, stride)
    area = np.multiply.outer(*[side.sizes() for side in sides]).astype(np.float32)
    return F.sum_pooling(wide, kernel, stride) / nn.Variable.from_numpy_array(area[None, None])


@dataclass(frozen=True, slots=True)
class _Side:
    """The windows of a pooling along one axis."""

    length: int
    kernel: int
    stride: int
    pad: int
    count: int

    @property
    def after(self) -> int:
        """The border that the last window needs at the end; below 0 what no window reaches."""
        return (self.count - 1) * self.stride + self.kernel - self.length - self.pad

    def sizes(self) -> Array:
        """Return the number of elements of each window that are in the image or in the padding."""
        starts = np.arange(self.count) * self.stride
        return np.minimum(starts + self.kernel, self.length + 2 * self.pad) - starts


def _sides(settings: Any, lengths: Sequence[int]) -> list[_Side]:
    kernel, stride, pad = (_spatial(settings, name, 2, n) for name, n in (("kernel_size", 0), ("stride", 1), ("pad", 0)))
    if min(kernel) < 1 or min(stride) < 1 or any(p >= k for p, k in zip(pad, kernel, strict=True)):
        raise UnsupportedError(f"a kernel {kernel} with strides {stride} and pads {pad}")
    is_floor = settings.round_mode == 1
    return [_Side(*side, _count(*side, is_floor)) for side in zip(lengths, kernel, stride, pad, strict=True)]


def _count(length: int, kernel: int, stride: int, pad: int, is_floor: bool) -> int:
    """Return the number of windows, of which each must begin inside of the image or of the padding before it."""
    room = length + 2 * pad - kernel
    count = (room // stride if is_floor else -(-room // stride)) + 1
    if pad and (count - 1) * stride >= length + pad:
        count -= 1
    if count < 1 or (count - 1) * stride >= length + pad:
        raise UnsupportedError(f"a window of {kernel} on a length of {length}")
    return count


def _bordered(x: nn.Variable, before: Sequence[int], after: Sequence[int], value: float) -> nn.Variable:
    """Return images with a border, or without elements at the end that no window reaches."""
    lengths = [n + min(more, 0) for n, more in zip(x.shape[2:], after, strict=True)]
    if lengths != list(x.shape[2:]):
        x = F.slice(x, start=[0, 0], stop=lengths, step=[1, 1])
    widths = [width for pair in zip(before, [max(more, 0) for more in after], strict=True) for width in pair]
    return F.pad(x, widths, mode="constant", constant_value=value) if any(widths) else x


# Normalizations -----------------------------------------------------------------------------------------------------


@layer("LRN")
def _lrn(call: Call) -> Made:
    settings, x = call.settings("LRNParameter"), call.x
    size, alpha, beta = given(settings, "local_size", 5), given(settings, "alpha", 1.0), given(settings, "beta", 0.75)
    if x.ndim != 4 or not size % 2:
        raise UnsupportedError(f"a neighbourhood of {size} of images of shape {x.shape}")
    squares, half = x * x, size // 2
    if settings.norm_region:
        sums = F.sum_pooling(squares, (size, size), (1, 1), pad=(half, half))
        return x * F.pow_scalar(1.0 + (alpha / size**2) * sums, -beta)
    rows = F.reshape(squares, (x.shape[0], 1, x.shape[1], -1))
    sums = F.reshape(F.sum_pooling(rows, (size, 1), (1, 1), pad=(half, 0)), x.shape)
    return x * F.pow_scalar(given(settings, "k", 1.0) + (alpha / size) * sums, -beta)


@layer("BatchNorm")
def _batch_norm(call: Call) -> Made:
    settings, x = call.settings("BatchNormParameter"), call.x
    channels = x.shape[1] if x.ndim > 1 else 1
    shape = (1, channels, *(1,) * (x.ndim - 2)) if x.ndim > 1 else (1,)
    factor = float(call.array(2, (1,))[0])
    mean, variance = (call.array(k, shape) * np.float32(1 / factor if factor else 0) for k in range(2))
    if not given(settings, "use_global_stats", not call.is_training):
        raise UnsupportedError("statistics of batches")
    if not np.isfinite(mean).all() or not np.isfinite(variance).all() or variance.min() < 0:
        raise UnsupportedError("statistics that are not finite, or variances below 0")
    scale = 1 / np.sqrt(variance.astype(np.float64) + given(settings, "eps", 1e-5))
    return (x - call.made("mean", mean, False)) * call.made("inverse_deviation", scale.astype(np.float32), False)


def _along(call: Call, axis: int, n_axes: int, other: Sequence[int]) -> tuple[int, ...]:
    """Return the shape in which weights of some axes are broadcast to the first input."""
    shape = call.inputs[0].shape
    start = call.axis(axis)
    stop = len(shape) if n_axes == -1 else start + n_axes
    if stop > len(shape) or (len(call.inputs) > 1 and tuple(other) != shape[start : start + len(other)]):
        raise UnsupportedError(f"weights of shape {tuple(other)} at axis {axis} of {shape}")
    stop = start + len(other) if len(call.inputs) > 1 else stop
    return tuple(n if start <= k < stop else 1 for k, n in enumerate(shape))


@layer("Scale")
def _scale(call: Call) -> Made:
    settings, n_blobs = call.settings("ScaleParameter"), 0
    second = call.inputs[1:]
    shape = _along(call, given(settings, "axis", 1), given(settings, "num_axes", 1), second[0].shape if second else ())
    if second:
        y = call.inputs[0] * F.reshape(second[0], shape)
    else:
        y, n_blobs = call.x * call.parameter("gamma", 0, shape), 1
    return y + call.parameter("beta", n_blobs, shape) if settings.bias_term else y


@layer("Bias")
def _bias(call: Call) -> Made:
    settings, second = call.settings("BiasParameter"), call.inputs[1:]
    shape = _along(call, given(settings, "axis", 1), given(settings, "num_axes", 1), second[0].shape if second else ())
    return call.inputs[0] + (F.reshape(second[0], shape) if second else call.parameter("b", 0, shape))


# Functions of elements ----------------------------------------------------------------------------------------------


def _base(settings: Any, x: nn.Variable) -> nn.Variable:
    """Return ``scale * x + shift``."""
    return x * given(settings, "scale", 1.0) + given(settings, "shift", 0.0)


@layer("ReLU")
def _relu(call: Call) -> Made:
    slope = call.settings("ReLUParameter").negative_slope
    return F.leaky_relu(call.x, slope) if slope else F.relu(call.x)


@layer("PReLU")
def _prelu(call: Call) -> Made:
    is_shared = call.settings("PReLUParameter").channel_shared
    slope = call.parameter("slope", 0, () if is_shared else (call.x.shape[1],))
    return F.prelu(call.x, slope)


@layer("ELU")
def _elu(call: Call) -> Made:
    return F.elu(call.x, given(call.settings("ELUParameter"), "alpha", 1.0))


@layer("Power")
def _power(call: Call) -> Made:
    settings = call.settings("PowerParameter")
    y, power = _base(settings, call.x), given(settings, "power", 1.0)
    return y if power == 1 else F.pow_scalar(y, power)


@layer("Exp")
def _exp(call: Call) -> Made:
    settings = call.settings("ExpParameter")
    base, y = given(settings, "base", -1.0), _base(settings, call.x)
    if base != -1 and base <= 0:
        raise UnsupportedError(f"base {base}")
    return F.exp(y if base == -1 else y * float(np.log(base)))


@layer("Log")
def _log(call: Call) -> Made:
    settings = call.settings("LogParameter")
    base, y = given(settings, "base", -1.0), F.log(_base(settings, call.x))
    if base != -1 and (base <= 0 or base == 1):
        raise UnsupportedError(f"base {base}")
    return y if base == -1 else y * float(1 / np.log(base))


@layer("Threshold")
def _threshold(call: Call) -> Made:
    return F.greater_scalar(call.x, call.settings("ThresholdParameter").threshold)


@layer("Dropout")
def _dropout(call: Call) -> Made:
    ratio = given(call.settings("DropoutParameter"), "dropout_ratio", 0.5)
    return F.dropout(call.x, ratio) if call.is_training else F.identity(call.x)


@layer("Softmax")
def _softmax(call: Call) -> Made:
    return F.softmax(call.x, axis=call.axis(given(call.settings("SoftmaxParameter"), "axis", 1)))


CONVERTERS.update(
    {
        "AbsVal": lambda call: F.abs(call.x),
        "BNLL": lambda call: F.softplus(call.x),
        "Sigmoid": lambda call: F.sigmoid(call.x),
        "TanH": lambda call: F.tanh(call.x),
        "Split": lambda call: [F.identity(call.x) for _ in call.layer.tops],
        "Silence": lambda call: [],
    }
)


@layer("Eltwise")
def _eltwise(call: Call) -> Made:
    settings = call.settings("EltwiseParameter")
    kind, factors = given(settings, "operation", 1), list(settings.coeff)
    if len({x.shape for x in call.inputs}) != 1 or len(factors) not in (0, len(call.inputs)) or (factors and kind != 1):
        raise UnsupportedError(f"coefficients {factors} of inputs of shapes {[x.shape for x in call.inputs]}")
    inputs = [x * factor for x, factor in zip(call.inputs, factors, strict=True)] if factors else call.inputs
    return F.identity(inputs[0]) if len(inputs) == 1 else reduce((F.mul2, F.add2, F.maximum2)[kind], inputs)
