"""Predict in several Python threads, each with one native thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1)).eval()


def predict(samples):
    with torch.inference_mode():
        return model(torch.from_numpy(samples)).numpy()


torch.set_num_threads(1)
requests = list(np.random.default_rng(0).standard_normal((8, 2, 4)).astype(np.float32))
expected = [predict(request) for request in requests]
with ThreadPoolExecutor(4) as pool:
    answers = list(pool.map(predict, requests))
assert np.allclose(answers, expected, atol=1e-6)
