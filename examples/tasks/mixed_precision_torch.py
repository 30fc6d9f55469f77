"""Train in float16 with a loss scale that adapts."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.02)
scaler = torch.amp.GradScaler("cpu")
for _ in range(100):
    x = torch.randn(64, 2)
    with torch.autocast("cpu", torch.float16):
        loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
assert loss.item() < 0.2
