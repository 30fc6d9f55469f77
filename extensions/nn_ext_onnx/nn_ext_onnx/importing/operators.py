"""All converters of operators: they are registered when their modules are imported."""

from importlib import import_module
from typing import Final

_TOPICS: Final = (
    "activation",
    "arithmetic",
    "attention",
    "channels_last",
    "control",
    "convolution",
    "detection",
    "fused",
    "image",
    "indexing",
    "linear",
    "ml",
    "normalization",
    "pooling",
    "quantization",
    "quantized",
    "random",
    "recurrent",
    "reduction",
    "sampling",
    "sequences",
    "shape",
    "trees",
    "windows",
)


def load_operators() -> None:
    """Fill the table."""
    for topic in _TOPICS:
        import_module(f"nn_ext_onnx.importing.{topic}")
