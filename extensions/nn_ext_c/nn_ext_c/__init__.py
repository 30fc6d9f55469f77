"""C source for nn_core: `export` writes a graph as one pair of files that needs no library,
and `export_training` one that trains."""

from nn_ext_c.exporting import export as export
from nn_ext_c.exporting import export_source as export_source
from nn_ext_c.exporting import quantize as quantize
from nn_ext_c.source import Source as Source
from nn_ext_c.training import export_training as export_training
from nn_ext_c.training import export_training_source as export_training_source

__all__ = ["Source", "export", "export_source", "export_training", "export_training_source", "quantize"]
