"""Every function on the CPU backend; see `nn_core.testing`."""

from nn_core.testing.conformance import *  # noqa: F403

BACKENDS = ("cpu",)
