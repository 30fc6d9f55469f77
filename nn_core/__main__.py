"""The command ``nn-core``, also ``python -m nn_core``: what is installed, what works, and who runs a function."""

import platform
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from nn_core import installed
from nn_core.context import Context, get_current_context
from nn_core.dispatch.admission import core_version
from nn_core.dispatch.doctor import Finding, examine
from nn_core.dispatch.explain import explain
from nn_core.dispatch.plugins import State, packages
from nn_core.errors import NNCoreError
from nn_core.settings import settings

_COLUMNS = ("plugin", "package", "state", "remarks", "devices", "what to do")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Look at an installation of nn_core."""


@main.command()
@click.argument("names", nargs=-1)
def doctor(names: Sequence[str]) -> None:
    """Try every installed plugin, and those called NAMES, and say what came of it.

    The backend that programs use when they name none is shown even where it is missing. The exit status is 1 when a
    plugin is broken, or one of NAMES cannot be used.
    """
    findings = examine([*names, *{installed.PREFERRED_BACKEND} - {*names, *installed.entry_points()}])
    click.echo(_table(findings))
    wanted = [finding for finding in findings if finding.name in names and finding.state is not State.LOADED]
    if wanted or any(finding.state is State.BROKEN for finding in findings):
        sys.exit(1)


@main.command()
def info() -> None:
    """Print versions, settings and installed plugins; imports none of them."""
    click.echo(f"nn-core {core_version()}, Python {platform.python_version()}, numpy {np.__version__}")
    for name, value in asdict(settings()).items():
        click.echo(f"NN_CORE_{name.upper()}: {value}")
    for name, entry_points in installed.entry_points().items():
        click.echo(f"plugin {name}: {' and '.join(packages(entry_points))}")
    click.echo(f"default context: {get_current_context()}")


@main.command("explain")
@click.argument("function")
@click.option("--backend", "-b", multiple=True, help="An entry of the priority list, such as cpu:float; best first.")
def explain_function(function: str, backend: Sequence[str]) -> None:
    """Tell which backends have a kernel for FUNCTION (Affine or affine), in the order in which they are asked."""
    try:
        click.echo(explain(function, Context(backend)))
    except NNCoreError as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=lambda: Path(sysconfig.get_path("purelib")),
    help="Where to write; by default beside the installed packages, where type checkers look.",
)
def stubs(folder: Path) -> None:
    """Write type stubs of nn_core.functions with the operators of the installed plugins."""
    from nn_core.stubs import write_stubs  # the other commands do without the functions

    click.echo(write_stubs(folder))


def _table(findings: Sequence[Finding]) -> str:
    rows = [
        (row.name, row.package, row.state.value, row.reason.partition("\n")[0], row.devices, row.advice)
        for row in findings
    ]
    try:
        from rich.console import Console
        from rich.table import Column, Table
        from rich.text import Text
    except ImportError:
        return _plain_table(rows)
    table = Table(*(Column(title, overflow="fold") for title in _COLUMNS))
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(width=None if sys.stdout.isatty() else 160)
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip()


def _plain_table(rows: Sequence[Sequence[str]]) -> str:
    lines = [[part.replace("\n", ", ") for part in row] for row in (_COLUMNS, *rows)]
    widths = [max(len(row[column]) for row in lines) for column in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(part.ljust(width) for part, width in zip(row, widths, strict=True)).rstrip() for row in lines
    )


if __name__ == "__main__":
    main()
