"""Gradients."""

import nn_core as nn
import nn_core.functions as F

x = nn.Variable.from_numpy_array([0.5, 1.0], need_grad=True)
y = F.sum(F.sin(x))
(dx,) = nn.grad([y], [x])
y.forward()
x.grad.zero()
y.backward()
gradient: list[float] = x.g.tolist()
