"""All converters: importing this module fills the table."""

from importlib import import_module
from typing import Final

from nn_ext_onnx.exporting.registry import CONVERTERS, Converter

_TOPICS: Final = (
    "activation",
    "arithmetic",
    "attention",
    "convolution",
    "image",
    "indexing",
    "linear",
    "loss",
    "normalization",
    "pooling",
    "quantization",
    "random",
    "recurrent",
    "reduction",
    "shape",
)


def converters() -> dict[str, Converter]:
    """Return the converter of each function that can be exported, by its name in files."""
    for topic in _TOPICS:
        import_module(f"nn_ext_onnx.exporting.{topic}")
    return CONVERTERS
