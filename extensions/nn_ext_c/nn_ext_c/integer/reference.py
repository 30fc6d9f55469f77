"""The reference: what an integer network computes, bit by bit, in NumPy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from nn_ext_c.integer.cells import run_recurrent
from nn_ext_c.integer.network import IntegerNetwork, Node, Tensor
from nn_ext_c.integer.numbers import Array, clamped, dequantized, quantized, shifted

Run = Callable[[Node, Sequence[Array], Tensor], Array]


def run(network: IntegerNetwork, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a network, as float32.

    Args:
        network: an integer network.
        inputs: float arrays by name.
    """
    given = {name: quantized(inputs[name], network.tensors[k].scale) for name, k in network.inputs.items()}
    made = run_integers(network, given)
    return {name: dequantized(made[name], network.tensors[k].scale) for name, k in network.outputs.items()}


def run_integers(network: IntegerNetwork, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a network as integers, from integers."""
    values = {number: np.asarray(inputs[name], np.int64) for name, number in network.inputs.items()}
    for node in network.nodes:
        given = [values[k] for k in node.inputs]
        offsets = [network.tensors[k].scale.zero for k in node.inputs]
        centered = given if node.kind in _RAW else [q - zero for q, zero in zip(given, offsets, strict=True)]
        if node.kind == "recurrent":
            made = (node.output, *node.data["others"])
            results = run_recurrent(node, centered, [network.tensors[k].scale for k in made])
            values.update(zip(made, results, strict=True))
        else:
            values[node.output] = _RUN[node.kind](node, centered, network.tensors[node.output])
    return {name: values[k] for name, k in network.outputs.items()}


def rescaled(total: Array, node: Node, made: Tensor, shape: tuple[int, ...] = ()) -> Array:
    """Accumulators as int8: ``clamp(round(total * multiplier / 2 ** shift) + zero)``."""
    multiplier, shift = (np.asarray(node.data[key], np.int64) for key in ("multiplier", "shift"))
    if shape:
        multiplier, shift = multiplier.reshape(shape), shift.reshape(shape)
    return clamped(shifted(total * multiplier, shift) + made.scale.zero, node.data["low"], node.data["high"])


def _under(x: Array, node: Node, counts: Sequence[int], border: int) -> Array:
    """Return the elements under the kernel at each place, in a new last axis; `border` outside of x."""
    data, n = node.data, len(node.data["kernel"])
    widths = []
    for length, count, kernel, stride, dilation, pad in zip(
        x.shape[x.ndim - n :], counts, data["kernel"], data["stride"], data["dilation"], data["pad"], strict=True
    ):
        reach = (count - 1) * stride + (kernel - 1) * dilation + 1
        widths.append((pad, max(0, reach - pad - length)))
    x = np.pad(x, [(0, 0)] * (x.ndim - n) + widths, constant_values=border)
    parts = []
    for place in np.ndindex(*data["kernel"]):
        cuts = [
            slice(k * dilation, k * dilation + (count - 1) * stride + 1, stride)
            for k, dilation, count, stride in zip(place, data["dilation"], counts, data["stride"], strict=True)
        ]
        parts.append(x[tuple([slice(None)] * (x.ndim - n) + cuts)])
    return np.stack(parts, axis=-1)


def _window(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    """Inner products of windows and filters, and a bias, rescaled for each filter."""
    weight = node.data["weight"]  # (groups, filters, channels, *kernel)
    groups, filters, channels = weight.shape[:3]
    columns = _under(inputs[0], node, made.shape[2:], 0)
    columns = columns.reshape(columns.shape[0], groups, channels, *columns.shape[2:])
    flat = weight.reshape(groups, filters, channels, -1)
    total = np.einsum("bgc...k,gfck->bgf...", columns, flat).reshape(made.shape)
    ones = (1,) * (len(made.shape) - 2)
    return rescaled(total + node.data["bias"].reshape(1, -1, *ones), node, made, (1, groups * filters, *ones))


def _sum(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    """Return sums of inputs, each with a multiplier of its own, with one rounding."""
    total = sum(q * multiplier for q, multiplier in zip(inputs, node.data["multipliers"], strict=True))
    q = shifted(np.asarray(total), node.data["shift"]) + made.scale.zero
    return clamped(np.broadcast_to(q, made.shape), node.data["low"], node.data["high"])


def _product(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    return rescaled(inputs[0] * inputs[1], node, made)


def _largest(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    n = len(node.data["kernel"])
    return np.asarray(_under(inputs[0], node, made.shape[len(made.shape) - n :], -(2**20)).max(axis=-1))


def _pool(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    n = len(node.data["kernel"])
    return rescaled(_under(inputs[0], node, made.shape[len(made.shape) - n :], 0).sum(axis=-1), node, made)


def _lookup(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    return np.asarray(node.data["table"][inputs[0] + 128])


def _softmax(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    """``round(256 e / sum(e)) - 128`` of table entries e for the distance from the maximum, halves up."""
    (q,) = inputs
    axis = node.data["axis"]
    e = node.data["table"][q.max(axis=axis, keepdims=True) - q]
    total = e.sum(axis=axis, keepdims=True)
    return clamped((e * 256 + total // 2) // total - 128, -128, 127)


def _move(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    places = node.data["places"]
    return np.where(places < 0, made.scale.zero, inputs[0].reshape(-1)[places])


def _join(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    return np.concatenate(inputs, axis=node.data["axis"])


def _constant(node: Node, inputs: Sequence[Array], made: Tensor) -> Array:
    return np.asarray(node.data["values"])


_RUN: Final[dict[str, Run]] = {
    "window": _window,
    "sum": _sum,
    "product": _product,
    "largest": _largest,
    "pool": _pool,
    "lookup": _lookup,
    "softmax": _softmax,
    "move": _move,
    "join": _join,
    "constant": _constant,
}
#: Kinds that read the integers themselves and not their distance from zero.
_RAW: Final = frozenset({"largest", "lookup", "softmax", "move", "join"})
#: For tests: every kind.
KINDS: Final[frozenset[str]] = frozenset(_RUN) | {"recurrent"}
