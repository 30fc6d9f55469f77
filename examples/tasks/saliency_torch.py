"""Find the pixels that the score of a class depends on most."""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 3))
x = torch.ones(1, 1, 8, 8, requires_grad=True)
model(x).max().backward()
assert x.grad.abs().max() > 0
