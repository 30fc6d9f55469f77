"""Comparisons."""

import nn_core as nn
import nn_core.functions as F

x = nn.Variable((4,))
x.d = [1, 2, 3, 4]
y: nn.Variable = F.where(x > 2, x, 0 * x)
z: nn.Variable = (x <= 3) * x + (x >= 1) * (x < 2)
nn.forward_all([y, z])
both: nn.NdArray = x.data + x
