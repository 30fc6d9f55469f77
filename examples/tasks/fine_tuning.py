"""Load trained layers, freeze them, and train a new last layer."""

import numpy as np

import nn_core as nn
from nn_core import PF, F, S

PF.affine(nn.Variable((1, 4)), 16, name="features")
nn.save_parameters("trained.h5")
nn.clear_parameters()

nn.load_parameters("trained.h5")
x = nn.Variable.from_numpy_array(np.random.default_rng(0).standard_normal((32, 4)))
h = F.relu(PF.affine(x, 16, name="features", fix_parameters=True))
loss = F.mean(F.squared_error(PF.affine(h, 1, name="output"), F.sum(x, axis=1, keepdims=True)))
solver = S.Adam(0.05)
solver.set_parameters(nn.get_parameters())
frozen = nn.get_parameters()["features/affine/W"].d.copy()
first = solver.minimize(loss).item()
for _ in range(50):
    solver.minimize(loss)
assert loss.item() < 0.5 * first
assert np.array_equal(nn.get_parameters()["features/affine/W"].d, frozen)
