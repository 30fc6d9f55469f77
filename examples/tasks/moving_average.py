"""Keep a moving average of the weights and evaluate with it."""

import nn_core as nn
from nn_core import PF, F, S
from nn_core.training import MovingAverage

x = F.randn(shape=(4, 3))
loss = F.mean(F.squared_error(PF.affine(x, 1), F.sum(x, axis=1, keepdims=True) + F.randn(shape=(4, 1))))
solver = S.Sgd(0.2)
average = MovingAverage(nn.get_parameters(), decay=0.95)
for _ in range(200):
    solver.minimize(loss)
    average.update()
with average.applied():
    assert abs(nn.get_parameters()["affine/W"].d - 1).max() < 0.5
