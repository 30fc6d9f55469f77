"""One step of a WGAN with gradient penalty: the critic, then the generator."""

import numpy as np

import nn_core as nn
from nn_core import PF, F, S


def network(x, outputs):
    return PF.affine(F.leaky_relu(PF.affine(x, 16, name="hidden"), 0.2), outputs, name="output")


def solver_of(scope):
    solver = S.Adam(1e-3, beta1=0.5, beta2=0.9)
    solver.set_parameters(scope)
    return solver


real, mix = F.randn(shape=(32, 2)) + 2, F.rand(shape=(32, 1))
with nn.parameter_scope("generator"):
    fake = network(F.randn(shape=(32, 4)), 2)
with nn.parameter_scope("critic"):
    generator_loss = -F.mean(network(fake, 1))
    constant = F.unlink(fake)
    between = mix * real + (1 - mix) * constant
    between.need_grad = True
    (slope,) = nn.grad([network(between, 1)], [between])
    penalty = F.mean((F.norm(slope, axis=1) - 1) ** 2)
    critic_loss = F.mean(network(constant, 1)) - F.mean(network(real, 1)) + 10 * penalty
solver_of("critic").minimize(critic_loss)
solver_of("generator").minimize(generator_loss)
assert np.isfinite(critic_loss.item() + generator_loss.item())
