"""Reference kernels: what a function means with numbers, in plain array code over a namespace `xp`.

Importing the package fills the tables of ``reference.registry``.
"""

from importlib import import_module
from importlib.util import find_spec

for _topic in (
    "activation", "arithmetic", "reduction", "linear", "convolution", "pooling", "normalization", "loss", "shape",
    "indexing", "random", "recurrent", "image", "quantization",
):  # fmt: skip
    if find_spec(f"nn_core.reference.{_topic}") is not None:
        import_module(f"nn_core.reference.{_topic}")
