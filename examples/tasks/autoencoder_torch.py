"""Train an autoencoder of images with convolutions, and reconstruct one."""

import torch
from torch import nn

images = torch.rand(100, 1, 1, 8).repeat(1, 1, 8, 1)
model = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 2, stride=2))
optimizer = torch.optim.Adam(model.parameters(), 0.02)
for _ in range(60):
    for rows in torch.randperm(80).split(64):
        loss = nn.functional.mse_loss(model(images[rows]), images[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
assert nn.functional.mse_loss(model(images[:1]), images[:1]) < 0.05
