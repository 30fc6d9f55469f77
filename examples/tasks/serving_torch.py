"""Predict for NumPy arrays in batches of one size, and of any size."""

import numpy as np
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(1)).eval()


@torch.inference_mode()
def predict(samples):
    return model(torch.from_numpy(samples)).numpy()


samples = np.random.default_rng(0).standard_normal((24, 4)).astype(np.float32)
fixed = np.concatenate([predict(samples[start : start + 8]) for start in range(0, 24, 8)])
assert np.allclose(fixed, predict(samples), atol=1e-6)
