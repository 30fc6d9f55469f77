"""Measure which functions of a training step take the time."""

import torch
from torch import nn
from torch.profiler import profile

model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
with profile() as profiler:
    for _ in range(3):
        loss = (model(torch.randn(4, 3, 8, 8)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
table = profiler.key_averages().table(sort_by="cpu_time_total")
print(table)
assert "convolution" in table.lower()
