"""End training when the loss of held-out samples has not fallen for five epochs."""

import numpy as np

import nn_core as nn
from nn_core import PF, F, S

random = np.random.default_rng(0)
x = random.standard_normal((80, 10))
t = x[:, 0] + random.standard_normal(80)


def network(x):
    return PF.affine(F.relu(PF.affine(x, 64, name="hidden")), 1, name="output")


result = nn.fit(network, (x, t), 0.5, "regression", epochs=500, patience=5, solver=S.Adam(0.01), progress=False)
assert len(result.history) < 500
