"""Print the layers of a network with their shapes, parameters and multiply-adds."""

from torch import nn
from torchinfo import summary

model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 16 * 16, 10))
table = summary(model, input_size=(1, 3, 32, 32), verbose=0)
print(table)
assert table.total_params == 3 * 16 * 9 + 16 + 16 * 16 * 16 * 10 + 10
