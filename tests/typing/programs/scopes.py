"""Scopes."""

import numpy as np

import nn_core as nn
import nn_core.parametric_functions as PF

x = nn.Variable((4, 8))
with nn.parameter_scope("encoder"):
    h = PF.affine(x, 4, name="hidden")
    inner: dict[str, nn.Variable] = nn.get_parameters()
y = PF.affine(h, 2, fix_parameters=True, w_init=np.ones((4, 2)), name="out")
nn.clear_parameters()
