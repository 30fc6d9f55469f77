"""Interrupt a training with shuffled batches; resumed, it ends with the bits of one that was never interrupted."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
t = x.sum(dim=1, keepdim=True)


def train(folder, epochs):
    torch.manual_seed(1)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    generator = torch.Generator().manual_seed(2)
    loader = DataLoader(TensorDataset(x, t), batch_size=8, shuffle=True, generator=generator)
    path = Path(folder) / "checkpoint.pt"
    path.parent.mkdir(exist_ok=True)
    start = 0
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        generator.set_state(saved["generator"])
        torch.set_rng_state(saved["random"])
        start = saved["epoch"]
    for epoch in range(start, epochs):
        for batch, target in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(batch), target).backward()
            optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
        torch.save({**state, "generator": generator.get_state(), "random": torch.get_rng_state()}, path)
    return model.weight


train("run", epochs=2)
assert torch.equal(train("run", epochs=4), train("unbroken", epochs=4))
