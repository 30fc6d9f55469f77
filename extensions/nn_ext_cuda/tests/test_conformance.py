"""Every function on the CUDA backend; see `nn_core.testing`. Without a device it skips with the reason of the probe."""

from nn_core.testing.conformance import *  # noqa: F403

BACKENDS = ("cuda",)
