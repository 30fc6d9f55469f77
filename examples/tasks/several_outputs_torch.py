"""Train a network with two outputs, each with a loss of its own."""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 32)
        self.kind = nn.Linear(32, 2)
        self.size = nn.Linear(32, 1)

    def forward(self, x):
        h = torch.relu(self.shared(x))
        return self.kind(h), self.size(h)


model = Network()
optimizer = torch.optim.Adam(model.parameters(), 0.03)
for _ in range(100):
    x = torch.randn(32, 4)
    scores, predicted = model(x)
    kind_loss = nn.functional.cross_entropy(scores, (x[:, 0] > 0).long())
    size_loss = nn.functional.mse_loss(predicted, x[:, 1:2])
    optimizer.zero_grad()
    (kind_loss + 0.5 * size_loss).backward()
    optimizer.step()
assert kind_loss.item() < 0.4 and size_loss.item() < 0.2
