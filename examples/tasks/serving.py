"""Predict for NumPy arrays in batches of one size, and of any size."""

import numpy as np

import nn_core as nn
from nn_core import F, layers

net = nn.Sequential(layers.Affine(16), F.relu, layers.Affine(3), F.softmax)
samples = np.random.default_rng(0).standard_normal((24, 4))
fixed = nn.predict(net, samples, batch_size=8)
assert np.allclose(fixed, nn.predict(net, samples, batch_size=24), atol=1e-6)
