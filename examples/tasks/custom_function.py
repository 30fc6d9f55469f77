"""Write a function with a forward and a backward pass of its own: a sign that passes gradients straight through."""

import numpy as np

import nn_core as nn
from nn_core import F

straight_through_sign = nn.numpy_function(np.sign, lambda dy, y, x: dy)
x = nn.Variable.from_numpy_array([-2.0, 0.5, 3.0], need_grad=True)
y = F.sum(straight_through_sign(x) * x)
y.forward()
y.backward()
assert x.g.tolist() == [-3.0, 1.5, 4.0]
