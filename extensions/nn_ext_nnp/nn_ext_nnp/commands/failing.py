"""Exit codes: 0 when a command did what it was asked, 1 with a sentence when it failed, 2 for wrong options."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

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


def refused_options(reason: str, *names: tuple[str, ...], are_flags: bool = False) -> Callable[[Any], Any]:
    """Know options of NNabla that nn_core has no use for, leave them out of the help, and say why when one is given."""

    def refuse(_: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value not in (None, False):
            raise click.UsageError(f"{parameter.opts[-1]}: {reason}")

    def add(command: Any) -> Any:
        for spelled in names:
            command = click.option(*spelled, is_flag=are_flags, hidden=True, expose_value=False, callback=refuse)(command)
        return command

    return add
