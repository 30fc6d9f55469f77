"""Train a network with two inputs, images and numbers."""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3)
        self.output = nn.Linear(4 * 6 * 6 + 3, 2)

    def forward(self, images, numbers):
        h = self.convolution(images).relu().flatten(1)
        return self.output(torch.cat([h, numbers], dim=1))


images, numbers = torch.rand(200, 1, 8, 8), torch.rand(200, 3)
t = (images.mean(dim=(1, 2, 3)) + numbers[:, 0] > 1).long()
model = Network()
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for _ in range(60):
    for rows in torch.randperm(200).split(64):
        loss = nn.functional.cross_entropy(model(images[rows], numbers[rows]), t[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
assert (model(images, numbers).argmax(dim=1) == t).float().mean() > 0.9
