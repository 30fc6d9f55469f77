"""Train with activations in bfloat16 and parameters in float32."""

import torch
from torch import nn

x = torch.randn(64, 2)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.02)
losses = []
for _ in range(80):
    with torch.autocast("cpu", torch.bfloat16):
        loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.5 * losses[0]
