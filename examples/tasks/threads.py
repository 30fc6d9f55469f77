"""Predict in several Python threads, each with one native thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import nn_core as nn
from nn_core import PF, F


def predict(samples):
    return F.softmax(PF.affine(nn.NdArray.from_numpy_array(samples), 3)).data


nn.set_num_threads(1)
requests = list(np.random.default_rng(0).standard_normal((8, 2, 4)).astype(np.float32))
expected = [predict(request) for request in requests]
with ThreadPoolExecutor(4) as pool:
    answers = list(pool.map(predict, requests))
assert np.allclose(answers, expected, atol=1e-6)
