"""Functions of onnxruntime on images whose channels are last: models that were optimized for a device have them."""

from dataclasses import replace
from typing import Any, Final

import nn_core.functions as F
from nn_ext_onnx.importing.host import as_levels
from nn_ext_onnx.importing.registry import Converter, Made, Node, find, operator
from nn_ext_onnx.importing.values import Value

_DOMAINS: Final = ("com.microsoft",)
#: The operator set of the functions that are applied.
_OPSET: Final = 13


def with_channels_last(convert: Converter) -> Converter:
    """Return a converter of images whose channels are last, from one of images whose channels are second."""

    def converted(node: Node) -> Made:
        n = node.ndim
        first = F.transpose(node.x, (0, n - 1, *range(1, n - 1)))
        value = Value(node[0].name, node[0].dtype, variable=first, sources=node[0].sources)
        inner = replace(node, inputs=[value, *node.inputs[1:]])
        y: Any = convert(inner)
        node.dtypes = inner.dtypes
        return F.transpose(y, (0, *range(2, n), 1))

    return converted


def _plain(kind: str) -> Converter:
    """Return the converter of a function of ONNX."""

    def convert(node: Node) -> Made:
        found = find("", kind, _OPSET)
        assert found is not None
        return found(node)

    return convert


@operator("NhwcConv", domains=_DOMAINS)
def _conv(node: Node) -> Made:
    """Convolve; the axes of the weight are in the order of Conv."""
    node.gives(node[0].dtype)
    return with_channels_last(_plain("Conv"))(node)


@operator("NhwcMaxPool", domains=_DOMAINS, takes_whole=True)
def _max_pool(node: Node) -> Made:
    """Return the largest levels."""
    node.gives(node[0].dtype)
    y: Any = with_channels_last(_plain("MaxPool"))(node)
    return as_levels(y, node[0].dtype)
