"""The logger of nn_core, named as NNabla's users know it.

Without any setup the standard library prints warnings to stderr; ``logging.basicConfig(level=logging.INFO)`` shows
more. NN_CORE_LOG_LEVEL does the same from outside of the program, for the messages of nn_core alone.
"""

import logging

from nn_core.settings import settings

#: All messages of nn_core.
logger = logging.getLogger("nn_core")


def follow_settings(target: logging.Logger, level: str | None) -> None:
    """Print messages of `target` from `level` on to stderr; None leaves it to the program's own setup."""
    if level is not None:
        target.setLevel(level)
        target.addHandler(logging.StreamHandler())
        target.propagate = False


follow_settings(logger, settings().log_level)
