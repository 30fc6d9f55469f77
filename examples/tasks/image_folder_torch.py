"""Train on a folder of images with a folder for each class."""

from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

for name, brightness in (("dark", 40), ("light", 200)):
    Path("images", name).mkdir(parents=True)
    for i in range(8):
        Image.new("RGB", (12, 12), (brightness + i,) * 3).save(f"images/{name}/{i}.png")

transform = v2.Compose([v2.ToImage(), v2.Resize((8, 8)), v2.ToDtype(torch.float32, scale=True)])
dataset = ImageFolder("images", transform)
loader = DataLoader(dataset, batch_size=4, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(192, len(dataset.classes)))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for _ in range(50):
    for x, t in loader:
        loss = nn.functional.cross_entropy(model(x), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
assert loss.item() < 0.3
