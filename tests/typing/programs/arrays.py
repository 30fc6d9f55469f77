"""Arrays."""

import numpy as np

import nn_core as nn
import nn_core.functions as F

a = nn.NdArray.from_numpy_array(np.arange(6.0).reshape(2, 3))
b: nn.NdArray = (a + 1) * 2 - a / 4
b += 1
mask: nn.NdArray = b > 2
picked: nn.NdArray = b[mask]
total: nn.NdArray = b.sum(axis=0).mean()
values: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = total.numpy().astype(np.float32)
lengths: tuple[int, ...] = b.shape
c: nn.NdArray = F.relu(b)
