"""The plugin module: the offers of this package to nn_core."""

from nn_core.ext import CommandInfo, hookimpl

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1,<0.2"


@hookimpl
def nn_core_commands() -> list[CommandInfo]:
    """Return the subcommand of ``nn-core``."""
    return [CommandInfo(name="serve", help="Serve a network of a file by HTTP.", target="nn_ext_serve.commands:serve")]
