"""ONNX for nn_core: `export` writes graphs as models."""

from nn_ext_onnx.exporting.models import export as export
from nn_ext_onnx.exporting.models import export_model as export_model

__all__ = ["export", "export_model"]
