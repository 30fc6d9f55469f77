"""The admission test of engines on threads."""

from nn_core.testing.engines import *  # noqa: F403
