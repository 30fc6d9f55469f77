"""Train a classifier on arrays and evaluate it."""

import numpy as np

from nn_core import PF, F, S, fit

x = np.random.default_rng(0).standard_normal((500, 2)).astype(np.float32)
t = (x[:, 0] * x[:, 1] > 0).astype(int)


def network(x):
    return PF.affine(F.relu(PF.affine(x, 32, name="hidden")), 2, name="output")


result = fit(network, (x[:400], t[:400]), epochs=25, solver=S.Adam(0.02), progress=False)
assert result.evaluate((x[400:], t[400:]))["accuracy"] > 0.85
