"""Shape rules, gradient rules and default arguments: what a function means without numbers.

Importing the package fills the tables of ``rules.registry``.
"""

from importlib import import_module
from importlib.util import find_spec

for _topic in (
    "activation", "arithmetic", "reduction", "linear", "convolution", "pooling", "normalization", "loss", "shape",
    "indexing", "random", "recurrent", "image", "quantization",
):  # fmt: skip
    if find_spec(f"nn_core.rules.{_topic}") is not None:
        import_module(f"nn_core.rules.{_topic}")
