"""ONNX for nn_core: `export` writes graphs as models, `load` builds graphs of models."""

from nn_ext_onnx.exporting.models import export as export
from nn_ext_onnx.exporting.models import export_model as export_model
from nn_ext_onnx.importing.models import Network as Network
from nn_ext_onnx.importing.models import load as load
from nn_ext_onnx.importing.module import OnnxModule as OnnxModule

__all__ = ["Network", "OnnxModule", "export", "export_model", "load"]
