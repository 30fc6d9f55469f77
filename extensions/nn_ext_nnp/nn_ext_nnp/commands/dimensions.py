"""The option that gives lengths to axes which files of other formats name."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from nn_core.ext import ArgumentError

_C = TypeVar("_C", bound=Callable[..., Any])
_HELP: Final = (
    "The length of an axis that a file of another format, such as .onnx, names; the first axis is the number of samples."
)


def dimension_option(command: _C) -> _C:
    """Add the option --dimension, which may be given several times."""
    made: _C = click.option("--dimension", "dimensions", multiple=True, metavar="NAME=LENGTH", help=_HELP)(command)
    return made


def lengths_of(given: Sequence[str]) -> dict[str, int]:
    """Return the lengths by name.

    Raises:
        ArgumentError: when one is not written as NAME=LENGTH.
    """
    found = {}
    for text in given:
        name, _, length = text.partition("=")
        if not name or not length.isdecimal():
            raise ArgumentError(f"--dimension must be NAME=LENGTH, got {text!r}")
        found[name] = int(length)
    return found
