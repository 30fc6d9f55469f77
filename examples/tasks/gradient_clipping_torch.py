"""Bound the norm of all gradients together before each update."""

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
for _ in range(5):
    x = 100 + 100 * torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
assert abs(nn.utils.get_total_norm(p.grad for p in model.parameters()) - 1) < 1e-3
