"""Exit codes: 0 when a command did what it was asked, 1 with a sentence when it failed, 2 for wrong options."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import click

from nn_core.ext import NNCoreError

P = ParamSpec("P")


def clean_failures(function: Callable[P, None]) -> Callable[P, None]:
    """Let errors of files, networks and missing libraries end a command with their message and not with a traceback."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except (NNCoreError, OSError, ImportError) as error:
            raise click.ClickException(str(error)) from error

    return run
