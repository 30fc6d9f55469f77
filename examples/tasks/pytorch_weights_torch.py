"""Load weights that PyTorch wrote as safetensors into a network whose layers have other names."""

import torch
from safetensors.torch import load_file, save_file
from torch import nn

shapes = {"body.0.weight": (8, 3, 3, 3), "body.0.bias": (8,), "head.weight": (5, 8), "head.bias": (5,)}
save_file({name: torch.full(shape, 0.5) for name, shape in shapes.items()}, "model.safetensors")


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).mean(dim=(2, 3)))


names = {"body.0": "conv", "head": "fc"}
tensors = {}
for name, tensor in load_file("model.safetensors").items():
    layer, _, parameter = name.rpartition(".")
    tensors[f"{names[layer]}.{parameter}"] = tensor
model = Network()
model.load_state_dict(tensors)
assert torch.allclose(model(torch.ones(2, 3, 8, 8)), torch.tensor(8 * 0.5 * (27 * 0.5 + 0.5) + 0.5))
