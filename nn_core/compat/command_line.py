"""NNabla's command line: ``nn-core run nnabla_cli`` takes its commands and options."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nn_core.errors import ArgumentError

#: The name of the program.
PROGRAM: Final = "nnabla_cli"
_MODULES: Final = ("nnabla.utils.cli", "nnabla.utils.cli.cli")
#: Commands that have other names here.
_RENAMED: Final = {"compare_with_cpu": ("compare", "-C2", "cpu"), "version": ("--version",)}


def is_command_line(program: str, is_module: bool) -> bool:
    """Return whether a script or a module is NNabla's command line; a file of that name comes first."""
    return program in _MODULES if is_module else program == PROGRAM and not Path(program).exists()


def as_ours(arguments: Sequence[str]) -> list[str]:
    """Return the arguments for ``nn-core``.

    Raises:
        ArgumentError: for several processes, which are started by another command.

    Example:
        >>> as_ours(["compare_with_cpu", "-c", "a.nnp"])
        ['compare', '-C2', 'cpu', '-c', 'a.nnp']
    """
    if arguments and arguments[0] in ("-m", "--mpi"):
        raise ArgumentError(
            f"{PROGRAM}: {arguments[0]} must be left out, got it before the command\n"
            "  hint: several processes are started by nn-core launch -n 4 program.py"
        )
    return [*_RENAMED.get(arguments[0], arguments[:1]), *arguments[1:]] if arguments else ["--help"]
