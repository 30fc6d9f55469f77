"""Text for a terminal that may repeat what files and plugins say."""

from nn_core.errors import escaped


def say(text: object = "", *, newline: bool = True, to_stderr: bool = False) -> None:
    """Print text of a command, with escapes for characters that a terminal would act on.

    Names in files may hold sequences that colour, move or hide what is printed, or set the title of a window.

    Args:
        text: What is printed; lines and tabs stay as they are.
        newline: Whether a line end follows.
        to_stderr: Whether it goes to the standard error output.

    Example:
        >>> from nn_core.ext import say
        >>> say("a name: \\x1b[31mred")
        a name: \\x1b[31mred
    """
    import click  # the engine does without it

    click.echo(escaped(str(text)), nl=newline, err=to_stderr)
