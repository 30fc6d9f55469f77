"""Measure which functions of a training step take the time."""

import nn_core as nn
from nn_core import PF, F, S
from nn_core.utils.profiler import Profiler

x = F.randn(shape=(4, 3, 8, 8))
loss = F.mean(PF.affine(F.relu(PF.convolution(x, 8, 3, pad=1)), 10) ** 2)
solver = S.Adam(0.01)
solver.set_parameters(nn.get_parameters())
with Profiler() as profiler:
    for _ in range(3):
        solver.minimize(loss)
        profiler.step()
table = str(profiler)
print(table)
assert "convolution" in table.lower()
