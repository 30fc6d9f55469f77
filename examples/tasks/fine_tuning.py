"""Load trained layers, freeze them, and train a new last layer."""

import numpy as np

import nn_core as nn
from nn_core import F, S, layers

x = np.random.default_rng(0).standard_normal((32, 4))
trained = nn.Sequential(layers.Affine(16), F.relu)
nn.predict(trained, x)
trained.save_parameters("trained.h5")

features = nn.Sequential(layers.Affine(16), F.relu)
features.load_parameters("trained.h5")
nn.freeze_parameters(features)
net = nn.Sequential(features, layers.Affine(1))
result = nn.fit(net, (x, x.sum(axis=1)), task="regression", epochs=50, solver=S.Adam(0.05), progress=False)
assert result.history[-1]["loss"] < 0.5 * result.history[0]["loss"]
assert np.array_equal(nn.predict(features, x), nn.predict(trained, x))
