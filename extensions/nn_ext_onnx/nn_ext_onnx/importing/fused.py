"""Functions of onnxruntime that stand for several of ONNX: optimized models have them."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Made, Node, find, operator
from nn_ext_onnx.importing.values import UnsupportedError

_DOMAINS: Final = ("com.microsoft",)
#: The operator set of the functions that are fused.
_OPSET: Final = 13


def _exact_gelu(x: nn.Variable) -> nn.Variable:
    return 0.5 * x * (1 + F.erf(x * math.sqrt(0.5)))


def _with_bias(node: Node) -> nn.Variable:
    bias = node.optional_variable(1)
    return node.x if bias is None else node.x + bias


@operator("Gelu", "BiasGelu", domains=_DOMAINS)
def _gelu(node: Node) -> nn.Variable:
    return _exact_gelu(_with_bias(node))


@operator("FastGelu", domains=_DOMAINS)
def _fast_gelu(node: Node) -> nn.Variable:
    return F.gelu(_with_bias(node))


@operator("QuickGelu", domains=_DOMAINS)
def _quick_gelu(node: Node) -> nn.Variable:
    return node.x * F.sigmoid(node.x * node.attr("alpha", 1.702))


@operator("FusedMatMul", domains=_DOMAINS)
def _fused_matmul(node: Node) -> nn.Variable:
    if node.attr("transBatchA", 0) or node.attr("transBatchB", 0):
        raise UnsupportedError("transBatchA and transBatchB")
    a, b = node.variable(0), node.variable(1)
    if min(a.ndim, b.ndim) < 2:
        raise UnsupportedError(f"operands with {a.ndim} and {b.ndim} axes")
    y = F.batch_matmul(a, b, bool(node.attr("transA", 0)), bool(node.attr("transB", 0)))
    return y if node.attr("alpha", 1.0) == 1 else y * node.attr("alpha")


_ACTIVATIONS: Final[dict[str, Callable[..., nn.Variable]]] = {
    "": lambda x: x,
    "Relu": F.relu,
    "Sigmoid": F.sigmoid,
    "Tanh": F.tanh,
    "LeakyRelu": lambda x, alpha=0.01: F.leaky_relu(x, alpha),
    "Clip": lambda x, low, high: F.minimum_scalar(F.maximum_scalar(x, low), high),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: F.minimum_scalar(F.maximum_scalar(x * alpha + beta, 0.0), 1.0),
}


def _activated(node: Node, y: nn.Variable, settings: Sequence[float]) -> nn.Variable:
    kind = node.attr("activation", "")
    if kind not in _ACTIVATIONS:
        raise UnsupportedError(f"activation {kind!r}")
    return _ACTIVATIONS[kind](y, *settings)


def _plain(node: Node, kind: str) -> nn.Variable:
    convert = find("", kind, _OPSET)
    assert convert is not None
    made: Any = convert(node)
    return made


@operator("FusedGemm", domains=_DOMAINS)
def _fused_gemm(node: Node) -> nn.Variable:
    given = [node.attr(f"activation_{name}") for name in ("alpha", "beta", "gamma")]
    return _activated(node, _plain(node, "Gemm"), [setting for setting in given if setting is not None])


@operator("FusedConv", domains=_DOMAINS)
def _fused_conv(node: Node) -> nn.Variable:
    y, added = _plain(node, "Conv"), node.optional_variable(3)
    return _activated(node, y if added is None else y + added, node.attr("activation_params") or [])


# Normalizations of sums ---------------------------------------------------------------------------------------------


def statistics(node: Node, x: nn.Variable, is_centred: bool) -> tuple[nn.Variable, nn.Variable, nn.Variable]:
    """Return what is normalized less its mean, the mean, and one over the standard deviation, each row for itself."""
    mean = F.mean(x, axis=-1, keepdims=True)
    rest = x - mean if is_centred else x
    return rest, mean, F.pow_scalar(F.mean(rest * rest, axis=-1, keepdims=True) + node.attr("epsilon", 1e-12), -0.5)


def _skipping(is_centred: bool) -> Callable[[Node], Made]:
    """Build the normalization of a sum: of input, skip and bias, scaled by gamma and, where it is centred, shifted by beta."""

    def convert(node: Node) -> Made:
        beta, bias = (
            (node.optional_variable(3), node.optional_variable(4)) if is_centred else (None, node.optional_variable(3))
        )
        total = node.x + node.variable(1)
        total = total if bias is None else total + bias
        rest, mean, inverse = statistics(node, total, is_centred)
        y = rest * inverse * node.variable(2)
        return [y if beta is None else y + beta, mean, inverse, total][: len(node.proto.output)]

    return convert


operator("SkipLayerNormalization", domains=_DOMAINS)(_skipping(is_centred=True))
operator("SkipSimplifiedLayerNormalization", domains=_DOMAINS)(_skipping(is_centred=False))


@operator("SimplifiedLayerNormalization", domains=("", "com.microsoft"))
def _simplified(node: Node) -> Made:
    if node.attr("axis", -1) not in (-1, node.ndim - 1):
        raise UnsupportedError(f"axis {node.attr('axis')}")
    rest, _, inverse = statistics(node, node.x, is_centred=False)
    return [rest * inverse * node.variable(1), inverse][: len(node.proto.output)]
