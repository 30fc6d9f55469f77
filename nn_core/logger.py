"""The logger of nn_core. Nothing is configured on import: a program that wants to see messages sets up `logging`."""

import logging

#: All messages of nn_core; ``logging.basicConfig(level=logging.INFO)`` shows them.
logger = logging.getLogger("nn_core")
logger.addHandler(logging.NullHandler())
