"""Attention."""

import nn_core as nn
import nn_core.parametric_functions as PF

q = nn.Variable((3, 2, 8))
y, weights = PF.multi_head_attention(q, q, q, num_heads=2)
z: nn.Variable = PF.transformer_encode(q, 8, 2)
tokens: nn.Variable = PF.embed(nn.Variable((2, 3)), 100, 8)
