"""Train on rare and frequent classes as if there were as many samples of each."""

import torch
from torch import nn

x = torch.randn(1000, 4)
t = (x[:, 0] > 1.5).long()
model = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss(500 / torch.bincount(t))
optimizer = torch.optim.Adam(model.parameters(), 0.02)
for _ in range(20):
    for rows in torch.randperm(1000).split(64):
        loss = criterion(model(x[rows]), t[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
assert (model(x).argmax(dim=1)[t == 1] == 1).float().mean() > 0.9
