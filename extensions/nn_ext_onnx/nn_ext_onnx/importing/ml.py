"""Operators of classical models, the domain ai.onnx.ml: scaling, linear models, features."""

from typing import Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.values import UnsupportedError

DOMAIN: Final = ("ai.onnx.ml",)
_FLOAT: Final = np.dtype("float32")
_INT: Final = np.dtype("int64")


def row(values: object) -> nn.Variable:
    """Return numbers as floating-point ones with an axis in front."""
    return nn.Variable.from_numpy_array(np.asarray(values, dtype=np.float32)[None])


def transformed(node: Node, scores: nn.Variable) -> nn.Variable:
    """Return scores as the attribute `post_transform` says."""
    kind = node.attr("post_transform", "NONE")
    if kind == "SOFTMAX":
        return F.softmax(scores, axis=-1)
    if kind == "LOGISTIC":
        return F.sigmoid(scores)
    if kind != "NONE":
        raise UnsupportedError(f"post_transform {kind!r}")
    return scores


def labels_of(node: Node, name: str = "classlabels_ints") -> list[int]:
    """Return the labels of classes, which must be integers."""
    found = node.attr(name)
    if not found:
        raise UnsupportedError("labels that are texts")
    return list(found)


def label_at(labels: list[int], place: nn.Variable) -> nn.Variable:
    """Return the label at each place."""
    return F.gather(nn.Variable.from_numpy_array(np.asarray(labels, np.int64)), place, axis=0)


@operator("Scaler", domains=DOMAIN, takes_whole=True)
def _scaler(node: Node) -> nn.Variable:
    node.gives(_FLOAT)
    offset, scale = node.attr("offset", [0.0]), node.attr("scale", [1.0])
    return (node.x - row(offset)) * row(scale)


@operator("Normalizer", domains=DOMAIN, takes_whole=True)
def _normalizer(node: Node) -> nn.Variable:
    """Divide each row by its norm; rows of zeros stay."""
    node.gives(_FLOAT)
    kind = node.attr("norm", "MAX")
    if kind == "MAX":
        length = F.max(node.x, axis=-1, keepdims=True)
    elif kind in ("L1", "L2"):
        length = F.norm(node.x, p=int(kind[1]), axis=-1, keepdims=True)
    else:
        raise UnsupportedError(f"norm {kind!r}")
    return node.x / F.where(F.equal_scalar(length, 0.0), F.constant(1.0, length.shape), length)


@operator("Binarizer", domains=DOMAIN, takes_whole=True)
def _binarizer(node: Node) -> nn.Variable:
    node.gives(_FLOAT)
    return F.greater_scalar(node.x, node.attr("threshold", 0.0))


@operator("Imputer", domains=DOMAIN)
def _imputer(node: Node) -> nn.Variable:
    """Replace numbers of one value, which may be NaN."""
    values, replaced = node.attr("imputed_value_floats"), node.attr("replaced_value_float", 0.0)
    if values is None:
        raise UnsupportedError("integers")
    is_missing = F.isnan(node.x) if np.isnan(replaced) else F.equal_scalar(node.x, replaced)
    return F.where(is_missing, F.broadcast(row(values), node.shape), node.x)


@operator("FeatureVectorizer", domains=DOMAIN, takes_whole=True)
def _feature_vectorizer(node: Node) -> nn.Variable:
    node.gives(_FLOAT)
    parts = [node.variable(place) for place in range(len(node.inputs))]
    sizes = node.attr("inputdimensions") or [part.shape[-1] for part in parts]
    if any(part.ndim != 2 or part.shape[1] != size for part, size in zip(parts, sizes, strict=True)):
        raise UnsupportedError(f"parts of shapes {[part.shape for part in parts]} for {sizes} features")
    return F.concatenate(*parts, axis=1)


@operator("ArrayFeatureExtractor", domains=DOMAIN, takes_whole=True)
def _array_feature_extractor(node: Node) -> nn.Variable:
    """Pick columns."""
    x = node.x if node.ndim > 1 else F.reshape(node.x, (1, -1))
    return F.gather(x, F.reshape(node.variable(1), (-1,)), axis=x.ndim - 1)


@operator("LinearRegressor", domains=DOMAIN, takes_whole=True)
def _linear_regressor(node: Node) -> nn.Variable:
    node.gives(_FLOAT)
    return transformed(node, _linear(node, node.attr("targets", 1)))


@operator("LinearClassifier", domains=DOMAIN, takes_whole=True)
def _linear_classifier(node: Node) -> Made:
    labels = labels_of(node)
    node.gives(_INT, _FLOAT)
    scores = _linear(node, len(labels))
    return [label_at(labels, F.max(scores, axis=1, only_index=True)), transformed(node, scores)]


def _linear(node: Node, n_outputs: int) -> nn.Variable:
    coefficients = np.asarray(node.attr("coefficients"), np.float32)
    if node.ndim != 2 or coefficients.size != n_outputs * node.shape[1]:
        raise UnsupportedError(f"{coefficients.size} coefficients for {n_outputs} results of x {node.shape}")
    weight = nn.Variable.from_numpy_array(coefficients.reshape(n_outputs, -1).T.copy())
    y = F.affine(node.x, weight)
    given = node.attr("intercepts")
    return y + row(given) if given else y
