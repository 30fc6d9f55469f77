"""The check of a model against ONNX's definitions, without what runtimes do not ask for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import onnx

from nn_core.ext import FileFormatError
from nn_ext_onnx.importing.external import without_external

#: Operators that were deprecated as they were new; files have them. A domain that the checker does not know stands for them.
_DEPRECATED: Final = {"GroupNormalization": range(18, 21)}
_UNKNOWN: Final = "deprecated"


def check(model: onnx.ModelProto) -> None:
    """Check a model against the definitions; a graph needs no name, and outputs neither types nor shapes.

    Raises:
        FileFormatError: when it is not valid.
    """
    try:
        with _completed(model):
            onnx.checker.check_model(without_external(model))
    except (onnx.checker.ValidationError, RuntimeError, ValueError, TypeError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileFormatError(f"load: the model must be valid, got: {text}") from error


@contextmanager
def _completed(model: onnx.ModelProto) -> Iterator[None]:
    """Fill in what the checker wants and nobody reads, for a while: weights are not copied."""
    graph, n_imports = model.graph, len(model.opset_import)
    name, outputs = _given(graph, "name"), [entry.SerializeToString() for entry in graph.output]
    deprecated = [(node, _given(node, "domain")) for node in _deprecated(model)]
    try:
        graph.name = name or "graph"
        for entry in graph.output:
            _complete(entry)
        for node, _ in deprecated:
            node.domain = _UNKNOWN
        if deprecated:
            model.opset_import.add(domain=_UNKNOWN, version=1)
        yield
    finally:
        _restore(graph, "name", name)
        for entry, content in zip(graph.output, outputs, strict=True):
            entry.ParseFromString(content)
        for node, domain in deprecated:
            _restore(node, "domain", domain)
        del model.opset_import[n_imports:]


def _complete(entry: onnx.ValueInfoProto) -> None:
    kind = entry.type.WhichOneof("value")
    if kind is None or kind == "tensor_type":
        tensor = entry.type.tensor_type
        tensor.elem_type = tensor.elem_type or onnx.TensorProto.FLOAT
        if not tensor.HasField("shape"):
            tensor.shape.SetInParent()


def _deprecated(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    version = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    return [node for node in model.graph.node if version in _DEPRECATED.get(node.op_type, ()) and node.domain == ""]


def _restore(message: Any, field: str, content: str | None) -> None:
    if content is None:
        message.ClearField(field)
    else:
        setattr(message, field, content)


def _given(message: Any, field: str) -> str | None:
    return getattr(message, field) if message.HasField(field) else None
