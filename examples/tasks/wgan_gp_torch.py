"""One step of a WGAN with gradient penalty: the critic, then the generator."""

import torch
from torch import nn


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 16), nn.LeakyReLU(0.2), nn.Linear(16, outputs))


generator, critic = network(4, 2), network(2, 1)
generator_optimizer = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.9))
critic_optimizer = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.9))
real, mix = torch.randn(32, 2) + 2, torch.rand(32, 1)
fake = generator(torch.randn(32, 4)).detach()
between = (mix * real + (1 - mix) * fake).requires_grad_()
(slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
critic_loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
critic_optimizer.zero_grad()
critic_loss.backward()
critic_optimizer.step()
generator_loss = -critic(generator(torch.randn(32, 4))).mean()
generator_optimizer.zero_grad()
generator_loss.backward()
generator_optimizer.step()
assert (critic_loss + generator_loss).isfinite()
