"""The context of commands, and the display of their progress."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

import click

import nn_core as nn
from nn_core.ext_utils import get_extension_context

T = TypeVar("T")


def context_named(name: str) -> nn.Context:
    """Return the context of a backend and a device: "cpu", "cudnn:1"."""
    backend, _, device = name.partition(":")
    return get_extension_context(backend, device_id=device or "0")


def choose_context(name: str | None) -> None:
    """Run in this context from now on; None: in the one that there is."""
    if name is not None:
        nn.set_default_context(context_named(name))


def watched(items: Iterable[T], length: int, label: str) -> Iterator[T]:
    """Yield the items, with a progress bar on the error stream where that is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    with click.progressbar(items, length=length, label=label, file=sys.stderr) as bar:
        yield from bar
