"""Shapes."""

import nn_core as nn
import nn_core.functions as F

x = nn.Variable((2, 3, 4))
parts: tuple[nn.Variable, ...] = F.split(x, axis=1)
whole: nn.Variable = F.concatenate(*parts, axis=0)
stacked: nn.Variable = F.stack(*parts, axis=1)
flat: nn.Variable = F.flatten(x, 1)
wide: nn.Variable = F.expand_dims(F.squeeze(flat[0:1]), 0)
same: nn.Variable = F.broadcast(F.reshape(x, (2, 3, 4, 1)), (2, 3, 4, 5))
turned: nn.Variable = F.transpose(x, (2, 0, 1))
clipped: nn.Variable = F.clip(x, 0, 1) + F.sqrt(F.square(x)) + F.rsqrt(x + 1)
product: nn.Variable = F.matmul(flat, flat.T)
