"""Every function on the cuDNN backend, skipped with the reason of the probe without a device; see `nn_core.testing`."""

from nn_core.testing.conformance import *  # noqa: F403

BACKENDS = ("cudnn",)
