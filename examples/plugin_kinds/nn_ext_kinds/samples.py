"""Calls of the operator that the conformance kit tries."""

from nn_core.testing import sample
from nn_core.testing.drawing import normal

sample("kinds.CountPositive", "rows", normal(3, 4))
sample("kinds.CountPositive", "nothing", normal(0, 4))
