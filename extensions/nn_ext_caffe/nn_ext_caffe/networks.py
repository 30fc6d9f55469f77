"""Networks of Caffe as graphs of nn_core."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Final

import nn_core as nn
from nn_core.ext import ArgumentError, NNCoreError, naming_file
from nn_ext_caffe import arranging as arranging  # its layers are registered
from nn_ext_caffe.layers import CONVERTERS, Call, UnsupportedError
from nn_ext_caffe.reading import Layer, layers_of, read_net, with_weights

#: Layers that read data: their tops are inputs of the network.
_DATA: Final = frozenset({"Data", "DummyData", "HDF5Data", "ImageData", "Input", "MemoryData", "WindowData"})
#: Layers that compare results with data: left out where these are no inputs.
_JUDGES: Final = frozenset({"Accuracy", "EuclideanLoss", "SigmoidCrossEntropyLoss", "SoftmaxWithLoss"})


@dataclass(slots=True)
class Network:
    """A network of Caffe as a graph.

    Attributes:
        name: of the network.
        inputs: variables to put data into, by name.
        outputs: results that no other layer reads, by name.
        parameters: weights, by the name of the layer and "W", "b", "gamma", "beta", "slope", "mean" or "variance".
        blobs: all values by name: the last one of those that layers compute in place.
    """

    name: str
    inputs: dict[str, nn.Variable] = field(default_factory=dict)
    outputs: dict[str, nn.Variable] = field(default_factory=dict)
    parameters: dict[str, nn.Variable] = field(default_factory=dict)
    blobs: dict[str, nn.Variable] = field(default_factory=dict)


def load(
    source: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    batch_size: int | None = None,
    phase: str = "TEST",
) -> Network:
    """Build the graph of a network.

    Args:
        source: a .prototxt file, or a .caffemodel file, which has the network that was trained.
        weights: the .caffemodel file with the weights of a .prototxt file.
        shapes: shapes of inputs, where the network has none, such as ``{"data": (8, 3, 224, 224)}``. Layers that compare with
            an input that has none, such as a label, are left out.
        batch_size: length of the first axis of all inputs.
        phase: which layers are built: those for "TEST", or for "TRAIN".

    Returns:
        The network. Dropout keeps everything, and normalizations use their statistics, unless the phase is "TRAIN".

    Raises:
        FileFormatError: when a file is damaged.
        ArgumentError: lists every layer that cannot be built.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp(), "net.prototxt")
        >>> _ = path.write_text('input: "x" input_dim: 2 input_dim: 3 layer { name: "y" type: "TanH" bottom: "x" top: "y" }')
        >>> load(path).outputs["y"].shape
        (2, 3)
    """
    if phase not in ("TEST", "TRAIN"):
        raise ArgumentError(f"load: phase must be 'TEST' or 'TRAIN', got {phase!r}")
    net, file = read_net(source), Path(source).name
    layers = layers_of(net, file, phase)
    if weights is not None:
        name = Path(weights).name
        with_weights(layers, layers_of(read_net(weights), name, phase), name)
    builder = _Builder(Network(net.name), dict(shapes or {}), batch_size, phase == "TRAIN")
    with naming_file(source):
        builder.inputs(net)
        return builder.build(layers, file)


class _Builder:
    def __init__(self, network: Network, shapes: dict[str, Sequence[int]], batch_size: int | None, is_training: bool) -> None:
        self.network, self.shapes, self.batch_size, self.is_training = network, shapes, batch_size, is_training
        self.absent: set[str] = set()
        self.failed: set[str] = set()
        self.unread: dict[str, None] = {}
        self.problems: list[str] = []

    def inputs(self, net: Any) -> None:
        """Make the inputs that a network lists itself."""
        lengths = list(net.input_dim)
        n_axes = len(lengths) // max(len(net.input), 1)
        for k, name in enumerate(net.input):
            shape = net.input_shape[k].dim if k < len(net.input_shape) else lengths[k * n_axes : (k + 1) * n_axes]
            self.input(name, list(shape))

    def input(self, name: str, shape: Sequence[int]) -> None:
        """Make one input, whose shape may be given in the call."""
        lengths = list(self.shapes.get(name, shape))
        if not lengths:
            self.absent.add(name)
            return
        if self.batch_size is not None and name not in self.shapes:
            lengths[0] = self.batch_size
        if min(lengths) < 1 or prod(lengths) > 2**40:
            raise ArgumentError(f"load: inputs must have a shape that fits into memory, got {tuple(lengths)} of {name!r}")
        variable = nn.Variable(lengths)
        variable.name = name
        self.network.inputs[name] = self.network.blobs[name] = variable

    def build(self, layers: Sequence[Layer], file: str) -> Network:
        """Build all layers, or refuse the network with all that cannot be built."""
        for layer in layers:
            if layer.kind in _DATA:
                self.data(layer)
            else:
                self.layer(layer)
        if self.problems:
            raise ArgumentError(
                f"load: {file}: layers must be those that nn_core can build, got\n  " + "\n  ".join(self.problems)
            )
        self.network.outputs = {name: self.network.blobs[name] for name in self.unread}
        return self.network

    def data(self, layer: Layer) -> None:
        """Make inputs of what a layer of data gives."""
        given = _shapes_of_data(layer)
        for k, name in enumerate(layer.tops):
            self.input(name, given[min(k, len(given) - 1)] if given else [])

    def layer(self, layer: Layer) -> None:
        """Build one layer."""
        missing = [name for name in layer.bottoms if name not in self.network.blobs]
        if missing:
            self.missing(layer, missing)
            return
        try:
            made = self.made(layer)
        except UnsupportedError as error:
            self.problem(layer, str(error))
        except NNCoreError as error:
            self.problem(layer, str(error).splitlines()[0])
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # converters trust what a damaged file may not have
            self.problem(layer, f"a wrong setting: {error}")
        else:
            for name in layer.bottoms:
                self.unread.pop(name, None)
            for name, value in zip(layer.tops, made, strict=False):
                self.network.blobs[name], self.unread[name] = value, None

    def made(self, layer: Layer) -> list[nn.Variable]:
        """Return the results of a layer."""
        convert = CONVERTERS.get(layer.kind)
        if convert is None:
            raise UnsupportedError("there is no such layer")
        call = Call(layer, [self.network.blobs[name] for name in layer.bottoms], self.network.parameters, self.is_training)
        results: Any = convert(call)
        made = list(results) if isinstance(results, (list, tuple)) else [results]
        if len(made) != len(layer.tops):
            raise UnsupportedError(f"{len(layer.tops)} tops for {len(made)} results")
        return made

    def missing(self, layer: Layer, names: Sequence[str]) -> None:
        """Leave out a layer that compares with inputs that are not there; note that others have nothing to read."""
        if self.failed.issuperset(names):  # the layer that gives them is named
            self.failed.update(layer.tops)
        elif layer.kind in _JUDGES and self.absent.issuperset(names):
            if layer.kind == "SoftmaxWithLoss" and names == layer.bottoms[1:]:
                layer.kind, layer.bottoms, layer.tops = "Softmax", layer.bottoms[:1], layer.tops[:1] or [layer.name]
                self.layer(layer)
        else:
            hint = f", which shapes={{{names[0]!r}: (...)}} makes an input" if names[0] in self.absent else ""
            self.problem(layer, f"it reads {names[0]!r}{hint}")

    def problem(self, layer: Layer, text: str) -> None:
        """Note why a layer cannot be built."""
        self.problems.append(f"{layer.kind} {layer.name!r}: {text}")
        self.failed.update(layer.tops)


def _shapes_of_data(layer: Layer) -> list[list[int]]:
    """Return the shapes of the tops of a layer of data, as far as it has them."""
    if layer.kind == "Input":
        return [list(shape.dim) for shape in layer.message.input_param.shape]
    if layer.kind == "DummyData":
        given = layer.message.dummy_data_param
        older = zip(given.num, given.channels, given.height, given.width, strict=False)
        return [list(shape.dim) for shape in given.shape] or [list(lengths) for lengths in older]
    if layer.kind == "MemoryData":
        given = layer.message.memory_data_param
        return [[given.batch_size, given.channels, given.height, given.width], [given.batch_size]]
    return []
