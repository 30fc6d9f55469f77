"""Bound the norm of all gradients together before each update."""

import numpy as np

from nn_core import PF, F, S

x = F.randn(100, 100, shape=(8, 4))
loss = F.mean(F.squared_error(PF.affine(x, 1), F.sum(x, axis=1, keepdims=True)))
solver = S.Momentum(0.01)
for _ in range(5):
    solver.minimize(loss, clip_norm=1.0)
assert np.isclose(solver.grad_norm(), 1, rtol=1e-3)
