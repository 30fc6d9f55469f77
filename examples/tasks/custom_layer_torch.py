"""Write a layer with a trained parameter of its own, and use it twice."""

import torch
from torch import nn


class ChannelScale(nn.Module):
    def __init__(self, channels, initial=0.1):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1, channels), initial))

    def forward(self, x):
        return x * self.scale


model = nn.Sequential(ChannelScale(4), nn.Linear(4, 3), ChannelScale(3, initial=0.5))
assert model(torch.ones(2, 4)).shape == (2, 3)
assert dict(model.named_parameters())["2.scale"].tolist() == [[0.5, 0.5, 0.5]]
