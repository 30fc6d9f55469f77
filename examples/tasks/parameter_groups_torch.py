"""Train with a decay of the weights, but not of the biases."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
weights = [p for name, p in model.named_parameters() if name.endswith("weight")]
biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
groups = [{"params": weights}, {"params": biases, "weight_decay": 0}]
optimizer = torch.optim.AdamW(groups, 0.02, weight_decay=0.01)
for _ in range(100):
    x = torch.randn(64, 2)
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert loss.item() < 0.2
