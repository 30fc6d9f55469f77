"""Train with activations in bfloat16 and parameters in float32."""

import numpy as np

import nn_core as nn
from nn_core import PF, F, S
from nn_core.ext_utils import get_extension_context

x = nn.Variable.from_numpy_array(np.random.default_rng(0).standard_normal((64, 2)))
with nn.context_scope(get_extension_context("auto", type_config="bfloat16")):
    h = F.tanh(PF.affine(x, 16, name="hidden"))
    loss = F.mean(F.squared_error(PF.affine(h, 1, name="output"), x[:, :1]))
solver = S.Adam(0.02)
solver.set_parameters(nn.get_parameters())
losses = [solver.minimize(loss).item() for _ in range(80)]
assert losses[-1] < 0.5 * losses[0]
