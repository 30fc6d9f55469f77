"""The names of files in errors of what is built or set from their contents."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import HostMemoryError, NNCoreError, cut, escaped


@fitted
@contextmanager
def naming_file(source: Any) -> Iterator[None]:
    """Add the name of a file to errors of nn_core that lack it, and cut those that repeat much of its contents.

    What a file holds is checked by whoever takes it over, such as a solver or a function, which knows of no file.

    Args:
        source: The path of the file; anything else, such as an open file, has no name to add.

    Example:
        >>> from nn_core.ext import ArgumentError, naming_file
        >>> with naming_file("run/net.nnp"):
        ...     raise ArgumentError("affine: base_axis must be at least 1, got 0")
        Traceback (most recent call last):
        nn_core.errors.ArgumentError: affine: base_axis must be at least 1, got 0
          file: run/net.nnp
    """
    try:
        yield
    except (NNCoreError, MemoryError) as error:
        if not isinstance(source, (str, os.PathLike)):
            raise
        name, text = escaped(os.fspath(source)), cut(str(error))
        if isinstance(error, MemoryError) and name not in text:
            lack = "the file must fit into the memory of the host, got too little of it"
            raise HostMemoryError(f"{name}: {lack}" + (f"\n  {text}" if text else "")) from error
        if error.args and isinstance(error.args[0], str):
            error.args = (text if name in text else f"{text}\n  file: {name}", *error.args[1:])
        raise
