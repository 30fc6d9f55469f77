"""Warm the learning rate up, then let it fall along a cosine."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
warmup, decay = LinearLR(optimizer, 0.1, total_iters=10), CosineAnnealingLR(optimizer, 90)
schedule = SequentialLR(optimizer, [warmup, decay], milestones=[10])
for _ in range(100):
    x = torch.randn(8, 3)
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
assert loss.item() < 0.1
