"""Lists of functions: of NNP files, of those in a file, of NNB files."""

from pathlib import Path
from typing import Final

import click

from nn_core.ext import ArgumentError, atomic_writer, say
from nn_ext_nnp.commands.conversion import imported
from nn_ext_nnp.commands.failing import clean_failures, refused_options
from nn_ext_nnp.nnb.codes import codes_of
from nn_ext_nnp.nnb.functions import by_name, reason_against
from nn_ext_nnp.schema import functions

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NO_TARGETS: Final = "restrictions of targets are not read; docs/network_formats.md lists what each format can hold"


@click.command("function_info")
@click.argument("files", nargs=-1, type=_FILE)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write to.")
@click.option("-f", "--all_support", type=click.Choice(["NNP", "NNB"]), help="The functions of a format, without FILES.")
@click.option("-x", "--exclude", default="", help="Functions to leave out, separated by commas.")
@click.option("-q", "--query", help="Describe this function.")
@click.option("--api", type=int, help="List the functions of NNB files up to this API level, with codes of their settings.")
@click.option("--nnp-no-expand-network", "keep_loops", is_flag=True, help="Leave loops as they are.")
@refused_options(_NO_TARGETS, ("-c", "--config"))
@refused_options(_NO_TARGETS, ("-t", "--target"), are_flags=True)
@clean_failures
def function_info(
    files: tuple[Path, ...],
    output: Path | None,
    all_support: str | None,
    exclude: str,
    query: str | None,
    api: int | None,
    keep_loops: bool,
) -> None:
    """List functions: of FILES, of a format, or all of NNP files.

    Example: nn-core function_info network.nnp
    """
    if query is not None:
        lines = _description(query)
    elif api is not None:
        lines = [f"{name}_{''.join(codes_of(name)) or 'Empty'}" for name, entry in by_name().items() if entry.level <= api]
    else:
        lines = _names(files, all_support, keep_loops)
    left_out = {name.strip() for name in exclude.split(",") if name.strip()}
    if left_out - set(functions()):
        raise ArgumentError(f"function_info: --exclude must name functions, got {sorted(left_out - set(functions()))[0]!r}")
    text = "".join(f"{line}\n" for line in lines if line.partition("_")[0] not in left_out)
    if output is None:
        say(text, newline=False)
        return
    with atomic_writer(output) as file:
        file.write(text.encode())


def _names(files: tuple[Path, ...], support: str | None, keep_loops: bool) -> list[str]:
    if files:
        networks = imported(files, None, keep_loops=keep_loops).proto.network
        return list(dict.fromkeys(function.type for network in networks for function in network.function))
    return list(by_name() if support == "NNB" else functions())


def _description(name: str) -> list[str]:
    kind = functions().get(name)
    if kind is None:
        raise ArgumentError(f"function_info: --query must name a function of NNP files, got {name!r}")
    entry = by_name().get(name)
    nnb = f"identifier {entry.number}, API level {entry.level}" if entry else f"not written: {reason_against(name)}"
    codes = f", settings {''.join(codes_of(name)) or 'Empty'}" if entry else ""
    return [name, *(f"  {setting}: {code}" for setting, code in kind.settings.items()), f"  NNB: {nnb}{codes}"]
