"""Train a network with two inputs, images and numbers."""

import numpy as np

import nn_core as nn
from nn_core import PF, F, S

random = np.random.default_rng(0)
images, numbers = random.random((200, 1, 8, 8)), random.random((200, 3))
t = images.mean(axis=(1, 2, 3)) + numbers[:, 0] > 1


def network(images, numbers):
    h = F.flatten(F.relu(PF.convolution(images, 4, 3)), 1)
    return PF.affine(F.concatenate(h, numbers, axis=1), 2)


result = nn.fit(network, ((images, numbers), t), epochs=60, solver=S.Adam(0.01), progress=False)
assert result.evaluate(((images, numbers), t))["accuracy"] > 0.9
