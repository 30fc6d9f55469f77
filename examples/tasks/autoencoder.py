"""Train an autoencoder of images with convolutions, and reconstruct one."""

import numpy as np

import nn_core as nn
from nn_core import F, S, layers

images = np.random.default_rng(0).random((100, 1, 1, 8)).repeat(8, axis=2)
net = nn.Sequential(layers.Conv(8, 3, pad=1, stride=2), F.relu, layers.Deconv(1, 2, stride=2))
result = nn.fit(net, (images, images), 0.2, "regression", epochs=60, solver=S.Adam(0.02), progress=False)
assert np.square(result.predict(images[:1]) - images[:1]).mean() < 0.05
