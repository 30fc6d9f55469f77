"""Methods."""

import numpy as np

import nn_core as nn

x = nn.Variable.from_numpy_array(np.ones((2, 3, 4)))
parts: list[nn.Variable] = [
    x.reshape((6, 4)),
    x.reshape(6, -1),
    x.transpose(2, 0, 1),
    x.transpose((1, 0, 2)),
    x.T,
    x.sum(),
    x.mean(1),
    x.max(axis=(0, 1), keepdims=True),
    x.min(axis=-1),
]
nn.forward_all(parts)
numbers: list[float] = [float(x.sum().data.size), float(parts[5].item())]
dtype: np.dtype[np.generic] = x.dtype
