"""C source for nn_core: `export` writes a graph as one pair of files that needs no library."""

from nn_ext_c.exporting import export as export
from nn_ext_c.exporting import export_source as export_source
from nn_ext_c.exporting import quantize as quantize
from nn_ext_c.source import Source as Source

__all__ = ["Source", "export", "export_source", "quantize"]
