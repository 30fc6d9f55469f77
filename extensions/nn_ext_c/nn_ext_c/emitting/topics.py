"""All emitters: importing this module fills the table."""

from importlib import import_module
from typing import Final

from nn_ext_c.emitting.registry import EMITTERS, Emitter

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
    "recurrent",
    "reduction",
    "shape",
)
#: Functions without inputs: what they give is written as a constant.
CONSTANTS: Final = ("Arange", "Constant", "Linspace")


def emitters() -> dict[str, Emitter]:
    """Return the emitter of each function that can be exported, by its name in files."""
    for topic in _TOPICS:
        import_module(f"nn_ext_c.emitting.{topic}")
    return EMITTERS


def written_functions() -> set[str]:
    """Return the functions that can be exported, by their names in files."""
    return {*emitters(), *CONSTANTS}
