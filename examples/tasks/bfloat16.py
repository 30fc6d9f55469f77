"""Train with activations in bfloat16 and parameters in float32."""

import nn_core as nn
from nn_core import F, S, layers

net = nn.Sequential(layers.Affine(16), F.tanh, layers.Affine(1))
x = F.randn(shape=(64, 2))
with nn.context_scope("auto:bfloat16"):
    loss = F.mean((net(x) - x[:, :1]) ** 2)
solver = S.Adam(0.02)
losses = [solver.minimize(loss).item() for _ in range(80)]
assert losses[-1] < 0.5 * losses[0]
