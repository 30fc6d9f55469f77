"""The plugin module: the offers of this package to nn_core."""

from nn_core.ext import CommandInfo, FileFormatInfo, KnownOperators, hookimpl

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1,<0.2"
#: The arguments and inputs of operators that are written; calls that set others are refused.
KNOWN_OPERATORS = KnownOperators("0.1")


@hookimpl
def nn_core_file_formats() -> list[FileFormatInfo]:
    """Return sources of C."""
    return [
        FileFormatInfo(
            name="c",
            description="networks as C source without a library, for devices",
            extensions=(".c",),
            write_network="nn_ext_c:export",
        )
    ]


@hookimpl
def nn_core_commands() -> list[CommandInfo]:
    """Subcommands of ``nn-core``."""
    return [CommandInfo(name="export-c", help="Write a network of a file as C source.", target="nn_ext_c.commands:export_c")]
