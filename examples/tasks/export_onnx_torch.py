"""Export a network to ONNX for batches of any length, and check the model with ONNX Runtime."""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10), nn.Softmax(1)).eval()
x = torch.randn(8, 3, 16, 16)
dynamic = ({0: torch.export.Dim("batch")},)
torch.onnx.export(model, (x,), "net.onnx", dynamic_shapes=dynamic, verify=True)
