"""Load trained layers, freeze them, and train a new last layer."""

import torch
from torch import nn

torch.save(nn.Linear(4, 16).state_dict(), "trained.pt")

features = nn.Linear(4, 16)
features.load_state_dict(torch.load("trained.pt"))
features.requires_grad_(False)
model = nn.Sequential(features, nn.ReLU(), nn.Linear(16, 1))
x = torch.randn(32, 4)
t = x.sum(dim=1, keepdim=True)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 0.05)
frozen = features.weight.clone()
first = nn.functional.mse_loss(model(x), t).item()
for _ in range(50):
    loss = nn.functional.mse_loss(model(x), t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert loss.item() < 0.5 * first
assert torch.equal(features.weight, frozen)
