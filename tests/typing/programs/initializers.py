"""Initializers."""

import nn_core as nn
import nn_core.initializer as I
import nn_core.parametric_functions as PF

x = nn.Variable((4, 8))
limit: tuple[float, float] = I.calc_uniform_lim_glorot(8, 4)
y = PF.affine(x, 4, w_init=I.UniformInitializer(limit), b_init=I.ConstantInitializer(0.1))
z = PF.affine(x, 4, w_init=I.NormalInitializer(I.calc_normal_std_he_forward(8, 4)), name="z")
