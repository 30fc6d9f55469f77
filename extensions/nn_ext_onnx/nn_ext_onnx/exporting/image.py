"""Resampling, Fourier transforms, warping and patch correlation."""

import functools
import math
from itertools import product
from typing import Any

import numpy as np

from nn_core.graph_rewriting import follows_shapes
from nn_ext_onnx.exporting.registry import Call, NotExportableError, converter, size_of
from nn_ext_onnx.exporting.values import FLOAT, INT, Value


@converter("Interpolate")
def _interpolate(call: Call) -> Value:
    """Pick neighbours whose places are found in integers, as they are here; Resize finds them in floating point."""
    sizes, args = call.args["output_size"], call.args
    first = call.ndim - len(sizes) - args["channel_last"]
    y = call.x
    for axis, size in enumerate(sizes, start=first):
        n = call.shape[axis]
        if args["mode"] == "nearest":
            y = y.op("Gather", _nearest(call, n, size), axis=axis)
            continue
        low, weight = _linear(call, n, size)
        high = _at_most(call, low + 1, n - 1)
        line = [-1 if place == axis else 1 for place in range(call.ndim)]
        share = weight.reshape(line) if isinstance(weight, Value) else call.graph.constant(weight.reshape(line))
        y = y.op("Gather", low, axis=axis) * (1.0 - share) + y.op("Gather", high, axis=axis) * share
    return y


def _linear(call: Call, n: int, size: int) -> tuple[Any, Any]:
    """For each place of the result the lower neighbour, and the share of the upper one.

    They are arrays, or values where lengths are not fixed: quotients of integers in both.
    """
    place: Any = np.arange(size)
    length: Any = n
    count: Any = size
    if follows_shapes(n) or follows_shapes(size):
        place, length, count = call.arange(size), *(call.graph.constant(number, INT) for number in (n, size))
    elif size == 1:
        return np.zeros(1, np.int64), np.zeros(1)
    if call.args["align_corners"]:
        numerator, denominator = place * (length - 1), count - 1
    elif call.args["half_pixel"]:
        numerator, denominator = (2 * place + 1) * length - count, 2 * count
    else:
        numerator, denominator = place * length, count
    if isinstance(numerator, Value):
        return _quotient(numerator, denominator, length, count)
    numerator = np.clip(numerator, 0, (n - 1) * denominator)
    low = numerator // denominator
    return low, (numerator - low * denominator) / denominator


def _quotient(numerator: Value, denominator: Value, length: Value, count: Value) -> tuple[Value, Value]:
    """Return whole quotients and the rests as shares; all of one place are 0."""
    denominator = denominator.op("Max", 1)
    several = count.compare("Greater", 1).cast(INT)
    numerator = numerator.op("Max", 0).op("Min", (length - 1) * denominator) * several
    low = numerator / denominator
    return low, (numerator - low * denominator).real() / denominator.real()


def _nearest(call: Call, n: int, size: int) -> Any:
    if not call.args["half_pixel_for_nn"]:
        return _linear(call, n, size)[0]
    if follows_shapes(n) or follows_shapes(size):
        length, count = (call.graph.constant(number, INT) for number in (n, size))
        return ((2 * call.arange(size) + 1) * length / (2 * count)).op("Min", length - 1)
    return np.minimum((2 * np.arange(size) + 1) * n // (2 * size), n - 1)


def _at_most(call: Call, places: Any, last: int) -> Any:
    return places.op("Min", call.graph.constant(last, INT)) if isinstance(places, Value) else np.minimum(places, last)


@converter("ONNXResize")
def _onnx_resize(call: Call) -> Value:
    args = call.args
    roi = call.graph.constant(args["roi"], FLOAT) if args["roi"] else None
    scales = None if args["sizes"] else call.graph.constant(args["scales"], FLOAT)
    sizes = list(args["sizes"]) or None
    return call.x.op(
        "Resize",
        roi,
        scales,
        sizes,
        mode=args["mode"],
        coordinate_transformation_mode=args["coordinate_transformation_mode"],
        cubic_coeff_a=args["cubic_coeff_a"],
        exclude_outside=args["exclude_outside"] if args["mode"] == "cubic" else None,
        extrapolation_value=args["extrapolation_value"],
        nearest_mode=args["nearest_mode"],
    )


@converter("FFT", "IFFT")
def _fft(call: Call) -> Value:
    call.need_opset(17, "DFT")
    n_axes, inverse = call.args["signal_ndim"], int(call.name == "IFFT")
    y = call.x
    axes = range(call.ndim - 1 - n_axes, call.ndim - 1)
    for axis in axes:
        if call.graph.opset >= 20:
            y = y.op("DFT", None, call.graph.constant(axis, INT), inverse=inverse)
        else:
            y = y.op("DFT", axis=axis, inverse=inverse)
    if call.args["normalized"]:
        root = math.sqrt(size_of([call.shape[axis] for axis in axes]))
        y = y * (root if inverse else 1 / root)
    return y


def _window(call: Call) -> np.ndarray:
    """Return the periodic window, centred in `fft_size` zeros."""
    n, size = call.args["window_size"], call.args["fft_size"]
    a, b = {"hanning": (0.5, 0.5), "hamming": (0.54, 0.46), "rectangular": (1.0, 0.0)}[call.args["window_type"]]
    left = (size - n) // 2
    return np.pad(a - b * np.cos(2 * np.pi / n * np.arange(n)), (left, size - n - left))


def _window_sum(call: Call, n_frames: int) -> np.ndarray:
    """Return the squared windows of all frames, added where they overlap."""
    window, stride = _window(call), call.args["stride"]
    total = np.zeros((n_frames - 1) * stride + len(window))
    for frame in range(n_frames):
        total[frame * stride : frame * stride + len(window)] += window**2
    return total


def _waves(call: Call) -> np.ndarray:
    """Cosines and sines of the half spectrum, (2, bins, fft_size)."""
    size = call.args["fft_size"]
    phase = 2 * np.pi * np.outer(np.arange(size // 2 + 1), np.arange(size)) / size
    return np.stack((np.cos(phase), -np.sin(phase)))


@converter("STFT")
def _stft(call: Call) -> list[Value]:
    """Return a convolution with windowed waves."""
    if call.args["as_istft_backward"]:
        raise NotExportableError("as_istft_backward must be False")
    size, stride = call.args["fft_size"], call.args["stride"]
    x = call.x.unsqueeze(1)
    if call.args["center"]:
        mode = "reflect" if call.args["pad_mode"] == "reflect" else "constant"
        x = x.op("Pad", [0, 0, size // 2, 0, 0, size // 2], mode=mode)
    kernels = _waves(call) * _window(call)
    return [x.op("Conv", call.graph.constant(kernel[:, None]), strides=[stride]) for kernel in kernels]


@converter("ISTFT")
def _istft(call: Call) -> Value:
    """Return the transposed convolution with windowed waves, divided by the window sum."""
    if call.args["as_stft_backward"]:
        raise NotExportableError("as_stft_backward must be False")
    size, stride = call.args["fft_size"], call.args["stride"]
    bins = np.arange(size // 2 + 1)
    counts = np.where((bins == 0) | (2 * bins == size), 1.0, 2.0)
    kernels = _waves(call) * _window(call) * (counts / size)[:, None]
    parts = [
        call[k].op("ConvTranspose", call.graph.constant(kernel[:, None]), strides=[stride]) for k, kernel in enumerate(kernels)
    ]
    margin = size // 2 if call.args["center"] else 0
    total = _window_sum(call, call.shape[2])
    y = (parts[0] + parts[1]).squeeze(1).slice(1, margin, len(total) - margin)
    return y / call.graph.constant(total[margin : len(total) - margin])


@converter("AffineGrid")
def _affine_grid(call: Call) -> Value:
    size = call.args["size"]
    lines = []
    for length in size:
        steps = max(length - 1, 1) if call.args["align_corners"] else length
        lines.append((2 * np.arange(length) - (length - 1)) / steps)
    planes = np.meshgrid(*lines, indexing="ij")
    places = np.stack((*planes[::-1], np.ones_like(planes[0])), axis=-1).reshape(-1, len(size) + 1)
    y = call.graph.constant(places).op("MatMul", call.x.transpose([0, 2, 1]))
    return y.reshape(call.output_shape)


@converter("WarpByGrid")
def _warp_by_grid(call: Call) -> Value:
    n_spatial = call.ndim - 2
    call.need_opset(16 if n_spatial == 2 else 20, f"GridSample over {n_spatial} axes")
    args, is_last = call.args, call.args["channel_last"]
    x = call.x.transpose([0, call.ndim - 1, *range(1, call.ndim - 1)]) if is_last else call.x
    linear = "linear" if call.graph.opset >= 20 else "bilinear"
    y = x.op(
        "GridSample",
        call[1],
        mode="nearest" if args["mode"] == "nearest" else linear,
        padding_mode={"zero": "zeros", "repeat": "border", "reflect": "reflection"}[args["padding_mode"]],
        align_corners=int(args["align_corners"]),
    )
    return y.transpose([0, *range(2, call.ndim), 1]) if is_last else y


@converter("WarpByFlow")
def _warp_by_flow(call: Call) -> Value:
    """Return a grid in [-1, 1] from pixels; an axis of length 1 has one place only."""
    call.need_opset(16, "GridSample")
    height, width = call.shape[2:]
    parts = []
    for channel, length, line in ((0, width, (1, 1, 1, width)), (1, height, (1, 1, height, 1))):
        places = call.graph.constant(np.arange(float(length)).reshape(line))
        moved = (call[1].slice(1, channel, channel + 1) + places).clip(0.0, float(length - 1))
        parts.append(moved * (2.0 / max(length - 1, 1)) - (1.0 if length > 1 else 0.0))
    grid = call.graph.op("Concat", *parts, axis=1).transpose([0, 2, 3, 1])
    return call.x.op(
        "GridSample", grid, mode="linear" if call.graph.opset >= 20 else "bilinear", padding_mode="border", align_corners=1
    )


@converter("PatchCorrelation")
def _patch_correlation(call: Call) -> Value:
    patch, shift, step, shift_step, pad = (
        call.args[name] for name in ("patch", "shift", "patch_step", "shift_step", "padding")
    )
    x1 = call[0].op("Pad", [0, 0, pad[0], pad[2], 0, 0, pad[1], pad[3]], 0.0)
    wide = [pad[0] + shift[0], pad[1] + shift[0], pad[2] + shift[1], pad[3] + shift[1]]
    x2 = call[1].op("Pad", [0, 0, wide[0], wide[2], 0, 0, wide[1], wide[3]], 0.0)
    height, width = call.shape[2] + pad[0] + pad[1], call.shape[3] + pad[2] + pad[3]
    rows, columns = (range(0, 2 * reach + 1, by) for reach, by in zip(shift, shift_step, strict=True))
    maps = []
    for row, column in product(rows, columns):
        moved = x2.slice(2, row, row + height).slice(3, column, column + width)
        similarity = (x1 * moved).reduce("ReduceSum", [1], False)
        for axis, length in ((1, height), (2, width)):
            similarity = _patch_sum(similarity, axis, patch[axis - 1], step[axis - 1], length)
        maps.append(similarity.unsqueeze(1))
    return call.graph.op("Concat", *maps, axis=1).reshape(call.output_shape)


def _patch_sum(x: Value, axis: int, size: int, step: int, length: int) -> Value:
    extent = length - size + 1
    return functools.reduce(Value.__add__, [x.slice(axis, k, k + extent, step) for k in range(size)])
