"""Keep a moving average of the weights and evaluate with it."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.2)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
for _ in range(200):
    x = torch.randn(4, 3)
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True) + torch.randn(4, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
assert (average.module.weight - 1).abs().max() < 0.5
