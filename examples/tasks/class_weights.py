"""Train on rare and frequent classes as if there were as many samples of each."""

import numpy as np

import nn_core as nn
from nn_core import PF, S

x = np.random.default_rng(0).standard_normal((1000, 4))
t = x[:, 0] > 1.5
options = {"epochs": 20, "solver": S.Adam(0.02), "metrics": ["recall"], "progress": False}
result = nn.fit(lambda x: PF.affine(x, 2), (x, t), class_weight="balanced", **options)
assert result.evaluate((x, t))["recall"] > 0.9
