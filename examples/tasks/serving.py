"""Predict for NumPy arrays in batches of one size, and of any size."""

import numpy as np

import nn_core as nn
from nn_core import PF, F


def predict(samples):
    h = F.relu(PF.affine(nn.NdArray.from_numpy_array(samples), 16, name="hidden"))
    return F.softmax(PF.affine(h, 3, name="output")).data


samples = np.random.default_rng(0).standard_normal((24, 4)).astype(np.float32)
fixed = np.concatenate([predict(samples[start : start + 8]) for start in range(0, 24, 8)])
assert np.allclose(fixed, predict(samples), atol=1e-6)
