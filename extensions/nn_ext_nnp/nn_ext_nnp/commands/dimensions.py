"""The option that gives lengths to axes which files of other formats name."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

_C = TypeVar("_C", bound=Callable[..., Any])
_HELP: Final = (
    "The length of an axis that a file of another format, such as .onnx, names; the first axis is the number of samples."
)


def dimension_option(command: _C) -> _C:
    """Add the option --dimension, which may be given several times."""
    made: _C = click.option("--dimension", "dimensions", multiple=True, metavar="NAME=LENGTH", help=_HELP)(command)
    return made
