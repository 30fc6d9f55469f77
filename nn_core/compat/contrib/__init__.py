"""NNabla's package ``contrib``, of which programs use the contexts."""

from nn_core.compat.contrib import context as context
