"""Operators that put windows together or take them apart: Col2Im, MaxUnpool, STFT; and grids and filter banks."""

import math

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.folding import evaluate
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.values import Array, UnsupportedError


def _constant(values: Array) -> nn.Variable:
    return nn.Variable.from_numpy_array(values)


@operator("AffineGrid")
def _affine_grid(node: Node) -> nn.Variable:
    return F.affine_grid(node.x, node.ints(1)[2:], bool(node.attr("align_corners", 0)))


@operator("MelWeightMatrix")
def _mel_weight_matrix(node: Node) -> Made:
    """Return the bank of filters, which follows from five numbers."""
    return evaluate(node.proto, [node.array(place) for place in range(5)], node.builder.opsets)


@operator("Col2Im")
def _col2im(node: Node) -> nn.Variable:
    """Add up the columns of blocks where they overlap."""
    image, block = node.ints(1), node.ints(2)
    n = len(image)
    strides, dilations = node.attr("strides") or [1] * n, node.attr("dilations") or [1] * n
    pads = node.attr("pads") or [0] * (2 * n)
    whole = [length + before + after for length, before, after in zip(image, pads[:n], pads[n:], strict=True)]
    counts = [(w - d * (b - 1) - 1) // s + 1 for w, b, s, d in zip(whole, block, strides, dilations, strict=True)]
    batch, features, n_places = node.shape
    if n_places != math.prod(counts) or features % math.prod(block):
        raise UnsupportedError(f"columns of shape {node.shape} for {counts} blocks of {block}")
    channels = features // math.prod(block)
    places = np.zeros((1, 1), np.int64)
    for length, size, count, step, dilation in zip(whole, block, counts, strides, dilations, strict=True):
        line = dilation * np.arange(size)[:, None] + step * np.arange(count)
        places = (places[:, None, :, None] * length + line[None, :, None, :]).reshape(len(places) * size, -1)
    columns = F.reshape(node.x, (batch * channels, math.prod(block) * n_places))
    added = F.scatter_nd(
        F.transpose(columns, (1, 0)), _constant(places.reshape(1, -1)), shape=(math.prod(whole), batch * channels), add=True
    )
    y = F.reshape(F.transpose(added, (1, 0)), (batch, channels, *whole))
    starts = list(pads[:n])
    return F.slice(y, start=starts, stop=[a + length for a, length in zip(starts, image, strict=True)], step=[1] * n)


@operator("MaxUnpool")
def _max_unpool(node: Node) -> nn.Variable:
    """Put each element at the place from which a pooling took it, among zeros."""
    kernel = node.attr("kernel_shape")
    n = len(kernel)
    strides, pads = node.attr("strides") or [1] * n, node.attr("pads") or [0] * (2 * n)
    lengths = [
        (length - 1) * step + size - before - after
        for length, step, size, before, after in zip(node.shape[2:], strides, kernel, pads[:n], pads[n:], strict=True)
    ]
    shape = (*node.shape[:2], *lengths)
    index = F.reshape(node.variable(1), (1, -1))
    y = F.reshape(F.scatter_nd(F.reshape(node.x, (-1,)), index, shape=(math.prod(shape),)), shape)
    if node.optional(2) is None:
        return y
    missing = [wanted - length for wanted, length in zip(node.ints(2), shape, strict=True)]
    if min(missing) < 0:
        raise UnsupportedError(f"output_shape {node.ints(2)} for a result of shape {shape}")
    return F.pad(y, [number for after in missing for number in (0, after)])


@operator("STFT")
def _stft(node: Node) -> nn.Variable:
    """Multiply windows of a real signal by waves."""
    signal, step = node.x, int(node.number(1))
    if signal.ndim == 3 and signal.shape[2] != 1:
        raise UnsupportedError("complex signals")
    batch, length = signal.shape[:2]
    window = node.optional_variable(2)
    size = int(node.number(3)) if window is None else window.shape[0]
    n_frames = (length - size) // step + 1
    places = step * np.arange(n_frames)[:, None] + np.arange(size)
    picked = F.gather(F.reshape(signal, (batch, length)), _constant(places.reshape(-1)), axis=1)
    frames = F.reshape(picked, (batch, *places.shape))
    frames = frames if window is None else frames * F.reshape(window, (1, 1, size))
    bins = np.arange(size // 2 + 1 if node.attr("onesided", 1) else size)
    node.shapes = [None]  # the inference of the ONNX package takes both sides where the attribute is left out
    parts = [F.affine(frames, _wave(kind, size, bins), base_axis=2) for kind in (np.cos, lambda x: -np.sin(x))]
    return F.stack(*parts, axis=3)


def _wave(kind: object, size: int, bins: Array) -> nn.Variable:
    """Return a wave of each frequency, (size, bins); the phase is reduced before it becomes an angle."""
    phase = np.outer(np.arange(size), bins) % size
    return _constant(kind(2 * np.pi / size * phase).astype(np.float32))  # type: ignore[operator]
