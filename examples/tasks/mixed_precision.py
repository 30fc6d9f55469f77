"""Train in float16 with a loss scale that adapts."""

import nn_core as nn
from nn_core import F, S, layers

net = nn.Sequential(layers.Affine(16), F.tanh, layers.Affine(1))
with nn.context_scope("auto:half"):
    x = F.randn(shape=(64, 2))
    loss = F.mean((net(x) - x[:, :1]) ** 2)
solver, scale = S.Adam(0.02), nn.training.LossScale()
for _ in range(100):
    solver.minimize(loss, loss_scale=scale)
assert loss.item() < 0.2
