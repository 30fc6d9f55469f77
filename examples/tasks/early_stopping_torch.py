"""End training when the loss of held-out samples has not fallen for five epochs."""

import torch
from torch import nn

x = torch.randn(80, 10)
t = x[:, :1] + torch.randn(80, 1)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
best, waited, epoch = float("inf"), 0, 0
while epoch < 500 and waited < 5:
    for rows in torch.randperm(40).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), t[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        held_out = nn.functional.mse_loss(model(x[40:]), t[40:]).item()
    best, waited = (held_out, 0) if held_out < best else (best, waited + 1)
    epoch += 1
assert epoch < 500
