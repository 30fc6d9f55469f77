"""Indexing."""

import numpy as np

import nn_core as nn

x = nn.Variable((4, 5))
rows = [x[0], x[1:3], x[..., -1], x[None], x[:, [0, 2]], x[np.array([1, 3])], x[x > 0]]
x[0] = 1.0
x[:, 1] = np.zeros(4)
for row in x:
    piece: nn.Variable = row
count: int = len(x)
