"""Train a classifier on arrays and evaluate it."""

import torch
from torch import nn

x = torch.randn(500, 2)
t = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.02)
for _ in range(25):
    for rows in torch.randperm(400).split(64):
        loss = nn.functional.cross_entropy(model(x[rows]), t[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
assert (model(x[400:]).argmax(dim=1) == t[400:]).float().mean() > 0.85
