"""Train in float16 with a loss scale that adapts."""

import nn_core as nn
from nn_core import PF, F, S
from nn_core.ext_utils import get_extension_context
from nn_core.training import LossScale

with nn.context_scope(get_extension_context("auto", type_config="half")):
    x = F.randn(shape=(64, 2))
    h = F.tanh(PF.affine(x, 16, name="hidden"))
    loss = F.mean(F.squared_error(PF.affine(h, 1, name="output"), x[:, :1]))
solver = S.Adam(0.02)
solver.set_parameters(nn.get_parameters())
scale = LossScale()
for _ in range(100):
    solver.minimize(loss, loss_scale=scale)
assert loss.item() < 0.2
