"""Refuse the commands of NNabla that have lost their purpose."""

import click

_SERVICE = "it serves the web service Neural Network Console, which nn_core does not talk to"


_NO_OPTIMIZING = "networks are optimized when they run, and files keep what was written"


def _refused(name: str, reason: str, instead: str) -> click.Command:
    @click.command(name, context_settings={"ignore_unknown_options": True}, help=f"Refused: {reason}.\n\n{instead}")
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def command(arguments: tuple[str, ...]) -> None:
        raise click.ClickException(f"{name}: {reason}, got {len(arguments)} arguments\n  hint: {instead}")

    return command


optimize = _refused("optimize", _NO_OPTIMIZING, "nn-core infer runs a network as it is")
upload = _refused("upload", _SERVICE, "nn-core conv_dataset makes a cache that can be copied to another machine")
create_tar = _refused("create_tar", _SERVICE, "tar -cf dataset.tar FOLDER packs a CSV file with the files beside it")
