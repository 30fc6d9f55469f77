"""Normalizations."""

import math
from collections.abc import Sequence

import numpy as np

from nn_ext_c.emitting.reduction import mean
from nn_ext_c.emitting.registry import Call, NotExportableError, array_of, emitter, reshaped
from nn_ext_c.loops import number
from nn_ext_c.program import Value


def statistics(call: Call, x: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    """Mean and biased variance over axes, which stay."""
    average = mean(call, x, list(axes))
    count = math.prod(x.shape[axis] for axis in axes)
    update = "total += (a - b) * (a - b);"
    return average, call.reduce(axes, "0.0f", update, x, average, result=f"total / {number(count)}")


def scaled(call: Call, x: Value, beta: Value | None, gamma: Value | None) -> Value:
    """gamma * x + beta, of those that are given."""
    x = x if gamma is None else call.map("a * b", x, gamma)
    return x if beta is None else call.map("a + b", x, beta)


def normalized(call: Call, x: Value, average: Value, variance: Value) -> Value:
    """(x - mean) / sqrt(variance + eps)."""
    return call.map(f"(a - b) / sqrtf(c + {number(call.args['eps'])})", x, average, variance)


def scaled_by_statistics(call: Call, x: Value, first: int, axes: Sequence[int]) -> Value:
    """Return a batch normalization with beta, gamma, mean and variance from input `first` on.

    Running variances and gammas are joined to one scale.
    """
    return batch_normalized(call, x, first, axes)[0]


def batch_normalized(call: Call, x: Value, first: int, axes: Sequence[int]) -> list[Value]:
    """Return the same with the statistics that were used."""
    beta, gamma, average, variance = (call.optional(index) for index in range(first, first + 4))
    if call.args["batch_stat"] or average is None or variance is None:
        average, variance = statistics(call, x, [axis for axis in range(len(x.shape)) if axis not in axes])
    elif all(value is None or value.buffer.values is not None for value in (beta, gamma, average, variance)):
        return [_scaled_and_shifted(call, x, beta, gamma, average, variance), average, variance]
    return [scaled(call, normalized(call, x, average, variance), beta, gamma), average, variance]


def _scaled_and_shifted(
    call: Call, x: Value, beta: Value | None, gamma: Value | None, average: Value, variance: Value
) -> Value:
    """Return a normalization by known statistics, whose scale is worked out in double; exactly beta where x is the mean."""
    v = array_of(variance, "variance").astype(np.float64)
    factor = (1.0 if gamma is None else array_of(gamma, "gamma").astype(np.float64)) / np.sqrt(v + call.args["eps"])
    scale = call.program.constant(factor, name="scale")
    if beta is None:
        return call.map("(a - b) * c", x, average, scale)
    return call.map("(a - b) * c + d", x, average, scale, beta)


@emitter("BatchNormalization", "SyncBatchNormalization")
def _batch_normalization(call: Call) -> list[Value]:
    return batch_normalized(call, call.x, 1, call.args["axes"])[: len(call.output_shapes)]


@emitter("FusedBatchNormalization")
def _fused_batch_normalization(call: Call) -> list[Value]:
    y, *rest = batch_normalized(call, call.x, 1, call.args["axes"])
    z = call.optional(5)
    y = y if z is None else call.map("a + b", y, z)
    return [call.map("a < 0.0f ? 0.0f : a", y), *rest][: len(call.output_shapes)]


def _general(call: Call, kept: Sequence[int]) -> list[Value]:
    """Any normalization over all axes but `kept`."""
    others = [axis for axis in range(len(call.shape)) if axis not in kept]
    average, variance = statistics(call, call.x, others)
    y = scaled(call, normalized(call, call.x, average, variance), call.optional(1), call.optional(2))
    return [y, average, variance][: len(call.output_shapes)]


@emitter("LayerNormalization")
def _layer_normalization(call: Call) -> list[Value]:
    return _general(call, [axis % len(call.shape) for axis in call.args["batch_axis"]])


@emitter("InstanceNormalization")
def _instance_normalization(call: Call) -> list[Value]:
    return _general(call, [call.args["channel_axis"] % len(call.shape), *call.args["batch_axis"]])


@emitter("TensorNormalization")
def _tensor_normalization(call: Call) -> list[Value]:
    return _general(call, [axis % len(call.shape) for axis in call.args["axes"]])


@emitter("WeightStandardization")
def _weight_standardization(call: Call) -> list[Value]:
    return _general(call, [call.args["channel_axis"] % len(call.shape)])


@emitter("GroupNormalization")
def _group_normalization(call: Call) -> list[Value]:
    channel, groups = call.args["channel_axis"] % len(call.shape), call.args["num_groups"]
    shape = (*call.shape[:channel], groups, call.shape[channel] // groups, *call.shape[channel + 1 :])
    x = reshaped(call.program, call.name, call.x, shape)
    kept = [*(axis + (axis > channel) for axis in call.args["batch_axis"]), channel]
    average, variance = statistics(call, x, [axis for axis in range(len(shape)) if axis not in kept])
    y = reshaped(call.program, call.name, normalized(call, x, average, variance), call.shape)
    return [scaled(call, y, call.optional(1), call.optional(2)), average, variance][: len(call.output_shapes)]


@emitter("NormNormalization")
def _norm_normalization(call: Call) -> Value:
    p, axes = call.args["p"], [axis % len(call.shape) for axis in call.args["axes"]]
    result = f"powf(total + {number(call.args['eps'])}, {number(1 / p)})"
    lengths = call.reduce(axes, "0.0f", f"total += powf(fabsf(a), {number(p)});", call.x, result=result)
    return call.map("a / b", call.x, lengths)


@emitter("WeightNormalization")
def _weight_normalization(call: Call) -> Value:
    dim = call.args["dim"] % len(call.shape)
    others = [axis for axis in range(len(call.shape)) if axis != dim]
    result = f"sqrtf(total + {number(call.args['eps'])})"
    lengths = call.reduce(others, "0.0f", "total += a * a;", call.x, result=result)
    shape = [length if axis == dim else 1 for axis, length in enumerate(call.shape)]
    return call.map("a * (b / c)", call.x, reshaped(call.program, call.name, call[1], shape), lengths)


@emitter("MeanSubtraction")
def _mean_subtraction(call: Call) -> Value:
    if call.args["update_running_mean"]:
        raise NotExportableError("update_running_mean is for training")
    return call.map("a - b", call.x, call[1])
