"""Random functions: other numbers than nn_core draws, with the same distribution."""

from collections.abc import Sequence

import numpy as np

from nn_ext_onnx.exporting.registry import Call, NotExportableError, converter, size_of
from nn_ext_onnx.exporting.values import BOOL, FLOAT, INT, Value


def _seed(call: Call) -> float | None:
    seed = call.args["seed"]
    return None if seed < 0 else float(seed)


def uniform(call: Call, shape: Sequence[int], low: float = 0.0, high: float = 1.0) -> Value:
    """Evenly distributed numbers; the shape may depend on the batch."""
    zeros = call.zeros(shape)
    return zeros.op("RandomUniformLike", low=low, high=high, seed=_seed(call))


@converter("Rand")
def _rand(call: Call) -> Value:
    return uniform(call, call.output_shape, call.args["low"], call.args["high"])


@converter("Randn")
def _randn(call: Call) -> Value:
    zeros = call.zeros(call.output_shape)
    return zeros.op("RandomNormalLike", mean=call.args["mu"], scale=call.args["sigma"], seed=_seed(call))


@converter("Randint")
def _randint(call: Call) -> Value:
    low, high = call.args["low"], call.args["high"]
    drawn = uniform(call, call.output_shape) * float(high - low)
    return drawn.op("Floor").cast(INT).op("Min", high - low - 1) + low


@converter("RandBinomial")
def _rand_binomial(call: Call) -> Value:
    n, shape = call.args["n"], call.output_shape
    hits = uniform(call, (*shape, n)).compare("Less", call.args["p"]).real()
    return hits.reduce("ReduceSum", [len(shape)], False)


@converter("Dropout")
def _dropout(call: Call) -> Value:
    """Keep everything, as an inference model does."""
    ratio = call.graph.constant(call.args["p"], FLOAT)
    return call.x.op("Dropout", ratio)


@converter("RandomChoice")
def _random_choice(call: Call) -> Value:
    """Return the largest of log w + Gumbel noise is drawn with probability w; the n largest are n draws without
    replacement.
    """
    n, n_drawn = call.shape[-1], size_of(call.args["shape"])
    rows = size_of(call.shape[:-1])
    x, log_w = call.x.reshape((rows, n)), call[1].reshape((rows, n)).op("Log")
    if call.args["replace"]:
        noise = uniform(call, (rows, n_drawn, n)).op("Max", 1e-30).op("Log")
        places = (log_w.unsqueeze(1) - (-noise).op("Log")).op("ArgMax", axis=2, keepdims=0, dtype=INT)
    else:
        noise = uniform(call, (rows, n)).op("Max", 1e-30).op("Log")
        keys = log_w - (-noise).op("Log")
        places = call.graph.ops("TopK", keys, (n_drawn,), dtypes=[keys.dtype, INT], axis=1)[1]
    return x.op("GatherElements", places, axis=1).reshape(call.output_shape)


@converter("RandomFlip")
def _random_flip(call: Call) -> Value:
    """Each axis of each sample is turned or not."""
    base_axis, y = call.args["base_axis"], call.x
    for axis in call.args["axes"]:
        shape = [length if place < base_axis else 1 for place, length in enumerate(call.shape)]
        is_turned = uniform(call, shape).compare("Less", 0.5)
        turned = y.take(np.arange(call.shape[axis])[::-1].copy(), axis)
        y = call.graph.op("Where", is_turned, turned, y)
    return y.op("Identity") if y is call.x else y


@converter("RandomCrop")
def _random_crop(call: Call) -> Value:
    """Each sample is read from its own start."""
    return _read(call, [(0, n - m + 1) for n, m in zip(call.shape, call.output_shape, strict=True)])


@converter("RandomShift")
def _random_shift(call: Call) -> Value:
    """Each sample is read from a start that may be outside; the border mode says what is there."""
    shifts = call.args["shifts"]
    limits = [0] * (call.ndim - len(shifts)) + list(shifts)
    return _read(call, [(-limit, 2 * limit + 1) for limit in limits])


def _read(call: Call, ranges: Sequence[tuple[int, int]]) -> Value:
    """Return samples read from random starts, (lowest, how many) on each axis."""
    base_axis, y, shape = call.args["base_axis"], call.x, list(call.shape)
    for axis, (low, count) in enumerate(ranges):
        if count == 1 and shape[axis] == call.output_shape[axis]:
            continue
        if axis < base_axis:
            raise NotExportableError(f"the axes before base_axis, {base_axis}, must stay as they are, got axis {axis}")
        one = [length if place < base_axis else 1 for place, length in enumerate(shape)]
        start = (uniform(call, one) * float(count)).op("Floor").op("Min", float(count - 1)).cast(INT) + low
        line = [-1 if place == axis else 1 for place in range(len(shape))]
        places = start + call.arange(call.output_shape[axis]).reshape(line)
        inside, places = _bordered(call, places, call.shape[axis])
        shape[axis] = call.output_shape[axis]
        y = y.op("GatherElements", places.op("Expand", tuple(shape)), axis=axis)
        if inside is not None:
            y = call.graph.op("Where", inside, y, call.args["constant_value"])
    return y.op("Identity") if y is call.x else y


def _bordered(call: Call, places: Value, length: int) -> tuple[Value | None, Value]:
    """Places moved inside, and which were inside if the border is constant."""
    mode, last = call.args.get("border_mode", "nearest"), length - 1
    if mode == "reflect":
        turned = places.op("Mod", 2 * length)
        return None, turned.op("Min", 2 * length - 1 - turned)
    inside = None
    if mode == "constant":
        inside = places.compare("GreaterOrEqual", 0).op("And", places.compare("LessOrEqual", last), dtype=BOOL)
    return inside, places.op("Max", 0).op("Min", last)


@converter("VATNoise")
def _vat_noise(call: Call) -> Value:
    axes = range(call.args["base_axis"], call.ndim)
    total = (call.x * call.x).reduce("ReduceSum", axes)
    return call.args["eps"] * call.x / (total + 1e-8).op("Sqrt")
