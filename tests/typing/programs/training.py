"""Training."""

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

x, t = nn.Variable((32, 2)), nn.Variable((32, 1))
loss = F.mean(F.squared_error(PF.affine(F.tanh(PF.affine(x, 16, name="a")), 1, name="b"), t))
solver = S.Adam(alpha=0.01)
solver.set_parameters(nn.get_parameters())
rng = np.random.default_rng(0)
for _step in range(3):
    x.d = rng.uniform(-1, 1, size=x.shape)
    t.d = x.d.sum(axis=1, keepdims=True)
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.weight_decay(1e-4)
    solver.update()
rate: float = solver.alpha
solver.alpha = rate / 2
