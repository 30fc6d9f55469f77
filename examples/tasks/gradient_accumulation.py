"""Add up the gradients of four batches for one update."""

import numpy as np

from nn_core import PF, S, fit

x = np.random.default_rng(0).standard_normal((320, 4)).astype(np.float32)
t = x.sum(axis=1, keepdims=True)
result = fit(
    lambda x: PF.affine(x, 1),
    (x, t),
    solver=S.Adam(0.1),
    batch_size=8,
    accumulate=4,
    task="regression",
    epochs=10,
    progress=False,
)
assert result.history[-1]["loss"] < 0.5
