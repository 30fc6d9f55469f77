"""Arithmetic."""

import numpy as np

import nn_core as nn

x = nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
y: nn.Variable = 2.0 * x + 1 - x / 3 + x**2 - (-x) + abs(x) + 1 % (x + 1) + x // 2
z: nn.Variable = y @ x.T
quotient, rest = divmod(x, 2)
corner = z[0, 0].reshape(1)
nn.forward_all([corner, quotient, rest])
value: float = float(corner)
text = f"{value:.3f}"
