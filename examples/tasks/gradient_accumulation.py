"""Add up the gradients of four batches for one update."""

import numpy as np

from nn_core import PF, S
from nn_core.training import fit

x = np.random.default_rng(0).standard_normal((320, 4)).astype(np.float32)
t = x.sum(axis=1, keepdims=True)
options = {"epochs": 10, "batch_size": 8, "accumulate": 4, "progress": False}
result = fit(lambda x: PF.affine(x, 1), (x, t), task="regression", solver=S.Adam(0.1), **options)
assert result.history[-1]["loss"] < 0.5
