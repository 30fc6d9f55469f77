"""Contexts."""

import nn_core as nn
import nn_core.functions as F

context = nn.Context(["reference"])
with nn.context_scope(context):
    y: nn.Variable = F.relu(nn.Variable((2,)))
current: nn.Context = nn.get_current_context()
backends: tuple[str, ...] | list[str] = list(context.backend)
