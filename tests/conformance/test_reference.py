"""Every function of the core, its rules and its reference kernel; the extensions have files of their own like this."""

from nn_core.testing.conformance import *  # noqa: F403

BACKENDS = ("reference",)
