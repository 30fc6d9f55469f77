"""Every function on the cuDNN backend; without a device it skips with the reason of the probe. See `nn_core.testing`."""

from nn_core.testing.conformance import *  # noqa: F403

BACKENDS = ("cudnn",)
