"""Convolutions."""

from collections.abc import Sequence

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Node, operator
from nn_ext_onnx.importing.shape import padded
from nn_ext_onnx.importing.values import UnsupportedError


def window_pads(node: Node, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> list[tuple[int, int]]:
    """Return the padding before and after each spatial axis.

    Raises:
        UnsupportedError: when ``auto_pad`` is unknown.
    """
    n, auto = len(kernel), node.attr("auto_pad", "NOTSET")
    if auto == "NOTSET":
        pads = node.attr("pads") or [0] * (2 * n)
        return list(zip(pads[:n], pads[n:], strict=True))
    if auto == "VALID":
        return [(0, 0)] * n
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise UnsupportedError(f"auto_pad {auto!r}")
    found = []
    for length, size, step, gap in zip(node.shape[2:], kernel, strides, dilations, strict=True):
        total = max((-(-length // step) - 1) * step + (size - 1) * gap + 1 - length, 0)
        less, more = total // 2, total - total // 2
        found.append((less, more) if auto == "SAME_UPPER" else (more, less))
    return found


def bordered(x: nn.Variable, pads: Sequence[tuple[int, int]], value: float = 0.0) -> nn.Variable:
    """Images with a border on the spatial axes."""
    return padded(x, [(0, 0), (0, 0), *pads], "constant", value) if any(map(any, pads)) else x


def geometry(node: Node, weight: int = 1) -> tuple[list[int], list[int], list[int]]:
    """Return the lengths of the filters, which are input `weight`, strides and dilations.

    Raises:
        UnsupportedError: when ``kernel_shape`` says otherwise.
    """
    kernel = list(node[weight].shape[2:])
    if node.attr("kernel_shape") not in (None, kernel):
        raise UnsupportedError(f"kernel_shape {node.attr('kernel_shape')} for a weight of shape {node[weight].shape}")
    return kernel, node.attr("strides") or [1] * len(kernel), node.attr("dilations") or [1] * len(kernel)


@operator("Conv")
def _conv(node: Node) -> nn.Variable:
    kernel, strides, dilations = geometry(node)
    pads = window_pads(node, kernel, strides, dilations)
    settings = {"stride": strides, "dilation": dilations, "group": node.attr("group", 1)}
    weight, bias = node.variable(1), node.optional_variable(2)
    if all(before == after for before, after in pads):
        return F.convolution(node.x, weight, bias, pad=[before for before, _ in pads], **settings)
    return F.convolution(bordered(node.x, pads), weight, bias, pad=[0] * len(kernel), **settings)


@operator("ConvTranspose")
def _conv_transpose(node: Node) -> nn.Variable:
    kernel, strides, dilations = geometry(node)
    more = node.attr("output_padding") or [0] * len(kernel)
    whole = [s * (n - 1) + d * (k - 1) + 1 for n, k, s, d in zip(node.shape[2:], kernel, strides, dilations, strict=True)]
    pads = _transposed_pads(node, whole, strides, more)
    settings = {"stride": strides, "dilation": dilations, "group": node.attr("group", 1)}
    weight, bias = node.variable(1), node.optional_variable(2)
    if not any(more) and all(a == b >= 0 for a, b in pads):
        return F.deconvolution(node.x, weight, bias, pad=[a for a, _ in pads], **settings)
    y = F.deconvolution(node.x, weight, None, pad=[0] * len(kernel), **settings)
    y = bordered(y, [(-before, extra - after) for (before, after), extra in zip(pads, more, strict=True)])
    return y if bias is None else y + F.reshape(bias, (1, -1, *(1,) * len(kernel)))


def _transposed_pads(node: Node, whole: Sequence[int], strides: Sequence[int], more: Sequence[int]) -> list[tuple[int, int]]:
    """Return the numbers of elements to cut off before and after each axis of the whole result."""
    n, auto, shape = len(whole), node.attr("auto_pad", "NOTSET"), node.attr("output_shape")
    if shape is None and auto in ("NOTSET", "VALID"):
        pads = (node.attr("pads") or [0] * (2 * n)) if auto == "NOTSET" else [0] * (2 * n)
        return list(zip(pads[:n], pads[n:], strict=True))
    wanted = shape[-n:] if shape is not None else [length * step for length, step in zip(node.shape[2:], strides, strict=True)]
    found = []
    for length, extra, target in zip(whole, more, wanted, strict=True):
        total = length + extra - target
        if total < 0:  # zeros follow
            found.append((0, total))
            continue
        less, rest = total // 2, total - total // 2
        found.append((less, rest) if auto == "SAME_UPPER" else (rest, less))
    return found


@operator("DeformConv")
def _deform_conv(node: Node) -> nn.Variable:
    """nn_core takes displacements at every place of x and reads those where the kernel stops."""
    kernel, strides, dilations = geometry(node)
    pads = window_pads(node, kernel, strides, dilations)
    if len(kernel) != 2:
        raise UnsupportedError(f"{len(kernel)} spatial axes")
    x = bordered(node.x, pads)
    offset = _spread(node.variable(2), x.shape[2:], strides)
    mask = None if node.optional(4) is None else _spread(node.variable(4), x.shape[2:], strides)
    if any(map(any, pads)):
        # displaced places outside of x read zero with and without the border
        pads = [(0, 0)] * 2
    settings = {"group": node.attr("group", 1), "deformable_group": node.attr("offset_group", 1)}
    bias = node.optional_variable(3)
    return F.deformable_convolution(
        x, node.variable(1), offset, mask, bias, pad=[0, 0], stride=strides, dilation=dilations, **settings
    )


def _spread(values: nn.Variable, lengths: Sequence[int], strides: Sequence[int]) -> nn.Variable:
    """Values at every `strides`-th place of an image of `lengths`."""
    y = values
    for axis, (length, step) in enumerate(zip(lengths, strides, strict=True), start=2):
        places = np.minimum(np.arange(length) // step, y.shape[axis] - 1)
        y = F.gather(y, nn.Variable.from_numpy_array(places.astype(np.int64)), axis=axis)
    return y
