"""Train with a decay of the weights, but not of the biases."""

import nn_core as nn
from nn_core import F, S, layers

net = nn.Sequential(layers.Affine(16), F.tanh, layers.Affine(1))
x = F.randn(shape=(64, 2))
loss = F.mean((net(x) - x[:, :1]) ** 2)
solver = S.AdamW(0.02, wd=0.01)
solver.set_parameters(net, groups={"*/b": {"weight_decay_multiplier": 0}})
for _ in range(100):
    solver.minimize(loss)
assert loss.item() < 0.2
