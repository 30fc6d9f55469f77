"""Normalizations: native operators where the operator set has them, else their formulas."""

from collections.abc import Sequence

import numpy as np

from nn_ext_onnx.exporting.registry import Call, converter, size_of
from nn_ext_onnx.exporting.values import Value


def standardized(x: Value, axes: Sequence[int], eps: float) -> Value:
    """(x - mean) / sqrt(variance + eps) over `axes`."""
    mean, variance = statistics(x, axes)
    return (x - mean) / (variance + eps).op("Sqrt")


def statistics(x: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    """Mean and biased variance."""
    mean = x.reduce("ReduceMean", axes)
    difference = x - mean
    return mean, (difference * difference).reduce("ReduceMean", axes)


def _scaled(x: Value, beta: Value | None, gamma: Value | None) -> Value:
    x = x if gamma is None else x * gamma
    return x if beta is None else x + beta


def batch_normalized(
    call: Call, x: Value, shape: Sequence[int], first: int, axes: Sequence[int]
) -> tuple[Value, Value, Value]:
    """Normalize, with the parameters beta, gamma, mean and variance from input `first` on; also the statistics."""
    beta, gamma, mean, variance = (call.optional(index) for index in range(first, first + 4))
    eps = call.args["eps"]
    if call.args["batch_stat"] or mean is None or variance is None:
        mean, variance = statistics(x, [axis for axis in range(len(shape)) if axis not in axes])
    elif tuple(axes) == (1,) and len(shape) > 1:
        return _native(call, x, shape, (beta, gamma, mean, variance)), mean, variance
    return _scaled((x - mean) / (variance + eps).op("Sqrt"), beta, gamma), mean, variance


def _native(call: Call, x: Value, shape: Sequence[int], parameters: Sequence[Value | None]) -> Value:
    n = shape[1]
    beta, gamma, mean, variance = parameters
    flat = [
        per_channel(call, value, n, default) for value, default in ((gamma, 1.0), (beta, 0.0), (mean, 0.0), (variance, 1.0))
    ]
    return x.op("BatchNormalization", *flat, epsilon=call.args["eps"])


def per_channel(call: Call, parameter: Value | None, n_channels: int, default: float) -> Value:
    """Return a parameter as a vector."""
    if parameter is None:
        return call.graph.constant(np.full(n_channels, default))
    return parameter.reshape((n_channels,))


@converter("BatchNormalization", "SyncBatchNormalization")
def _batch_normalization(call: Call) -> list[Value]:
    results = batch_normalized(call, call.x, call.shape, 1, call.args["axes"])
    return list(results[: len(call.output_shapes)])


@converter("FusedBatchNormalization")
def _fused_batch_normalization(call: Call) -> list[Value]:
    y, *rest = batch_normalized(call, call.x, call.shape, 1, call.args["axes"])
    z = call.optional(5)
    return [(y if z is None else y + z).op("Relu"), *rest][: len(call.output_shapes)]


def _general(call: Call, kept: Sequence[int]) -> list[Value]:
    """Any normalization over all axes but `kept`."""
    others = [axis for axis in range(call.ndim) if axis not in kept]
    mean, variance = statistics(call.x, others)
    y = _scaled((call.x - mean) / (variance + call.args["eps"]).op("Sqrt"), call.optional(1), call.optional(2))
    return [y, mean, variance][: len(call.output_shapes)]


@converter("LayerNormalization")
def _layer_normalization(call: Call) -> list[Value]:
    kept, gamma, beta = sorted(call.args["batch_axis"]), call.optional(2), call.optional(1)
    shape = call.shape[len(kept) :]
    is_leading = kept == list(range(len(kept))) and 0 < len(kept) < call.ndim
    fits = all(size_of(call.shapes[k]) == size_of(shape) for k in (1, 2) if call.optional(k) is not None)
    if call.graph.opset < 17 or not is_leading or not fits or len(call.output_shapes) > 1 or gamma is None:
        return _general(call, kept)
    bias = None if beta is None else beta.reshape(shape)
    settings = {"axis": len(kept), "epsilon": call.args["eps"]}
    return [call.x.op("LayerNormalization", gamma.reshape(shape), bias, **settings)]


@converter("InstanceNormalization")
def _instance_normalization(call: Call) -> list[Value]:
    channel, batch, n = call.args["channel_axis"], tuple(call.args["batch_axis"]), call.shape[call.args["channel_axis"]]
    fits = all(size_of(call.shapes[k]) == n for k in (1, 2) if call.optional(k) is not None)
    if (channel, batch) != (1, (0,)) or call.ndim < 3 or len(call.output_shapes) > 1 or not fits:
        return _general(call, [channel, *batch])
    parameters = [per_channel(call, call.optional(k), n, default) for k, default in ((2, 1.0), (1, 0.0))]
    return [call.x.op("InstanceNormalization", *parameters, epsilon=call.args["eps"])]


@converter("GroupNormalization")
def _group_normalization(call: Call) -> list[Value]:
    channel, batch, groups = call.args["channel_axis"], tuple(call.args["batch_axis"]), call.args["num_groups"]
    n = call.shape[channel]
    fits = all(size_of(call.shapes[k]) == n for k in (1, 2) if call.optional(k) is not None)
    is_native = (channel, batch) == (1, (0,)) and call.ndim > 2 and fits and len(call.output_shapes) == 1
    if is_native and call.graph.opset >= 21:
        parameters = [per_channel(call, call.optional(k), n, default) for k, default in ((2, 1.0), (1, 0.0))]
        return [call.x.op("GroupNormalization", *parameters, epsilon=call.args["eps"], num_groups=groups)]
    x = call.x.reshape((*call.shape[:channel], groups, n // groups, *call.shape[channel + 1 :]))
    kept = [*(axis + (axis > channel) for axis in batch), channel]
    others = [axis for axis in range(call.ndim + 1) if axis not in kept]
    mean, variance = statistics(x, others)
    y = ((x - mean) / (variance + call.args["eps"]).op("Sqrt")).reshape(call.shape)
    return [_scaled(y, call.optional(1), call.optional(2)), mean, variance][: len(call.output_shapes)]


@converter("TensorNormalization")
def _tensor_normalization(call: Call) -> list[Value]:
    return _general(call, call.args["axes"])


@converter("WeightStandardization")
def _weight_standardization(call: Call) -> list[Value]:
    others = [axis for axis in range(call.ndim) if axis != call.args["channel_axis"]]
    mean, variance = statistics(call.x, others)
    y = (call.x - mean) / (variance + call.args["eps"]).op("Sqrt")
    return [y, mean, variance][: len(call.output_shapes)]


@converter("NormNormalization")
def _norm_normalization(call: Call) -> Value:
    p = call.args["p"]
    total = (call.x.op("Abs") ** p).reduce("ReduceSum", call.args["axes"]) + call.args["eps"]
    return call.x / total ** (1 / p)


@converter("WeightNormalization")
def _weight_normalization(call: Call) -> Value:
    dim = call.args["dim"]
    others = [axis for axis in range(call.ndim) if axis != dim]
    lengths = ((call.x * call.x).reduce("ReduceSum", others) + call.args["eps"]).op("Sqrt")
    shape = [length if axis == dim else 1 for axis, length in enumerate(call.shape)]
    return call.x * (call[1].reshape(shape) / lengths)


@converter("SpectralNorm")
def _spectral_norm(call: Call) -> list[Value]:
    dim, eps = call.args["dim"], call.args["eps"]
    n = call.shape[dim]
    others = [axis for axis in range(call.ndim) if axis != dim]
    matrix = call.x.transpose([dim, *others]).reshape((n, size_of(call.shape) // n))
    left = call[1].reshape((1, n))
    right = left
    for _ in range(call.args["itr"]):
        right = _unit(left.op("MatMul", matrix), eps)
        left = _unit(right.op("MatMul", matrix.transpose([1, 0])), eps)
    largest = (left * right.op("MatMul", matrix.transpose([1, 0]))).reduce("ReduceSum", [0, 1], False)
    return [call.x / largest, left.reshape(call.shapes[1])][: len(call.output_shapes)]


def _unit(row: Value, eps: float) -> Value:
    return row / ((row * row).reduce("ReduceSum", [1]) + eps).op("Sqrt")


@converter("MeanSubtraction")
def _mean_subtraction(call: Call) -> Value:
    running, axes = call[1], list(range(call.args["base_axis"]))
    if not call.args["update_running_mean"]:
        return call.x - running
    rate = 1.0 / (call[2].real() + 1.0)
    return call.x - (running + (call.x.reduce("ReduceMean", axes, False) - running) * rate)
