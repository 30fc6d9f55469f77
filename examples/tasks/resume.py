"""Interrupt a training with shuffled batches; resumed, it ends with the bits of one that was never interrupted."""

import numpy as np

import nn_core as nn
from nn_core import PF, S
from nn_core.training import fit

x = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)
t = x.sum(axis=1, keepdims=True)


def train(folder, epochs):
    nn.clear_parameters()
    nn.seed(1)
    options = {"task": "regression", "epochs": epochs, "batch_size": 8, "progress": False}
    result = fit(lambda x: PF.affine(x, 1), (x, t), solver=S.Adam(0.01), out=folder, resume=True, **options)
    return result.parameters["affine/W"].d


train("run", epochs=2)
assert np.array_equal(train("run", epochs=4), train("unbroken", epochs=4))
