"""Numpy interface."""

import numpy as np

import nn_core as nn

x = nn.Variable.from_numpy_array(np.ones((2, 3)))
values = np.asarray(x, dtype=np.float64)
same: bool = np.allclose(x.d, values)
scaled: nn.Variable = x * np.float32(2)
total: float = x.data.numpy().sum().item()

# NumPy arrays are constants in operators, on either side
shifted: nn.Variable = x + values
projected: nn.Variable = np.ones((4, 2)) @ x
weighted: nn.NdArray = values * x.data
mask: nn.Variable = x < values
quotient: nn.Variable = values // x
