"""Conformance of the backend cpu: ``pytest --backend=cpu extensions/nn_ext_cpu/tests``; known failures in xfails.txt."""

from nn_core.testing.conformance import *  # noqa: F403

BACKENDS = ("cpu",)
