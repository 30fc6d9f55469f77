"""The command ``nn-core sizes``."""

import click

import nn_core as nn


@click.command()
@click.argument("path", type=click.Path(exists=True))
def sizes(path: str) -> None:
    """Print name and shape of each parameter in the file PATH."""
    with nn.parameter_scope("", scope={}):
        nn.load_parameters(path)
        for name, parameter in nn.get_parameters(grad_only=False).items():
            click.echo(f"{name} {parameter.shape}")
